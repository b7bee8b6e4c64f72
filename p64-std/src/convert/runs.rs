//! The runs of values in which a tensor is encoded.

use p64_core::quant::ternary::PER_BYTE;
use p64_core::{DType, Shape};

/// Values of a run, about: 1 MiB of `f32`. A multiple of every block and of the five values of a ternary byte.
const RUN: u64 = 1280 * 204;

/// Consecutive values of one matrix of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    /// Place of the first value in the tensor.
    pub first: u64,
    /// Number of values.
    pub len: usize,
    /// Values of a row, or of the part of one that the run is.
    pub row: usize,
    /// Place in its row of the first value.
    pub column: usize,
}

impl Run {
    /// The byte of a ternary payload, without its scale, that has the first value.
    pub const fn first_byte(&self) -> u64 {
        self.first / PER_BYTE as u64
    }

    /// Values in that byte before the first.
    #[expect(clippy::cast_possible_truncation, reason = "below five")]
    pub const fn first_in_byte(&self) -> usize {
        (self.first % PER_BYTE as u64) as usize
    }
}

/// All runs of a tensor, in the order of its values.
#[derive(Debug)]
pub(super) struct Runs {
    row: u64,
    /// Values of one matrix; of the whole tensor where the target has no rows.
    matrix_len: u64,
    matrices: u64,
    matrix: u64,
    /// Place in the matrix of the next run.
    at: u64,
}

impl Runs {
    /// The runs of a tensor that is to become `to`. None for one without values.
    pub fn of(shape: &Shape, to: DType) -> Self {
        let row = shape.row_len();
        let elements = shape.elements().unwrap_or_default();
        let dim = |at: usize| shape.dims().get(at).map_or(1, |&dim| u64::from(dim));
        if to == DType::Ternary {
            return Self { row: elements, matrix_len: elements, matrices: 1, matrix: 0, at: 0 };
        }
        let matrix_len = row.saturating_mul(dim(1));
        Self { row, matrix_len, matrices: dim(2).saturating_mul(dim(3)), matrix: 0, at: 0 }
    }
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.row == 0 || self.matrix_len == 0 {
            return None;
        }
        if self.at == self.matrix_len {
            (self.matrix, self.at) = (self.matrix.saturating_add(1), 0);
        }
        if self.matrix >= self.matrices {
            return None;
        }
        let column = self.at.checked_rem(self.row).unwrap_or_default();
        let (len, row) = if self.row > RUN {
            let len = RUN.min(self.row.saturating_sub(column));
            (len, len)
        } else {
            let rows = RUN.checked_div(self.row).unwrap_or_default().max(1).saturating_mul(self.row);
            (rows.min(self.matrix_len.saturating_sub(self.at)), self.row)
        };
        let first = self.matrix.saturating_mul(self.matrix_len).saturating_add(self.at);
        self.at = self.at.saturating_add(len);
        let size = |value: u64| usize::try_from(value).ok();
        Some(Run { first, len: size(len)?, row: size(row)?, column: size(column)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(dims: &[u32], to: DType) -> Vec<Run> {
        Runs::of(&Shape::new(dims).expect("rank 1 to 4"), to).collect()
    }

    #[test]
    fn every_value_once_in_whole_rows() {
        for (dims, to) in [
            (&[256u32, 3][..], DType::Q4_K),
            (&[768, 5000], DType::Q4_K),
            (&[32, 7, 3, 2], DType::Q4_0),
            (&[2_000_128, 2], DType::Q8_0),
            (&[999, 1001], DType::Ternary),
            (&[7], DType::F16),
        ] {
            let mut at = 0;
            for run in runs(dims, to) {
                assert_eq!(run.first, at);
                at += run.len as u64;
                let row = u64::from(dims[0]);
                if to == DType::Ternary {
                    assert_eq!(run.first_in_byte(), 0);
                } else {
                    assert_eq!(run.column as u64, run.first % row);
                    assert!(
                        run.len as u64 == run.row as u64 || (run.row as u64 == row && run.len.is_multiple_of(run.row))
                    );
                    let matrix = row * dims.get(1).map_or(1, |&rows| u64::from(rows));
                    assert_eq!((run.first + run.len as u64 - 1) / matrix, run.first / matrix, "within one matrix");
                }
                assert!(run.len as u64 <= RUN);
            }
            assert_eq!(at, dims.iter().map(|&dim| u64::from(dim)).product::<u64>(), "{dims:?}");
        }
    }

    #[test]
    fn tensors_without_values_have_no_run() {
        assert!(runs(&[0, 5], DType::F16).is_empty());
        assert!(runs(&[5, 0], DType::F16).is_empty());
        assert!(runs(&[0], DType::Ternary).is_empty());
    }
}
