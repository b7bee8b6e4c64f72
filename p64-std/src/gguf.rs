//! The GGUF reader: versions 2 and 3, little-endian, every type of the GGML registry.
//!
//! ```text
//! magic         "GGUF"
//! version       u32   2 or 3
//! tensor_count  u64
//! kv_count      u64
//! pairs         kv_count key-value pairs           p64_core::metadata
//! infos         tensor_count records:              gguf::tensors
//!   name        u64 length, UTF-8 bytes
//!   n_dims      u32   1 to 4
//!   dims        u64 x n_dims, contiguous first
//!   type        u32
//!   offset      u64   from the start of the data
//! padding       zero, to general.alignment (32 when the key is missing)
//! data          payloads, each on the alignment
//! ```
//!
//! Which files are accepted is `docs/acceptance.md`; an [`Error`] names the rule. No number from the file is believed
//! before it is compared with the bytes that are left, nothing is allocated from a declared length, and the time is
//! linear in the bytes read.

mod error;
mod file;
mod head;
mod set;
mod tensors;

pub use error::{Error, Place, Problem};
pub use file::GgufFile;
pub(crate) use file::refuse;
pub(crate) use head::read_alignment;
pub use head::{Gguf, MAX_HEAD};
pub use set::GgufSet;
pub use tensors::GgufTensor;
pub(crate) use tensors::data_order;

#[cfg(test)]
mod tests;
