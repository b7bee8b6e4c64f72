//! Export to GGUF: the source of a byte-preserving conversion, rebuilt and proven by its SHA-256 (spec §13.1); of any other
//! container, a GGUF of the same values.

mod decoded;
mod file_type;
mod npz;
mod part;
mod safetensors;
mod stand_in;
mod stored;
mod stream;
mod tensors;

pub use npz::export_npz;
pub use safetensors::export_safetensors;
pub use tensors::{TensorExport, TensorFile, TensorOptions};

use crate::atomic_file::AtomicFile;
use crate::convert::provenance::{Provenance, default_order};
use crate::convert::{Phase, Progress};
use crate::error::{Error, Result};
use crate::files;
use crate::map::{MapOptions, MappedSet};
use crate::part_name::{self, PartName};
use crate::write::{Holes, Pairs};
use p64_core::container::Container;
use p64_core::metadata::Metadata;
use p64_core::validate::Integrity;
use part::{Outgoing, Part};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stored::{Stored, StoredTensor};

/// What an export wrote.
#[derive(Clone, Debug)]
pub struct ExportReport {
    /// The files, one unless a split source was rebuilt as such.
    pub files: Vec<ExportedFile>,
    /// Tensors of all files.
    pub tensors: u64,
    /// Whether the files have the digests of the source; `None` when the container does not say what those were, or
    /// when a split source was exported as one file.
    pub identical: Option<bool>,
    /// Types that GGUF does not have, and what they became, a sentence each.
    pub replaced: Vec<String>,
    /// What was edited since the conversion (keys, and tensors as `OLD=NEW`): then the result is not the source.
    pub edited: Vec<String>,
    /// Wall-clock time.
    pub duration: Duration,
}

/// One file of an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportedFile {
    /// Where it stands.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
}

/// Rebuilds the GGUF that a container was made from.
///
/// A container of a split GGUF becomes one file, without the `split.*` keys, unless `output` is named
/// `<stem>-00001-of-0000N.gguf` with the source's number of files: then the set itself is rebuilt, each file by its own.
///
/// # Errors
/// [`Error::Refused`] for a container without `p64.metadata`, with an element type that GGUF does not have, or with a
/// provenance that contradicts its tensors; [`Error::SameFile`]; and what opening and writing answer. A digest that
/// differs from the source's is no error but the report's content.
pub fn export_gguf(p64: &Path, output: &Path, progress: &mut dyn FnMut(Progress)) -> Result<ExportReport> {
    let start = Instant::now();
    // Lazy: every blob is verified when it is taken, right before it is written.
    let options = MapOptions { integrity: Integrity::Lazy, ..MapOptions::default() };
    let (set, _) = MappedSet::open(p64, &options)?;
    let stored = Stored::of_set(&set)?;
    let parts = plan(&stored, output)?;
    let is_input = |part: &&Part<'_>| set.parts().iter().any(|input| files::is_same_file(input.path(), &part.path));
    if let Some(part) = parts.iter().find(is_input) {
        return Err(Error::SameFile { path: part.path.clone() });
    }
    let total = parts.iter().map(Part::payload_len).sum();
    let mut done = 0u64;
    let mut finished = Vec::new();
    for part in &parts {
        let mut file = AtomicFile::create(&part.path)?;
        let mut out = Holes::new(file.file());
        let written = part.write(&mut out, &mut |bytes| {
            done = done.saturating_add(bytes);
            progress(Progress { phase: Phase::Write, done, total });
        })?;
        out.finish().map_err(|error| Error::io(&part.path, "write it", error))?;
        finished.push((file, written));
    }
    // No file of a set appears before all are complete.
    let mut files = Vec::new();
    for ((file, written), part) in finished.into_iter().zip(&parts) {
        file.commit()?;
        files.push(ExportedFile { path: part.path.clone(), bytes: written.bytes, sha256: written.sha256 });
    }
    let known = parts.iter().all(|part| part.digest.is_some());
    let equal = files.iter().zip(&parts).all(|(file, part)| part.digest == Some(file.sha256.as_str()));
    Ok(ExportReport {
        files,
        tensors: parts.iter().map(Part::tensor_count).sum(),
        identical: known.then_some(equal),
        replaced: replaced(&parts),
        edited: edits(&stored),
        duration: start.elapsed(),
    })
}

/// Rebuilds the GGUF of a container that is in memory; a split source becomes one file. Also answers whether the bytes
/// have the source's digest, as [`ExportReport::identical`] does. `label` stands for the container's path in messages.
///
/// # Errors
/// As [`export_gguf`], but for the system's answers.
pub fn export_bytes(label: &Path, container: &Container<'_>) -> Result<(Vec<u8>, Option<bool>)> {
    let mut out = Cursor::new(Vec::new());
    let mut identical = None;
    // Without a name of a set there is one part.
    for part in plan(&Stored::of_container(label, container)?, label)?.iter().take(1) {
        let written = part.write(&mut out, &mut |_| ())?;
        identical = part.digest.map(|digest| digest == written.sha256);
    }
    Ok((out.into_inner(), identical))
}

/// What became of types that GGUF does not have.
fn replaced(parts: &[Part<'_>]) -> Vec<String> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let notes = parts.iter().flat_map(Part::tensors).filter_map(|out| out.stand_in.note(out.stored.info.dtype()));
    for note in notes {
        let count = counts.entry(note).or_default();
        *count = count.saturating_add(1);
    }
    counts.into_iter().map(|(note, count)| format!("{count} x {note}")).collect()
}

/// What was edited since the conversion.
fn edits(stored: &Stored<'_>) -> Vec<String> {
    let edited = stored.provenance.as_ref().map(crate::edit::edited).unwrap_or_default();
    edited.into_iter().map(str::to_owned).collect()
}

/// What the files of an export hold.
fn plan<'a>(stored: &Stored<'a>, output: &Path) -> Result<Vec<Part<'a>>> {
    let refuse = |reason: String| Error::refused(stored.path, reason);
    let Some(metadata) = stored.metadata else {
        let reason = "the container has no p64.metadata, the keys that a GGUF needs; convert it again from its source";
        return Err(refuse(reason.to_owned()));
    };
    let mut provenance = match &stored.provenance {
        Some(pairs) => {
            Provenance::read(pairs).map_err(|key| refuse(format!("p64.provenance: {key} makes no sense")))?
        }
        None => Provenance::default(),
    };
    // Of a container whose keys were edited the source's lengths and digests say nothing.
    if !edits(stored).is_empty() {
        provenance.parts.clear();
    }
    if let Some(found) = stored.tensors.iter().find(|tensor| !tensor.info.dtype().is_known()) {
        let (name, dtype) = (found.info.name(), found.info.dtype());
        return Err(refuse(format!("tensor {name:?} has type {dtype}, which GGUF does not have")));
    }
    // The compatible policy lets them pass in a container; no GGUF reader would, ours included.
    let mut names = HashSet::new();
    let mut names_taken = stored.tensors.iter().map(|tensor| (tensor.index, tensor.info.name()));
    if let Some((index, name)) = names_taken.find(|(_, name)| name.is_empty() || !names.insert(*name)) {
        return Err(refuse(format!("tensor {index} has the name {name:?}, which is empty or taken")));
    }
    let order = table_order(stored, &provenance).map_err(refuse)?;
    let order = order.into_iter().map(Outgoing::new).collect::<Result<Vec<_>>>()?;
    // What the keys say of the weights is true of the source's.
    if provenance.is_quantized || order.iter().any(|tensor| !tensor.stand_in.is_lossless()) {
        let types = order.iter().map(|tensor| (tensor.stand_in.dtype(), tensor.stored.info.shape()));
        let pairs = file_type::renewed(&metadata, types);
        let bytes = Cow::Owned(pairs.pair_bytes().to_vec());
        let version = provenance.version.unwrap_or(3);
        let part = Part::new(output.to_owned(), version, pairs.len(), &bytes, &order, None).map_err(refuse)?;
        return Ok(vec![part]);
    }
    parts(&metadata, &provenance, &order, output).map_err(refuse)
}

/// The source's tables, one after the other.
fn table_order<'a>(
    stored: &Stored<'a>,
    provenance: &Provenance<'_>,
) -> std::result::Result<Vec<StoredTensor<'a>>, String> {
    let default = default_order(stored.tensors.iter().map(|tensor| (tensor.index, tensor.info)));
    let wrong = || "p64.source.tensor_order does not list each tensor once".to_owned();
    let order = match &provenance.order {
        None => default,
        Some(order) => {
            let (mut sorted, mut own) = (order.clone(), default);
            sorted.sort_unstable();
            own.sort_unstable();
            if sorted != own {
                return Err(wrong());
            }
            order.clone()
        }
    };
    order.into_iter().map(|index| stored.tensor(index).ok_or_else(wrong)).collect()
}

fn parts<'a>(
    metadata: &Metadata<'a>,
    provenance: &Provenance<'a>,
    order: &[Outgoing<'a>],
    output: &Path,
) -> std::result::Result<Vec<Part<'a>>, String> {
    let version = provenance.version.unwrap_or(3);
    let own_pairs = (u64::from(metadata.len()), Cow::Borrowed(metadata.pair_bytes()));
    let single = |(count, pairs): (u64, Cow<'a, [u8]>), known| {
        Part::new(output.to_owned(), version, count, &pairs, order, known).map(|part| vec![part])
    };
    match provenance.parts.as_slice() {
        // Keys of a split source are not those of the file that holds all of it.
        [] if metadata.iter().any(|(key, _)| key.starts_with("split.")) => single(without_split(metadata), None),
        [] => single(own_pairs, None),
        [only] => single(own_pairs, Some((only.size, only.digest))),
        several => {
            let count = several.len() as u64;
            let Some(name) =
                PartName::of(output, part_name::GGUF).filter(|name| name.number == 1 && name.count == count)
            else {
                return single(without_split(metadata), None);
            };
            let mut rest = order;
            let mut parts = Vec::new();
            for (number, part) in (1u64..).zip(several) {
                let tensors = part.tensors.and_then(|n| usize::try_from(n).ok());
                let cut = tensors.and_then(|n| rest.split_at_checked(n));
                let (own, after) = cut.ok_or("p64.source.split.tensors counts more tensors than there are")?;
                rest = after;
                let (keys, pairs) =
                    part.pairs.map_or_else(|| own_pairs.clone(), |(count, bytes)| (count, Cow::Borrowed(bytes)));
                let known = Some((part.size, part.digest));
                parts.push(Part::new(name.path(number), version, keys, &pairs, own, known)?);
            }
            if !rest.is_empty() {
                return Err(format!("p64.source.split.tensors leaves {} tensors in no file", rest.len()));
            }
            Ok(parts)
        }
    }
}

/// The keys of a split source for a file that holds all of it.
fn without_split<'a>(metadata: &Metadata<'a>) -> (u64, Cow<'a, [u8]>) {
    let mut pairs = Pairs::new();
    for (key, value) in metadata.iter().filter(|(key, _)| !key.starts_with("split.")) {
        pairs.value(key, value);
    }
    (pairs.len(), Cow::Owned(pairs.pair_bytes().to_vec()))
}
