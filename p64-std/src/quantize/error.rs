//! What an encoder refuses.

use p64_core::DType;

/// Why values are not encoded. The tensor's name is the caller's to add.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantizeError {
    /// A type that nothing here writes.
    #[error("nothing writes {0}; weights are quantised to {WRITTEN}")]
    Unsupported(DType),
    /// Values that are no whole rows, or rows that are no whole blocks.
    #[error("{len} values in rows of {row_len} are no whole blocks of {dtype}")]
    Rows {
        /// The type asked for.
        dtype: DType,
        /// Values given.
        len: usize,
        /// Values of a row.
        row_len: usize,
    },
    /// An output of another length than the blocks take.
    #[error("the blocks take {expected} bytes, the output has {found}")]
    Output {
        /// Bytes that the blocks take.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// Importance for another number of columns.
    #[error("the importance matrix has {found} columns, the tensor has {expected}: it was made for another model")]
    Columns {
        /// Values of a row.
        expected: usize,
        /// Importances given.
        found: usize,
    },
    /// An importance that is below zero or no number.
    #[error("the importance of column {column} is {value}, it must be finite and not below zero")]
    Importance {
        /// The column.
        column: usize,
        /// What stands there.
        value: f32,
    },
    /// NaN or an infinity among the values.
    #[error("element {index} is {value}; only finite values can be quantised, keep this tensor's type instead")]
    NotFinite {
        /// Position among the values given.
        index: usize,
        /// The value.
        value: f32,
    },
    /// A value beyond what the type's scales reach.
    #[error("element {index} is {value:e}, {dtype} reaches {limit:e}; keep this tensor's type, or take F32 or BF16")]
    TooLarge {
        /// The type asked for.
        dtype: DType,
        /// Position among the values given.
        index: usize,
        /// The value.
        value: f32,
        /// The largest magnitude of the type.
        limit: f32,
    },
}

/// The types that are written, as people write them.
pub(super) const WRITTEN: &str = "f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, \
                                  iq4_xs, tq1_0, tq2_0 and ternary";
