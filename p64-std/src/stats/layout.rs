//! What lies where in the files of a model, byte for byte.

use crate::map::MappedContainer;
use crate::safetensors::SafetensorsFile;
use crate::source::OpenSource;
use p64_core::extent::Extent;
use std::collections::HashMap;
use std::path::PathBuf;

/// One file of a model, cut into regions that follow on each other from its first byte to its last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileLayout {
    /// The file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Its regions in the order of the bytes; none is empty.
    pub regions: Vec<Region>,
}

/// A run of bytes with one purpose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// File offset of the first byte.
    pub start: u64,
    /// Number of bytes.
    pub len: u64,
    /// What they are.
    pub what: What,
}

/// The purpose of a run of bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A header or a table.
    Section(&'static str),
    /// A tensor: its place in [`OpenSource::tensors`].
    Tensor(usize),
    /// A tensor that a converter added, which [`OpenSource::tensors`] leaves out.
    Added(String),
    /// Between the others.
    Padding,
}

/// The layouts of all files of a model.
#[must_use]
pub fn file_layouts(source: &OpenSource) -> Vec<FileLayout> {
    match source {
        OpenSource::Gguf(set) => {
            let mut index = 0usize;
            let layout = |part: &crate::gguf::GgufFile| {
                let gguf = part.gguf();
                let keys = HEADER_OF_GGUF.saturating_add(gguf.metadata().pair_bytes().len() as u64);
                let mut pieces = vec![
                    (Extent::between(0, HEADER_OF_GGUF), What::Section("header")),
                    (Extent::between(HEADER_OF_GGUF, keys), What::Section("keys")),
                    (Extent::between(keys, gguf.info_end()), What::Section("tensor table")),
                ];
                for tensor in gguf.tensors() {
                    pieces.push((Some(gguf.extent(tensor)), What::Tensor(index)));
                    index = index.saturating_add(1);
                }
                FileLayout {
                    path: part.path().to_owned(),
                    bytes: gguf.file_len(),
                    regions: regions(pieces, gguf.file_len()),
                }
            };
            set.parts().iter().map(layout).collect()
        }
        OpenSource::P64(set) => {
            let places: HashMap<(usize, u32), usize> =
                set.tensors().enumerate().map(|(place, found)| ((found.file, found.info.index()), place)).collect();
            let layout = |(file, part): (usize, &MappedContainer)| {
                let container = part.container();
                let mut pieces = sections_of(container);
                for info in container.tensors() {
                    let place = places.get(&(file, info.index()));
                    let what = place.map_or_else(|| What::Added(info.name().to_owned()), |&place| What::Tensor(place));
                    pieces.push((Some(info.extent()), what));
                }
                let bytes = container.file_len();
                FileLayout { path: part.path().to_owned(), bytes, regions: regions(pieces, bytes) }
            };
            set.parts().iter().enumerate().map(layout).collect()
        }
        OpenSource::Safetensors(set) => {
            let mut place = 0usize;
            let layout = |file: &SafetensorsFile| {
                let bytes = file.file_len();
                let mut pieces = vec![(Extent::between(0, file.data_offset()), What::Section("header"))];
                for tensor in &file.header().tensors {
                    pieces.push((Some(file.extent(tensor)), What::Tensor(place)));
                    place = place.saturating_add(1);
                }
                FileLayout { path: file.path().to_owned(), bytes, regions: regions(pieces, bytes) }
            };
            set.files().iter().map(layout).collect()
        }
    }
}

const HEADER_OF_GGUF: u64 = 24;

fn sections_of(container: &p64_core::Container<'_>) -> Vec<(Option<Extent>, What)> {
    let sections = container.sections();
    vec![
        // The header ends where the hyperparameters begin at the latest (spec §3).
        (Extent::between(0, sections.hparams.start()), What::Section("header")),
        (Some(sections.hparams), What::Section("hparams")),
        (sections.schedule, What::Section("layer schedule")),
        (Some(sections.tensors), What::Section("tensor table")),
        (Some(sections.strings), What::Section("string table")),
        (Some(sections.manifold), What::Section("manifold table")),
        (Some(sections.tokenizer), What::Section("tokenizer")),
        (Some(sections.checksums), What::Section("checksum table")),
    ]
}

/// Sorts the pieces and fills what lies between them with padding.
fn regions(pieces: Vec<(Option<Extent>, What)>, bytes: u64) -> Vec<Region> {
    let mut pieces: Vec<(Extent, What)> =
        pieces.into_iter().filter_map(|(extent, what)| Some((extent.filter(|e| !e.is_empty())?, what))).collect();
    pieces.sort_by_key(|(extent, _)| extent.start());
    let mut regions = Vec::new();
    let mut at = 0u64;
    for (extent, what) in pieces {
        if extent.start() > at {
            regions.push(Region { start: at, len: extent.start().saturating_sub(at), what: What::Padding });
        }
        regions.push(Region { start: extent.start(), len: extent.len(), what });
        at = at.max(extent.end());
    }
    if bytes > at {
        regions.push(Region { start: at, len: bytes.saturating_sub(at), what: What::Padding });
    }
    regions
}
