//! Weights whose bytes are proven to fit their type and shape, and their decoding to `f32`.
#![forbid(unsafe_code)]

#[cfg(feature = "all-types")]
mod rare;

use crate::error::{Code, Error, Place, Result};
use crate::layout::dtype::DType;
use crate::quant::group;
use crate::quant::ternary::Ternary;
use crate::quant::tile;
use crate::quant::{Packed, float, q2_k, q3_k, q4_0, q4_1, q4_k, q4_k_soa, q5_0, q5_1, q5_k, q6_k, q8_0};

/// `rows` x `cols` weights, row after row or sixteen side by side, in a type that this build computes with.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    dtype: DType,
    rows: usize,
    cols: usize,
    bytes: &'a [u8],
    /// Bytes of one row; 0 for ternary, whose rows do not begin on a byte.
    row_len: usize,
}

impl<'a> Matrix<'a> {
    /// A view of `bytes`. Ternary payloads are read once to check their digits, others are not touched.
    ///
    /// # Errors
    /// [`Code::UnsupportedDType`] for a type without a kernel, [`Code::PartialBlock`] when `cols` is no multiple of the
    /// type's block, [`Code::PartialTile`] when `rows` is no multiple of those that the type has side by side,
    /// [`Code::LengthMismatch`] unless `bytes` is exactly as long as the shape needs,
    /// [`Code::TernaryDigit`] for a ternary byte above 242.
    pub fn new(dtype: DType, rows: usize, cols: usize, bytes: &'a [u8]) -> Result<Self> {
        let row_len = if dtype == DType::Ternary {
            let elements = rows.checked_mul(cols).ok_or_else(|| length_mismatch(usize::MAX, bytes.len()))?;
            Ternary::new(bytes, elements)?;
            0
        } else {
            if decoder(dtype).is_none() {
                return Err(unsupported(dtype));
            }
            let row_len = run_len(dtype, cols)?;
            if dtype.is_tiled() && !rows.is_multiple_of(tile::ROWS) {
                return Err(Error::new(Code::PartialTile, Place::File).values(tile::ROWS as u64, rows as u64));
            }
            let need = row_len.and_then(|len| len.checked_mul(rows)).unwrap_or(usize::MAX);
            if need != bytes.len() {
                return Err(length_mismatch(need, bytes.len()));
            }
            row_len.unwrap_or_default()
        };
        Ok(Self { dtype, rows, cols, bytes, row_len })
    }

    /// Element type.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of rows: the outputs of a product.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row: the inputs of a product.
    #[must_use]
    pub const fn cols(&self) -> usize {
        self.cols
    }

    /// The payload.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The values of one row.
    ///
    /// # Errors
    /// [`Code::LengthMismatch`] unless `out` holds `cols` elements, and (with the number of rows) for a row past the
    /// last.
    pub fn dequantize_row(&self, row: usize, out: &mut [f32]) -> Result<()> {
        if row >= self.rows {
            return Err(length_mismatch(self.rows, row));
        }
        if out.len() != self.cols {
            return Err(length_mismatch(self.cols, out.len()));
        }
        self.decode(row, 0, out);
        Ok(())
    }

    /// The matrix of some of the rows. `None` past the last row, for ternary, whose rows share bytes, and for parts of rows
    /// that are side by side.
    pub(crate) fn rows_of(&self, range: core::ops::Range<usize>) -> Option<Self> {
        if self.dtype == DType::Ternary || range.end > self.rows {
            return None;
        }
        if self.is_tiled() && !(range.start | range.end).is_multiple_of(tile::ROWS) {
            return None;
        }
        let (start, end) = (range.start.checked_mul(self.row_len)?, range.end.checked_mul(self.row_len)?);
        Some(Self { rows: range.len(), bytes: self.bytes.get(start..end)?, ..*self })
    }

    /// Whether sixteen rows are side by side.
    #[inline(always)]
    pub(crate) const fn is_tiled(&self) -> bool {
        // Without those types there is no such matrix, and no code for one.
        cfg!(feature = "all-types") && self.dtype.is_tiled()
    }

    /// The bytes of the sixteen rows from `16 * tile` on, which are side by side.
    #[cfg(any(feature = "all-types", target_arch = "x86_64"))]
    #[inline(always)]
    pub(crate) fn tile(&self, tile: usize) -> &'a [u8] {
        let len = self.row_len.saturating_mul(tile::ROWS);
        tile.checked_mul(len).and_then(|start| self.bytes.get(start..)?.get(..len)).unwrap_or_default()
    }

    /// One block of a row, out of rows that are side by side; zeros past the last.
    #[cfg(feature = "all-types")]
    #[inline(always)]
    pub(crate) fn gather<const BYTES: usize>(&self, row: usize, block: usize) -> [u8; BYTES] {
        let mut gathered = [0; BYTES];
        if let Some(units) = tile::Units::of(self.dtype) {
            units.gather(self.tile(row / tile::ROWS), row % tile::ROWS, block, &mut gathered);
        }
        gathered
    }

    /// The bytes of one row, where rows follow each other; empty for ternary and past the last row.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &'a [u8] {
        let bytes = row.checked_mul(self.row_len).and_then(|start| self.bytes.get(start..));
        bytes.and_then(|bytes| bytes.get(..self.row_len)).unwrap_or_default()
    }

    /// Elements `start..` of a row, as many as `out` holds. `start` and the length are whole blocks.
    pub(crate) fn decode(&self, row: usize, start: usize, out: &mut [f32]) {
        #[cfg(feature = "all-types")]
        if self.is_tiled() {
            return rare::decode_tiled(self, row, start, out);
        }
        if let Some(decode) = decoder(self.dtype) {
            if let Ok(Some(skip)) = run_len(self.dtype, start) {
                decode(self.row(row).get(skip..).unwrap_or_default(), out);
            }
        } else if let Ok(ternary) = Ternary::split(self.bytes, self.rows.saturating_mul(self.cols)) {
            ternary.dequantize(row.saturating_mul(self.cols).saturating_add(start), out);
        }
    }
}

/// Whether this build can decode and multiply weights of a type.
#[must_use]
pub fn is_supported(dtype: DType) -> bool {
    dtype == DType::Ternary || decoder(dtype).is_some()
}

/// The values of a whole payload of `out.len()` elements, row after row.
///
/// # Errors
/// As [`Matrix::new`] of one row: types with rows side by side are none.
pub fn dequantize(dtype: DType, bytes: &[u8], out: &mut [f32]) -> Result<()> {
    Matrix::new(dtype, 1, out.len(), bytes)?.dequantize_row(0, out)
}

/// Bytes of `elements` consecutive elements of a block type; `Ok(None)` when that does not fit `usize`.
fn run_len(dtype: DType, elements: usize) -> Result<Option<usize>> {
    let block = dtype.block().ok_or_else(|| unsupported(dtype))?;
    let (Ok(per_block), Ok(bytes)) = (usize::try_from(block.elements), usize::try_from(block.bytes)) else {
        return Ok(None);
    };
    if !elements.is_multiple_of(per_block) {
        let (per_block, elements) = (u64::from(block.elements), elements as u64);
        return Err(Error::new(Code::PartialBlock, Place::File).values(per_block, elements));
    }
    Ok(elements.checked_div(per_block).and_then(|blocks| blocks.checked_mul(bytes)))
}

fn unsupported(dtype: DType) -> Error {
    Error::new(Code::UnsupportedDType, Place::File).values(0, u64::from(dtype.id()))
}

const fn length_mismatch(need: usize, have: usize) -> Error {
    Error::new(Code::LengthMismatch, Place::File).values(need as u64, have as u64)
}

/// Decodes consecutive elements from the start of `bytes`.
type Decode = fn(bytes: &[u8], out: &mut [f32]);

fn decoder(dtype: DType) -> Option<Decode> {
    Some(match dtype {
        DType::F32 => |bytes, out| floats(bytes, out, float::from_f32),
        DType::F16 => |bytes, out| floats(bytes, out, float::from_f16),
        DType::BF16 => |bytes, out| floats(bytes, out, float::from_bf16),
        DType::Q4_0 => |bytes, out| packed::<q4_0::Format, _, _, _>(bytes, out),
        DType::Q4_1 => |bytes, out| packed::<q4_1::Format, _, _, _>(bytes, out),
        DType::Q5_0 => |bytes, out| packed::<q5_0::Format, _, _, _>(bytes, out),
        DType::Q5_1 => |bytes, out| packed::<q5_1::Format, _, _, _>(bytes, out),
        DType::Q8_0 => |bytes, out| packed::<q8_0::Format, _, _, _>(bytes, out),
        DType::Q2_K => |bytes, out| packed::<q2_k::Format, _, _, _>(bytes, out),
        DType::Q3_K => |bytes, out| packed::<q3_k::Format, _, _, _>(bytes, out),
        DType::Q4_K => |bytes, out| packed::<q4_k::Format, _, _, _>(bytes, out),
        DType::Q5_K => |bytes, out| packed::<q5_k::Format, _, _, _>(bytes, out),
        DType::Q6_K => |bytes, out| packed::<q6_k::Format, _, _, _>(bytes, out),
        DType::Q4KSoa => |bytes, out| packed::<q4_k_soa::Format, _, _, _>(bytes, out),
        #[cfg(feature = "all-types")]
        other => return rare::decoder(other),
        #[cfg(not(feature = "all-types"))]
        _ => return None,
    })
}

#[inline(always)]
fn packed<F: Packed<BYTES, GROUPS, S>, const BYTES: usize, const GROUPS: usize, const S: usize>(
    bytes: &[u8],
    out: &mut [f32],
) {
    for (block, out) in bytes.as_chunks::<BYTES>().0.iter().zip(out.chunks_exact_mut(GROUPS * 32)) {
        group::dequantize(&F::unpack(block), out);
    }
}

#[inline(always)]
fn floats<const BYTES: usize>(bytes: &[u8], out: &mut [f32], decode: impl Fn(&[u8; BYTES]) -> f32) {
    for (bytes, out) in bytes.as_chunks::<BYTES>().0.iter().zip(out) {
        *out = decode(bytes);
    }
}
