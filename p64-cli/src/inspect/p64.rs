//! A container, described.

use super::{Model, Report, Section, Space, Tensor, Tokenizer, layers::Layers, type_shares, values};
use p64_core::metadata::Metadata;
use p64_core::{Container, Error, Role};
use serde_json::json;
use std::path::Path;

/// Everything there is to say about `container`. Under lazy integrity only the two metadata tensors are verified.
///
/// # Errors
/// Damage in the metadata tensors.
pub fn describe(path: &Path, container: &Container<'_>, warnings: &[Error], full: bool) -> Result<Report, Error> {
    let metadata = container.metadata()?.unwrap_or(Metadata::EMPTY);
    let provenance = container.provenance()?.unwrap_or(Metadata::EMPTY);
    let infos = || container.tensors();
    let mut layers = Layers::default();
    for info in infos() {
        layers.add(layer(container, info.manifold_idx()), info.extent(), known(info.role()));
    }
    let tensors = infos().map(|info| Tensor {
        index: info.index(),
        name: info.name().to_owned(),
        role: known(info.role()).map(|role| role.to_string()),
        layer: layer(container, info.manifold_idx()),
        dtype: info.dtype().to_string(),
        shape: info.shape().dims().iter().copied().map(u64::from).collect(),
        file: None,
        offset: info.extent().start(),
        bytes: info.extent().len(),
        crc32c: container.stored_checksum(Some(info.index())).map(|crc| format!("{crc:08x}")),
    });
    let shares = infos().map(|info| (info.dtype(), info.shape().elements().unwrap_or(0), info.extent().len()));
    let space = space(container);
    Ok(Report {
        path: path.display().to_string(),
        format: "p64",
        version: Some(container.header().version.get().into()),
        bytes: container.file_len(),
        header: header(container),
        model: model(container, &metadata),
        padding: space.padding(),
        space,
        warnings: warnings.iter().map(ToString::to_string).collect(),
        sections: sections(container),
        types: type_shares(shares),
        layers: layers.finish(),
        tensors: tensors.collect(),
        metadata: values::keys(&metadata, full),
        provenance: values::keys(&provenance, full),
    })
}

fn layer(container: &Container<'_>, index: u32) -> Option<u32> {
    Some(index).filter(|&index| index < container.n_layer())
}

fn known(role: Role) -> Option<Role> {
    Some(role).filter(|role| *role != Role::UNKNOWN)
}

fn header(container: &Container<'_>) -> serde_json::Map<String, serde_json::Value> {
    let header = container.header();
    let flags: Vec<&str> = container.flags().names().collect();
    [
        ("flags", json!(flags)),
        ("page_size", json!(header.page_size.get())),
        ("tensor_count", json!(header.tensor_count.get())),
        ("hparams_offset", json!(header.hparams_offset.get())),
        ("role_table_offset", json!(header.role_table_offset.get())),
        ("tensor_table_offset", json!(header.tensor_table_offset.get())),
        ("string_table_offset", json!(header.string_table_offset.get())),
        ("manifold_table_offset", json!(header.manifold_table_offset.get())),
        ("tokenizer_offset", json!(header.tokenizer_offset.get())),
        ("checksum_offset", json!(header.checksum_offset.get())),
        ("metadata_crc32c", json!(container.stored_checksum(None).map(|crc| format!("{crc:08x}")))),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect()
}

fn model(container: &Container<'_>, metadata: &Metadata<'_>) -> Model {
    let hparams = container.hparams();
    let stored = |value: u32| Some(u64::from(value)).filter(|&value| value != 0);
    let elements = container.tensors().filter(|info| !info.name().starts_with("p64."));
    let mut model = Model {
        n_layer: stored(hparams.n_layer.get()),
        n_embd: stored(hparams.n_embd.get()),
        n_head: stored(hparams.n_head.get()),
        n_kv_head: stored(hparams.n_kv_head.get()),
        vocabulary: stored(hparams.vocab_size.get()),
        parameters: elements.filter_map(|info| info.shape().elements()).fold(0, u64::saturating_add),
        ..super::gguf::model(metadata)
    };
    if let Some(section) = container.tokenizer() {
        let named = |key: &str| metadata.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        model.tokenizer = Some(Tokenizer {
            model: named("tokenizer.ggml.model"),
            pre: Some(section.pre().to_owned()).filter(|pre| !pre.is_empty()),
            tokens: section.token_count().into(),
            merges: section.merge_count().into(),
            bos: section.bos().map(u64::from),
            eos: section.eos().map(u64::from),
            add_bos: Some(section.add_bos()),
        });
    }
    model
}

fn sections(container: &Container<'_>) -> Vec<Section> {
    let sections = container.sections();
    let n_layer = u64::from(container.n_layer());
    let count = u64::from(container.tensor_count());
    let tokens = container.tokenizer().map(|tokenizer| u64::from(tokenizer.token_count()));
    let mut rows = vec![Section { name: "header", offset: 0, bytes: 64, records: None }];
    let mut add = |name, extent: p64_core::extent::Extent, records| {
        rows.push(Section { name, offset: extent.start(), bytes: extent.len(), records });
    };
    add("hparams", sections.hparams, None);
    if let Some(schedule) = sections.schedule {
        add("layer schedule", schedule, Some(n_layer));
    }
    add("tensor table", sections.tensors, Some(count));
    add("string table", sections.strings, Some(count));
    add("manifold table", sections.manifold, Some(n_layer + 1));
    add("tokenizer", sections.tokenizer, tokens);
    add("checksum table", sections.checksums, Some(count + 1));
    let end = container.file_len();
    rows.sort_by_key(|row| (row.offset, row.bytes));
    let start = container.tensors().map(|info| info.extent().start()).min().unwrap_or(end);
    rows.push(Section { name: "blobs", offset: start, bytes: end.saturating_sub(start), records: Some(count) });
    rows
}

fn space(container: &Container<'_>) -> Space {
    let front = container.sections().checksums.end();
    let mut space = Space { front, ..Space::default() };
    let mut end = front;
    let mut group = None;
    for info in container.tensors() {
        let extent = info.extent();
        let gap = extent.start().saturating_sub(end);
        // Unpacked files begin every blob on a page, packed ones the first of each group (spec §7.4).
        let packed = container.flags().contains(p64_core::layout::flags::Flags::LAYER_PACK);
        if packed && group == Some(info.manifold_idx()) {
            space.other_padding += gap;
        } else {
            space.page_padding += gap;
        }
        space.payload += extent.len();
        (group, end) = (Some(info.manifold_idx()), extent.end());
    }
    space.other_padding += container.file_len().saturating_sub(end);
    space
}
