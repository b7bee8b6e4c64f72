//! Tensors decoded a piece at a time.

use crate::error::Error;
use crate::source::Payload;
use p64_core::DType;
use p64_core::kernel;
use p64_core::quant::ternary;
use std::ops::Range;

/// Most elements decoded at once: whole blocks of every type, and whole bytes of ternary digits.
pub(crate) const PIECE: usize = 4096 * ternary::PER_BYTE;

/// Why a tensor could not be decoded.
#[derive(Debug)]
pub(crate) enum PieceError {
    /// Reading failed.
    Read(Error),
    /// Core refuses the bytes.
    Decode(p64_core::Error),
    /// The payload is longer or shorter than its type and shape say.
    Length { expected: u64, found: u64 },
}

impl From<Error> for PieceError {
    fn from(error: Error) -> Self {
        Self::Read(error)
    }
}

impl From<p64_core::Error> for PieceError {
    fn from(error: p64_core::Error) -> Self {
        Self::Decode(error)
    }
}

/// Decoded values: as `f32` where that is what the type means, else (integers, F64) as `f64`. I64 beyond 2^53 is rounded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values<'v> {
    Single(&'v [f32]),
    Double(&'v [f64]),
}

/// What a thread decodes into.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    single: Vec<f32>,
    double: Vec<f64>,
}

/// Whether the values of a type can be had.
#[must_use]
pub fn can_decode(dtype: DType) -> bool {
    kernel::is_supported(dtype) || is_plain(dtype)
}

/// Types that no kernel computes with, but whose elements are numbers of their own.
const fn is_plain(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::F64)
}

/// The values of one payload, decoded on demand.
#[derive(Clone, Copy)]
pub(crate) struct Decoder<'p> {
    payload: &'p dyn Payload,
    elements: u64,
    /// Scale of the whole tensor, of ternary only.
    scale: [u8; 4],
}

impl<'p> Decoder<'p> {
    /// `None` for a type that [`can_decode`] denies. The length is checked here, once.
    pub fn new(payload: &'p dyn Payload) -> Result<Option<Self>, PieceError> {
        let (dtype, shape) = (payload.dtype(), payload.shape());
        if !can_decode(dtype) {
            return Ok(None);
        }
        let expected = dtype.byte_len(&shape).ok().flatten().unwrap_or(u64::MAX);
        if expected != payload.len() {
            return Err(PieceError::Length { expected, found: payload.len() });
        }
        let mut scale = [0; 4];
        if dtype == DType::Ternary {
            payload.read_at(0, &mut scale)?;
        }
        Ok(Some(Self { payload, elements: shape.elements().unwrap_or(0), scale }))
    }

    /// Number of values.
    pub const fn elements(&self) -> u64 {
        self.elements
    }

    /// Decodes the elements of `range`, which begins at a multiple of [`PIECE`], and hands them over in order.
    pub fn each(
        &self,
        range: Range<u64>,
        scratch: &mut Scratch,
        take: &mut dyn FnMut(Values<'_>),
    ) -> Result<(), PieceError> {
        let mut start = range.start;
        while start < range.end {
            let count = usize::try_from(range.end.saturating_sub(start)).map_or(PIECE, |left| left.min(PIECE));
            take(self.piece(start, count, scratch)?);
            start = start.saturating_add(count as u64);
        }
        Ok(())
    }

    /// The `count` values (at most [`PIECE`]) from element `start`, a multiple of [`PIECE`], on.
    pub fn piece<'s>(&self, start: u64, count: usize, scratch: &'s mut Scratch) -> Result<Values<'s>, PieceError> {
        let dtype = self.payload.dtype();
        let Scratch { bytes, single, double } = scratch;
        if dtype == DType::Ternary {
            bytes.clear();
            bytes.extend_from_slice(&self.scale);
            bytes.resize(self.scale.len().saturating_add(count.div_ceil(ternary::PER_BYTE)), 0);
            let at = (start / ternary::PER_BYTE as u64).saturating_add(self.scale.len() as u64);
            self.payload.read_at(at, bytes.get_mut(self.scale.len()..).unwrap_or_default())?;
            single.resize(count, 0.0);
            kernel::dequantize(dtype, bytes, single)?;
            return Ok(Values::Single(single));
        }
        let block = dtype.block().map_or((1, 1), |block| (u64::from(block.elements), u64::from(block.bytes)));
        let at = (start / block.0).saturating_mul(block.1);
        let len = usize::try_from((count as u64 / block.0).saturating_mul(block.1)).unwrap_or(usize::MAX);
        let in_place = self.payload.bytes().and_then(|all| all.get(usize::try_from(at).ok()?..)?.get(..len));
        let piece = match in_place {
            Some(piece) => piece,
            None => {
                bytes.resize(len, 0);
                self.payload.read_at(at, bytes)?;
                bytes.as_slice()
            }
        };
        if is_plain(dtype) {
            double.clear();
            plain(dtype, piece, double);
            return Ok(Values::Double(double));
        }
        single.resize(count, 0.0);
        kernel::dequantize(dtype, piece, single)?;
        Ok(Values::Single(single))
    }
}

fn plain(dtype: DType, bytes: &[u8], out: &mut Vec<f64>) {
    match dtype {
        DType::I8 => out.extend(bytes.iter().map(|byte| f64::from(i8::from_le_bytes([*byte])))),
        DType::I16 => out.extend(bytes.as_chunks().0.iter().map(|bytes| f64::from(i16::from_le_bytes(*bytes)))),
        DType::I32 => out.extend(bytes.as_chunks().0.iter().map(|bytes| f64::from(i32::from_le_bytes(*bytes)))),
        #[expect(clippy::cast_precision_loss, reason = "documented: numbers beyond 2^53 are rounded")]
        DType::I64 => out.extend(bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes) as f64)),
        DType::F64 => out.extend(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes))),
        _ => {}
    }
}
