//! Why no container can be planned.

use crate::error::Error;
use p64_core::limits::{MAX_FILE_V4, MAX_LAYERS, MAX_STRING};
use std::path::Path;

/// A description or an option that no container can hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// What stands before the blobs would not end below 4 GiB, or a blob not below 2^64.
    #[error("the container would need {bytes} bytes before its blobs, which have room for {MAX_FILE_V4}")]
    TooLarge {
        /// Bytes it would need; [`u64::MAX`] for more than can be counted.
        bytes: u64,
    },
    /// More tensors than a `u32` counts.
    #[error("{0} tensors, a container counts them in 32 bits")]
    TooManyTensors(usize),
    /// More layers than the limit.
    #[error("{0} layers, the limit is {MAX_LAYERS}")]
    TooManyLayers(u32),
    /// A page size that is no power of two of at least 256.
    #[error("page size {0} is not a power of two of at least 256")]
    PageSize(u32),
    /// A schedule without layer-major order.
    #[error("a layer schedule needs layer-major order")]
    ScheduleWithoutOrder,
    /// A name that the string table cannot hold.
    #[error("tensor name {0:?} is empty, holds a NUL byte or is longer than {MAX_STRING} bytes")]
    Name(String),
    /// Two tensors of one name.
    #[error("two tensors have the name {0:?}")]
    DuplicateName(String),
    /// A layer role without a layer below `n_layer`, or a layer for another role.
    #[error("tensor {0:?} has a layer role without a layer of the model, or a layer without such a role")]
    Layer(String),
    /// A length that does not follow from type and shape.
    #[error("tensor {name:?}: {found} bytes, type and shape need {expected}")]
    Size {
        /// The tensor.
        name: String,
        /// What type and shape need; 0 when that cannot be worked out.
        expected: u64,
        /// The length described.
        found: u64,
    },
    /// A complete model without a tokenizer or with a zero among its five integers.
    #[error("a container without tokenizer or hyperparameters must be a raw transcode")]
    Incomplete,
    /// A RoPE parameter that is not finite.
    #[error("a RoPE parameter is not finite")]
    NotFinite,
}

impl PlanError {
    /// The crate's error for it, about the output `path`.
    #[must_use]
    pub fn about(self, path: &Path) -> Error {
        match self {
            Self::TooLarge { bytes } => Error::TooLarge { path: path.to_owned(), bytes },
            Self::PageSize(_) | Self::ScheduleWithoutOrder => Error::Usage { reason: self.to_string() },
            other => Error::refused(path, other.to_string()),
        }
    }
}
