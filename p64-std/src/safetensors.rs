//! safetensors in and out: one file, or the files that an index names (`docs/acceptance.md` §4).
//!
//! ```text
//! open       a file, a model.safetensors.index.json or a folder with either -> SafetensorsSet, headers checked
//! tensors    SafetensorsSet -> StoredTensor: name, type, shape as stored, and a Payload where GGML knows the type
//! raw_model  SafetensorsSet -> SourceModel of a raw transcode (spec §13.3)
//! ```
//!
//! In memory are the headers, of at most 100 MB each; payloads are read when they are asked for.

mod dtype;
mod error;
mod file;
mod header;
mod index;
mod raw;
mod role;
mod set;
mod stored;
mod write;

pub use dtype::ElementType;
pub use error::{Error, Place, Problem};
pub use file::SafetensorsFile;
pub(crate) use header::parse_metadata;
pub use header::{Header, MAX_HEADER, TensorInfo};
pub use index::Index;
pub(crate) use index::is_plain;
pub use raw::raw_model;
pub(crate) use raw::{keys as provenance_keys, tensors};
pub use role::role_of;
pub use set::SafetensorsSet;
pub(crate) use set::{FILE_NAME, INDEX_NAME};
pub use stored::{StoredPayload, StoredTensor};
pub use write::{Described, encode_header};
