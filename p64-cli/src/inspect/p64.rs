//! A container, or all files of a split set, described.

use super::{FileRow, Model, Report, Section, Space, Tensor, Tokenizer, layers::Layers, type_shares, values};
use p64_core::metadata::Metadata;
use p64_core::{Container, Role};
use p64_std::Result;
use p64_std::map::{MappedContainer, MappedSet, SetWarning};
use serde_json::json;
use std::path::Path;

/// Everything there is to say about the set. Under lazy integrity only the metadata tensors are verified. Of several
/// files, places of tensors count from the beginning of their own file, places of sections and layers as if the files
/// stood one after the other.
///
/// # Errors
/// Damage in the metadata tensors.
pub fn describe(path: &Path, set: &MappedSet, warnings: &[SetWarning], full: bool) -> Result<Report> {
    let metadata = set.metadata()?.unwrap_or(Metadata::EMPTY);
    let provenance = set.provenance()?.unwrap_or(Metadata::EMPTY);
    let mut report = Report {
        path: path.display().to_string(),
        format: "p64",
        bytes: set.file_len(),
        header: header(set),
        model: model(set, &metadata),
        metadata: values::keys(&metadata, full),
        provenance: values::keys(&provenance, full),
        ..Report::default()
    };
    let mut layers = Layers::default();
    let mut start = 0u64;
    for (at, part) in set.parts().iter().enumerate() {
        let container = part.container();
        let file = set.is_split().then(|| file_name(part));
        let sections = if file.is_none() { sections(container) } else { outline(container, start).into() };
        report.version = report.version.max(Some(container.header().version.get().into()));
        report.sections.extend(sections);
        report.space = report.space.plus(&space(container));
        for info in container.tensors() {
            // What the files of a set have beside the model's tensors is said by their provenance.
            if file.is_none() || !info.name().starts_with("p64.") {
                let extent = info.extent();
                let moved = p64_core::extent::Extent::new(start.saturating_add(extent.start()), extent.len());
                layers.add(at, layer(container, info.manifold_idx()), moved.unwrap_or(extent), known(info.role()));
            }
            report.tensors.push(tensor(container, &info, file.clone()));
        }
        if let Some(path) = file {
            let tensors = container.tensors().filter(|info| !info.name().starts_with("p64.")).count() as u64;
            let layers = layer_range(container);
            report.files.push(FileRow { path, bytes: container.file_len(), tensors, layers });
        }
        start = start.saturating_add(container.file_len());
    }
    let infos = || set.parts().iter().flat_map(|part| part.container().tensors());
    let shares = infos().map(|info| (info.dtype(), info.shape().elements().unwrap_or(0), info.extent().len()));
    report.types = type_shares(shares);
    report.layers = layers.finish();
    report.padding = report.space.padding();
    let files = report.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>();
    report.warnings = warnings
        .iter()
        .map(|(at, warning)| files.get(*at).map_or_else(|| warning.to_string(), |file| format!("{file}: {warning}")))
        .collect();
    Ok(report)
}

fn file_name(part: &MappedContainer) -> String {
    part.path().file_name().unwrap_or_default().display().to_string()
}

fn tensor(container: &Container<'_>, info: &p64_core::container::TensorInfo<'_>, file: Option<String>) -> Tensor {
    Tensor {
        index: info.index(),
        name: info.name().to_owned(),
        role: known(info.role()).map(|role| role.to_string()),
        layer: layer(container, info.manifold_idx()),
        dtype: info.dtype().to_string(),
        shape: info.shape().dims().iter().copied().map(u64::from).collect(),
        file,
        offset: info.extent().start(),
        bytes: info.extent().len(),
        crc32c: container.stored_checksum(Some(info.index())).map(|crc| format!("{crc:08x}")),
    }
}

/// First and last layer that a file holds tensors of.
fn layer_range(container: &Container<'_>) -> Option<[u32; 2]> {
    let layers = || container.tensors().filter_map(|info| layer(container, info.manifold_idx()));
    layers().min().zip(layers().max()).map(|(first, last)| [first, last])
}

/// The two halves of one file of several.
fn outline(container: &Container<'_>, start: u64) -> [Section; 2] {
    let front = container.sections().checksums.end();
    let records = Some(u64::from(container.tensor_count()));
    let blobs = container.file_len().saturating_sub(front);
    [
        Section { name: "front", offset: start, bytes: front, records: None },
        Section { name: "blobs", offset: start.saturating_add(front), bytes: blobs, records },
    ]
}

fn layer(container: &Container<'_>, index: u32) -> Option<u32> {
    Some(index).filter(|&index| index < container.n_layer())
}

fn known(role: Role) -> Option<Role> {
    Some(role).filter(|role| *role != Role::UNKNOWN)
}

fn header(set: &MappedSet) -> serde_json::Map<String, serde_json::Value> {
    let flags: Vec<String> = set.flags().names().map(str::to_owned).collect();
    let of_model = [("flags", json!(flags))].map(|(name, value)| (name.to_owned(), value)).into_iter();
    let Some(container) = set.single() else {
        let page_size = set.parts().first().map(|part| part.container().header().page_size.get());
        let shared = [
            ("page_size", json!(page_size)),
            ("tensor_count", json!(set.tensors().count())),
            ("files", json!(set.parts().iter().map(file_name).collect::<Vec<_>>())),
            ("set", json!(set.identity())),
        ];
        return of_model.chain(shared.map(|(name, value)| (name.to_owned(), value))).collect();
    };
    let header = container.header();
    let own = [
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
    ];
    of_model.chain(own.map(|(name, value)| (name.to_owned(), value))).collect()
}

fn model(set: &MappedSet, metadata: &Metadata<'_>) -> Model {
    let hparams = set.hparams();
    let stored = |value: u32| Some(u64::from(value)).filter(|&value| value != 0);
    let elements = set.tensors().map(|tensor| tensor.info).filter(|info| !info.name().starts_with("p64."));
    let mut model = Model {
        n_layer: stored(hparams.n_layer.get()),
        n_embd: stored(hparams.n_embd.get()),
        n_head: stored(hparams.n_head.get()),
        n_kv_head: stored(hparams.n_kv_head.get()),
        vocabulary: stored(hparams.vocab_size.get()),
        parameters: elements.filter_map(|info| info.shape().elements()).fold(0, u64::saturating_add),
        ..super::gguf::model(metadata)
    };
    if let Some(section) = set.tokenizer() {
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
