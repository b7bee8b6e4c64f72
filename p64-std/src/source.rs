//! Models as their tensors, whatever file they lie in: what converting, comparing and counting have in common.
//!
//! ```text
//! open      GGUF, P64 or another format, told by its first bytes -> OpenSource
//! tensors   OpenSource -> SourceTensor: a name and a Payload, whose bytes are read on demand
//! adapt     a Payload over other payloads: rows in another order, several tensors stacked, another element type
//! tiles     a Payload over one that has its rows arranged otherwise; SourceTensor has row after row
//! ```
//!
//! Nothing here holds more of a payload in memory than was asked for.

mod files;
mod model;
mod payload;
mod tiles;

pub use files::OpenSource;
pub(crate) use files::container_payload;
pub use payload::Payload;
pub(crate) use tiles::Rearranged;

use p64_core::Role;
use p64_core::layout::tensor::RawTensorEntry;

/// One tensor of a model.
pub struct SourceTensor<'s> {
    /// The name that it has, or is to have in a container.
    pub name: String,
    /// Offset in the data region of the file that it came from (spec §7), or [`RawTensorEntry::NO_SOURCE`].
    pub source_offset: u64,
    /// Hash of the name in that file (spec §8); `None` for FNV-1a-64 of `name`.
    pub source_name_hash: Option<u64>,
    /// Role and layer where they do not follow from `name` as a GGUF's (spec §7.1).
    pub role: Option<(Role, Option<u32>)>,
    /// Type, shape and bytes.
    pub payload: Box<dyn Payload + 's>,
}

impl<'s> SourceTensor<'s> {
    /// A tensor that keeps its name.
    #[must_use]
    pub fn new(name: impl Into<String>, source_offset: u64, payload: impl Payload + 's) -> Self {
        // Whoever reads a model finds row after row.
        let stock = payload.dtype().stock();
        let payload: Box<dyn Payload + 's> = match Rearranged::new(payload, stock) {
            Ok(rearranged) => Box::new(rearranged),
            Err(payload) => Box::new(payload),
        };
        Self { name: name.into(), source_offset, source_name_hash: None, role: None, payload }
    }

    /// A tensor that no file had.
    #[must_use]
    pub fn made(name: impl Into<String>, payload: impl Payload + 's) -> Self {
        Self::new(name, RawTensorEntry::NO_SOURCE, payload)
    }
}

impl std::fmt::Debug for SourceTensor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (dtype, shape) = (self.payload.dtype(), self.payload.shape());
        f.debug_struct("SourceTensor").field("name", &self.name).field("dtype", &dtype).field("shape", &shape).finish()
    }
}

/// A model that is to become a container: what a reader of any format hands to the converter.
#[derive(Debug)]
pub struct SourceModel<'s> {
    /// The tensors, in the source's order.
    pub tensors: Vec<SourceTensor<'s>>,
    /// The content of `p64.metadata` (GGUF keys in GGUF encoding, spec §17.1), where something is known of the model.
    pub metadata: Option<crate::write::Pairs>,
    /// Keys for `p64.provenance` (spec §17.2): `p64.source.format`, `p64.alias.*` and so on, in any order. The converter
    /// adds `p64.profile`, the lengths and digests of the files, the order of the tensors where it is needed, and
    /// `p64.writer`; a profile and digests that are given stay, for a source that remembers where it came from.
    pub provenance: crate::write::Pairs,
    /// What a person should know of the reading.
    pub notes: Vec<String>,
}
