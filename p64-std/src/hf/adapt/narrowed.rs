//! From f32 back to the type that it was widened from.

use super::{PIECE, check, read_converted};
use crate::error::Result;
use crate::source::Payload;
use p64_core::quant::float::{from_bf16, from_f16, to_f16};
use p64_core::{DType, Shape};

/// bf16 or f16 from f32, rounded to the nearest and to even between two; what was widened before comes out as it was.
pub(crate) struct Narrowed<'s> {
    inner: Box<dyn Payload + 's>,
    dtype: DType,
}

impl<'s> Narrowed<'s> {
    /// The payload, which is of f32, in f16 or else in bf16.
    pub(crate) fn new(inner: Box<dyn Payload + 's>, dtype: DType) -> Self {
        Self { inner, dtype: if dtype == DType::F16 { DType::F16 } else { DType::BF16 } }
    }

    /// Whether every value of a payload of f32 is one of f16, or else of bf16.
    ///
    /// # Errors
    /// What reading answers.
    pub(crate) fn is_exact(inner: &dyn Payload, dtype: DType) -> Result<bool> {
        let mut raw = vec![0; PIECE];
        let mut at = 0u64;
        while at < inner.len() {
            let left = usize::try_from(inner.len().saturating_sub(at)).unwrap_or(PIECE);
            let piece = raw.get_mut(..left.min(PIECE)).unwrap_or_default();
            inner.read_at(at, piece)?;
            let is_exact = piece.as_chunks().0.iter().all(|bytes| {
                let value = f32::from_le_bytes(*bytes);
                let back = if dtype == DType::F16 { from_f16(&to_f16(value)) } else { from_bf16(&to_bf16(value)) };
                back.to_bits() == value.to_bits()
            });
            if !is_exact {
                return Ok(false);
            }
            at = at.saturating_add(piece.len() as u64);
        }
        Ok(true)
    }
}

/// The bf16 nearest to a value, ties to even; NaN stays NaN.
fn to_bf16(value: f32) -> [u8; 2] {
    let bits = value.to_bits();
    let rounded =
        if value.is_nan() { bits | 0x0040_0000 } else { bits.wrapping_add(0x7fff).wrapping_add((bits >> 16) & 1) };
    let [_, _, low, high] = rounded.to_le_bytes();
    [low, high]
}

impl Payload for Narrowed<'_> {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn len(&self) -> u64 {
        self.inner.len() / 2
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        check(offset, out.len(), self.len())?;
        read_converted(self.inner.as_ref(), (4, 2), offset, out, |raw, converted| {
            for bytes in raw.as_chunks().0 {
                let value = f32::from_le_bytes(*bytes);
                converted.extend(if self.dtype == DType::F16 { to_f16(value) } else { to_bf16(value) });
            }
        })
    }
}
