//! A raw transcode: every tensor under its own name, and nothing known of the model (spec §13.3).

use super::role::{has_feedforward_norm, role_of};
use super::set::SafetensorsSet;
use crate::error::Result;
use crate::source::{SourceModel, SourceTensor};
use crate::write::Pairs;
use p64_core::hash::fnv1a64;

/// Bits that a name's hash keeps (spec §8).
const HASH_MASK: u64 = 0x0fff_ffff_ffff_ffff;

/// Keys of `p64.provenance` that give back what a container has no other place for.
pub(crate) mod keys {
    /// The JSON text of each file's `__metadata__`, empty where a file has none.
    pub const METADATA: &str = "p64.source.safetensors.metadata";
    /// The names of the files that an index lists.
    pub const NAMES: &str = "p64.source.safetensors.names";
    /// The JSON text of the index's `metadata`.
    pub const INDEX: &str = "p64.source.safetensors.index";
    /// The names of the tensors of rank 0, which a container holds as rows of one element.
    pub const SCALARS: &str = "p64.source.safetensors.scalars";
    /// Tensors of each file.
    pub const TENSORS: &str = "p64.source.split.tensors";
}

/// The model of a raw transcode.
///
/// # Errors
/// As [`SafetensorsSet::check_storable`].
pub fn raw_model(set: &SafetensorsSet) -> Result<SourceModel<'_>> {
    Ok(SourceModel { tensors: tensors(set)?, metadata: None, provenance: provenance(set), notes: set.notes() })
}

/// The tensors of a raw transcode: files in order, in each the tensors in the order of their bytes.
pub(crate) fn tensors(set: &SafetensorsSet) -> Result<Vec<SourceTensor<'_>>> {
    let has_feedforward_norm = has_feedforward_norm(set.tensors().map(|tensor| tensor.name()));
    set.tensors()
        .map(|stored| {
            let mut tensor = SourceTensor::new(stored.name(), stored.info().begin, stored.payload()?);
            tensor.source_name_hash = Some(fnv1a64(stored.name().as_bytes()) & HASH_MASK);
            tensor.role = role_of(stored.name(), has_feedforward_norm);
            Ok(tensor)
        })
        .collect()
}

fn provenance(set: &SafetensorsSet) -> Pairs {
    let mut pairs = Pairs::new();
    pairs.str("p64.source.format", "safetensors");
    let headers = || set.files().iter().map(|file| file.header());
    if set.files().len() > 1 {
        let counts = headers().map(|header| u32::try_from(header.tensors.len()).unwrap_or(u32::MAX));
        pairs.u32_array(keys::TENSORS, &counts.collect::<Vec<_>>());
    }
    if set.is_sharded() {
        let names = set.files().iter().map(|file| file.path().file_name().unwrap_or_default().to_string_lossy());
        pairs.str_array(keys::NAMES, &names.collect::<Vec<_>>());
    }
    if let Some(metadata) = set.index_metadata() {
        pairs.str(keys::INDEX, metadata);
    }
    if headers().any(|header| header.metadata.is_some()) {
        let texts = headers().map(|header| header.metadata.as_ref().map_or_else(String::new, |pairs| to_json(pairs)));
        pairs.str_array(keys::METADATA, &texts.collect::<Vec<_>>());
    }
    let scalars: Vec<&str> =
        set.tensors().filter(|tensor| tensor.info().shape.is_empty()).map(|tensor| tensor.name()).collect();
    if !scalars.is_empty() {
        pairs.str_array(keys::SCALARS, &scalars);
    }
    pairs
}

/// An object of texts, in order.
pub(super) fn to_json(pairs: &[(String, String)]) -> String {
    let object: serde_json::Map<String, serde_json::Value> =
        pairs.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    serde_json::Value::Object(object).to_string()
}
