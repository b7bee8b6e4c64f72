//! Vectors: the weights of norms, biases, divisors.
#![forbid(unsafe_code)]

use super::{Weight, wide};
use crate::error::{Code, Error, Place, Result};
use crate::layout::dtype::DType;

/// Values in F32, the one type that converters give vectors, as the file has them.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'w>(&'w [[u8; 4]]);

impl<'w> Vector<'w> {
    /// A tensor's values, whatever its rank: there must be `len`.
    ///
    /// # Errors
    /// [`Code::WrongShape`] for another number of values, [`Code::UnsupportedDType`] for another type than F32,
    /// [`Code::LengthMismatch`] when the bytes are not as many as that needs; all at the tensor.
    pub fn new(weight: &Weight<'w>, len: usize) -> Result<Self> {
        let error = |code, needed, found| Error::new(code, Place::Tensor(weight.index)).values(needed, found);
        match weight.shape.elements() {
            Some(found) if found == wide(len) => {}
            found => return Err(error(Code::WrongShape, wide(len), found.unwrap_or(u64::MAX))),
        }
        if weight.dtype != DType::F32 {
            return Err(error(Code::UnsupportedDType, 0, u64::from(weight.dtype.id())));
        }
        let (values, rest) = weight.bytes.as_chunks();
        if values.len() != len || !rest.is_empty() {
            return Err(error(Code::LengthMismatch, wide(len).saturating_mul(4), wide(weight.bytes.len())));
        }
        Ok(Self(values))
    }

    /// How many values there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f32> + use<'w> {
        self.0.iter().map(|bytes| f32::from_le_bytes(*bytes))
    }

    /// The first `len` values, or as many as there are, and the others.
    pub(super) fn split_at(self, len: usize) -> (Self, Self) {
        let (first, rest) = self.0.split_at(len.min(self.0.len()));
        (Self(first), Self(rest))
    }

    /// Bytes of the values.
    pub(in crate::forward) const fn size(&self) -> usize {
        self.0.as_flattened().len()
    }
}
