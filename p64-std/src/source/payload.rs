//! The bytes of one tensor, read on demand.

use crate::error::Result;
use p64_core::{DType, Shape};

/// A tensor's type, shape and bytes.
pub trait Payload: Send + Sync {
    /// Element type of the bytes.
    fn dtype(&self) -> DType;

    /// Shape in GGML order: `dims()[0]` is the length of a row.
    fn shape(&self) -> Shape;

    /// Number of bytes.
    fn len(&self) -> u64;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// What the system or a checksum answers; a range that does not lie in the payload is an error too.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()>;

    /// All bytes, where they lie in memory or in a mapping as they are.
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Bytes of a row, `None` for types whose rows are not whole blocks (ternary, types of unknown size).
    fn row_len(&self) -> Option<u64> {
        let row = Shape::new(self.shape().dims().get(..1)?)?;
        self.dtype().stock().byte_len(&row).ok().flatten()
    }

    /// Rows: the product of all dimensions but the first.
    fn rows(&self) -> u64 {
        self.shape().dims().iter().skip(1).map(|&dim| u64::from(dim)).product()
    }
}

/// A payload that is borrowed is one.
impl<P: Payload + ?Sized> Payload for &P {
    fn dtype(&self) -> DType {
        (**self).dtype()
    }

    fn shape(&self) -> Shape {
        (**self).shape()
    }

    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        (**self).read_at(offset, out)
    }

    fn bytes(&self) -> Option<&[u8]> {
        (**self).bytes()
    }
}
