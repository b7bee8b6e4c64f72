//! A safetensors file, or all files of a sharded model, described.

use super::{Key, Model, Report, Section, Space, Tensor, layers::Layers, type_shares, values};
use p64_core::extent::Extent;
use p64_core::metadata::Value;
use p64_std::safetensors::{SafetensorsFile, SafetensorsSet, role_of};
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;

/// Everything there is to say about the files. Places of tensors count from the beginning of their own file, places of
/// sections and layers as if the files stood one after the other.
pub fn describe(path: &Path, set: &SafetensorsSet, full: bool) -> Report {
    let name = |file: &SafetensorsFile| {
        let name = file.path().file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let is_several = set.files().len() > 1;
    let has_feedforward_norm = set.tensors().any(|tensor| tensor.name().ends_with(".pre_feedforward_layernorm.weight"));
    let mut layers = Layers::default();
    let mut tensors = Vec::new();
    let mut sections = Vec::new();
    let mut start = 0u64;
    for file in set.files() {
        let (data, len) = (file.data_offset(), file.file_len());
        let count = Some(file.header().tensors.len() as u64);
        sections.push(Section { name: "header", offset: start, bytes: data, records: count });
        sections.push(Section {
            name: "data",
            offset: start.saturating_add(data),
            bytes: len.saturating_sub(data),
            records: count,
        });
        for tensor in &file.header().tensors {
            let named = role_of(&tensor.name, has_feedforward_norm);
            let layer = layer_of(&tensor.name);
            let extent = file.extent(tensor);
            let place = Extent::new(start.saturating_add(extent.start()), extent.len()).unwrap_or_default();
            layers.add(0, layer, place, named.map(|(role, _)| role));
            tensors.push(Tensor {
                index: u32::try_from(tensors.len()).unwrap_or(u32::MAX),
                name: tensor.name.clone(),
                role: named.map(|(role, _)| role.to_string()),
                layer,
                dtype: tensor.dtype.to_string(),
                shape: tensor.shape.clone(),
                file: is_several.then(|| name(file)),
                offset: extent.start(),
                bytes: extent.len(),
                crc32c: None,
            });
        }
        start = start.saturating_add(len);
    }
    let all = || set.tensors().map(|tensor| tensor.info());
    let payload = all().map(|info| info.len()).fold(0, u64::saturating_add);
    let space = Space { front: start.saturating_sub(payload), payload, page_padding: 0, other_padding: 0 };
    let mut warnings = set.notes();
    warnings.extend(set.check_storable().err().map(|error| format!("no container can hold it as it is: {error}")));
    let parameters = all().filter_map(|info| info.elements()).fold(0, u64::saturating_add);
    Report {
        path: path.display().to_string(),
        format: "safetensors",
        version: None,
        bytes: start,
        header: [
            ("files", json!(set.files().iter().map(name).collect::<Vec<_>>())),
            ("tensor_count", json!(tensors.len())),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect(),
        model: Model { parameters, n_layer: layer_count(set), ..Model::default() },
        padding: space.padding(),
        space,
        warnings,
        sections,
        files: Vec::new(),
        types: type_shares(all().map(|info| (info.dtype, info.elements().unwrap_or(0), info.len()))),
        layers: layers.finish(),
        tensors,
        metadata: metadata(set, full),
        provenance: Vec::new(),
    }
}

fn layer_of(name: &str) -> Option<u32> {
    name.strip_prefix("model.layers.")?.split_once('.')?.0.parse().ok()
}

fn layer_count(set: &SafetensorsSet) -> Option<u64> {
    let last = set.tensors().filter_map(|tensor| layer_of(tensor.name())).max()?;
    Some(u64::from(last).saturating_add(1))
}

/// The pairs of the files' `__metadata__`; one that several files share, once.
fn metadata(set: &SafetensorsSet, full: bool) -> Vec<Key> {
    let mut seen = HashSet::new();
    let pairs = set.files().iter().filter_map(|file| file.header().metadata.as_ref()).flatten();
    let own = pairs.filter(|pair| seen.insert(*pair));
    own.map(|(key, value)| values::describe(key, Value::String(value.as_bytes()), full)).collect()
}
