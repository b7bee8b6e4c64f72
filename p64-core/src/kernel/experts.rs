//! Expert matrices stacked into one tensor: the weights of a mixture of experts.
//!
//! ```text
//! GGML dims   [cols, rows, experts]
//! bytes       expert 0: row 0, row 1, ...   expert 1: row 0, ...
//! ```
#![forbid(unsafe_code)]

use super::Matrix;
use crate::error::{Code, Error, Place, Result};
use crate::layout::dtype::DType;

/// `count` matrices of `rows` x `cols` weights, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'a> {
    dtype: DType,
    count: usize,
    rows: usize,
    cols: usize,
    bytes: &'a [u8],
}

impl<'a> Stack<'a> {
    /// A view of `bytes`. P64's ternary type is refused: its rows do not begin on a byte, and the scale in front of them is
    /// that of all experts.
    ///
    /// # Errors
    /// [`Code::UnsupportedDType`] and otherwise as [`Matrix::new`] of `count * rows` rows; [`Code::LengthMismatch`] for no
    /// expert.
    pub fn new(dtype: DType, count: usize, rows: usize, cols: usize, bytes: &'a [u8]) -> Result<Self> {
        if dtype == DType::Ternary {
            return Err(Error::new(Code::UnsupportedDType, Place::File).values(0, u64::from(dtype.id())));
        }
        if count == 0 {
            return Err(beyond(1, 0));
        }
        Matrix::new(dtype, count.saturating_mul(rows), cols, bytes)?;
        Ok(Self { dtype, count, rows, cols, bytes })
    }

    /// Number of experts.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Rows of each expert: the outputs of a product.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row: the inputs of a product.
    #[must_use]
    pub const fn cols(&self) -> usize {
        self.cols
    }

    /// Bytes of one expert.
    #[must_use]
    pub const fn expert_len(&self) -> usize {
        match self.bytes.len().checked_div(self.count) {
            Some(len) => len,
            None => 0,
        }
    }

    /// The matrix of one expert.
    ///
    /// # Errors
    /// [`Code::LengthMismatch`] for an expert past the last.
    pub fn expert(&self, index: usize) -> Result<Matrix<'a>> {
        let len = self.expert_len();
        let bytes = index.checked_mul(len).filter(|_| index < self.count).and_then(|from| self.bytes.get(from..));
        let bytes = bytes.and_then(|bytes| bytes.get(..len)).ok_or(beyond(self.count, index))?;
        Matrix::new(self.dtype, self.rows, self.cols, bytes)
    }
}

const fn beyond(count: usize, index: usize) -> Error {
    Error::new(Code::LengthMismatch, Place::File).values(count as u64, index as u64)
}
