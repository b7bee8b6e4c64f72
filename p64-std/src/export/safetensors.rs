//! Export to safetensors: the files of a raw transcode as they were, and complete models under Hugging Face's names.

use super::stream::{Hashed, copy};
use super::tensors::{Outgoing, TensorExport, TensorFile, TensorOptions, outgoing, path_of, scalars, select};
use crate::atomic_file::AtomicFile;
use crate::convert::{Phase, Progress};
use crate::error::{Error, Result};
use crate::hf;
use crate::safetensors::{
    self, Described, ElementType, FILE_NAME, INDEX_NAME, MAX_HEADER, parse_metadata, provenance_keys as keys,
};
use crate::source::{OpenSource, SourceModel, SourceTensor};
use p64_core::metadata::Metadata;
use serde_json::json;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Writes the tensors of a model of any format as safetensors.
///
/// A path that ends in `.safetensors` becomes one file. Any other becomes a folder, which is made if there is none:
/// `model.safetensors`, or the files and the index that a raw transcode of a sharded model remembers. A complete model gets
/// Hugging Face's names and order of rows, and in a folder a `config.json`: that of the source, or one made from its keys.
///
/// # Errors
/// What opening answers; [`Error::Refused`] for quantised tensors, unless the options say what becomes of them;
/// [`Error::SameFile`] when an output is one of the source's files; and what writing answers. No file of several appears
/// before all are complete.
pub fn export_safetensors(
    input: &Path,
    output: &Path,
    options: &TensorOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<TensorExport> {
    let start = Instant::now();
    let source = OpenSource::open(input)?;
    let mut model = source.model()?;
    let area = model.provenance.to_area();
    let provenance = Metadata::parse(&area, 0).map_err(|error| Error::core(path_of(&source), error))?;
    let plan = plan(&source, &mut model, &provenance, output, options)?;
    let outputs = plan.files.iter().map(|file| &file.path).chain(plan.texts.iter().map(|(path, _)| path));
    for path in outputs {
        if source.has_file(path) {
            return Err(Error::SameFile { path: path.clone() });
        }
    }
    let made = plan.make_folder()?;
    let written = plan.write(progress);
    if written.is_err() && made {
        // Only what this export has made, and only while nothing else is in it.
        let _ = std::fs::remove_dir(output);
    }
    let files = written?;
    let known = plan.files.iter().all(|file| file.digest.is_some());
    let is_equal = |(file, plan): (&TensorFile, &File<'_>)| file.sha256 == plan.digest;
    let identical = known.then(|| files.iter().zip(&plan.files).all(is_equal));
    // Of a complete model equal bytes prove that nothing changed, and others say nothing: another program may have written
    // the same tensors.
    let identical = identical.filter(|equal| plan.is_transcode || *equal);
    let tensors = plan.files.iter().map(|file| file.tensors.len() as u64).sum();
    Ok(TensorExport { files, tensors, identical, notes: model.notes, duration: start.elapsed() })
}

/// Everything that is to be written.
struct Plan<'s> {
    /// The folder of several files.
    folder: Option<PathBuf>,
    files: Vec<File<'s>>,
    /// Small files beside them.
    texts: Vec<(PathBuf, String)>,
    /// Whether the source was transcoded as it was.
    is_transcode: bool,
}

struct File<'s> {
    path: PathBuf,
    tensors: Vec<Outgoing<'s>>,
    metadata: Option<Vec<(String, String)>>,
    /// The SHA-256 that the source's file had, when this is to be that file.
    digest: Option<String>,
}

fn plan<'s>(
    source: &'s OpenSource,
    model: &mut SourceModel<'s>,
    provenance: &Metadata<'_>,
    output: &Path,
    options: &TensorOptions,
) -> Result<Plan<'s>> {
    let path = path_of(source);
    let is_file = output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("safetensors"));
    let is_file = is_file && !output.is_dir();
    let folder = (!is_file).then(|| output.to_owned());
    let single = || folder.as_ref().map_or_else(|| output.to_owned(), |folder| folder.join(FILE_NAME));
    let count = model.tensors.len();
    let tensors = select(path, model, options)?;
    let is_whole = tensors.len() == count && options.select.is_empty();

    if let Some(keys) = &model.metadata {
        let mut texts = Vec::new();
        let mut tensors = tensors;
        if !options.own_names && is_whole {
            let area = keys.to_area();
            let keys = Metadata::parse(&area, 0).map_err(|error| Error::core(path, error))?;
            let config = provenance.str("p64.source.config").map_err(|error| Error::core(path, error))?;
            let folder_of = hf::inverse::folder(path, &keys, config, tensors)?;
            tensors = folder_of.tensors;
            tensors.sort_by(|a, b| library_order(a).cmp(&library_order(b)));
            match &folder {
                Some(folder) => {
                    texts.push((folder.join("config.json"), folder_of.config));
                    let note = "the tokenizer's own files are not kept in a container: copy tokenizer.json and \
                                tokenizer_config.json beside config.json from where the model came from";
                    model.notes.push(note.to_owned());
                }
                None => model.notes.push("config.json is written where OUT is a folder".to_owned()),
            }
        }
        let tensors = outgoing(path, tensors, &HashSet::new())?;
        let metadata = Some(vec![("format".to_owned(), "pt".to_owned())]);
        let digest = digests(provenance).into_iter().next().filter(|_| !options.own_names && is_whole);
        let files = vec![File { path: single(), tensors, metadata, digest }];
        return Ok(Plan { folder, files, texts, is_transcode: false });
    }
    let tensors = outgoing(path, tensors, &scalars(provenance))?;
    let shards = Shards::read(provenance).filter(|_| is_whole);
    let (Some(shards), Some(folder)) = (shards, &folder) else {
        let metadata = metadata_of(provenance, 0);
        let digest = digests(provenance).into_iter().next().filter(|_| is_whole);
        let digest = digest.filter(|_| provenance.get(keys::NAMES).is_none());
        return Ok(Plan {
            folder: folder.clone(),
            files: vec![File { path: single(), tensors, metadata, digest }],
            texts: Vec::new(),
            is_transcode: true,
        });
    };
    shards.plan(folder, tensors, provenance).map_err(|reason| Error::refused(path, reason))
}

/// The order in which the library that defines the format writes tensors.
fn library_order<'t>(tensor: &'t SourceTensor<'_>) -> (Reverse<Option<ElementType>>, &'t str) {
    (Reverse(ElementType::from_ggml(tensor.payload.dtype())), &tensor.name)
}

/// The files of a sharded source.
struct Shards {
    names: Vec<String>,
    counts: Vec<usize>,
}

impl Shards {
    fn read(provenance: &Metadata<'_>) -> Option<Self> {
        let names: Vec<String> = texts(provenance, keys::NAMES)?;
        let counts: Vec<usize> = match provenance.array(keys::TENSORS).ok().flatten() {
            Some(counts) => {
                counts.iter().map(|count| usize::try_from(count.as_u64()?).ok()).collect::<Option<Vec<_>>>()?
            }
            None => vec![usize::MAX],
        };
        (names.len() == counts.len()).then_some(Self { names, counts })
    }

    fn plan<'s>(
        self,
        folder: &Path,
        tensors: Vec<Outgoing<'s>>,
        provenance: &Metadata<'_>,
    ) -> std::result::Result<Plan<'s>, String> {
        let mut seen = HashSet::new();
        if let Some(name) = self.names.iter().find(|name| {
            // Nothing but tensors is written under a name that a container brings along.
            !safetensors::is_plain(name) || !name.ends_with(".safetensors") || !seen.insert(name.as_str())
        }) {
            return Err(format!("p64.provenance: {} has {name:?}, which names no file of its own", keys::NAMES));
        }
        let mut map = BTreeMap::new();
        let mut rest = tensors.into_iter();
        let mut files = Vec::new();
        let digests = digests(provenance);
        for (index, (name, count)) in self.names.iter().zip(self.counts).enumerate() {
            let tensors: Vec<Outgoing<'s>> = rest.by_ref().take(count).collect();
            map.extend(tensors.iter().map(|tensor| (tensor.name.clone(), name.clone())));
            let digest = digests.get(index).cloned();
            files.push(File { path: folder.join(name), tensors, metadata: metadata_of(provenance, index), digest });
        }
        if rest.next().is_some() {
            return Err(format!("p64.provenance: {} leaves tensors in no file", keys::TENSORS));
        }
        let metadata = provenance.str(keys::INDEX).ok().flatten();
        let metadata = metadata.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
        let index = json!({ "metadata": metadata.unwrap_or_else(|| json!({})), "weight_map": map });
        let index = format!("{index:#}\n");
        Ok(Plan {
            folder: Some(folder.to_owned()),
            files,
            texts: vec![(folder.join(INDEX_NAME), index)],
            is_transcode: true,
        })
    }
}

fn texts(provenance: &Metadata<'_>, key: &str) -> Option<Vec<String>> {
    let array = provenance.array(key).ok()??;
    array.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

/// `__metadata__` of the source's file of this number.
fn metadata_of(provenance: &Metadata<'_>, index: usize) -> Option<Vec<(String, String)>> {
    parse_metadata(texts(provenance, keys::METADATA)?.get(index)?)
}

/// SHA-256 of the source's files; none where payloads were replaced or something was edited.
fn digests(provenance: &Metadata<'_>) -> Vec<String> {
    if provenance.str("p64.profile").ok().flatten().is_some_and(|profile| profile.ends_with("-quantized")) {
        return Vec::new();
    }
    if !crate::edit::edited(provenance).is_empty() {
        return Vec::new();
    }
    let one = provenance.str("p64.source.sha256").ok().flatten().map(|digest| vec![digest.to_owned()]);
    one.or_else(|| texts(provenance, "p64.source.split.sha256")).unwrap_or_default()
}

impl Plan<'_> {
    /// Makes the folder unless it is there, and says whether it was made.
    fn make_folder(&self) -> Result<bool> {
        let Some(folder) = self.folder.as_ref().filter(|folder| !folder.is_dir()) else { return Ok(false) };
        std::fs::create_dir(folder).map_err(|error| Error::io(folder, "make the folder", error))?;
        Ok(true)
    }

    fn write(&self, progress: &mut dyn FnMut(Progress)) -> Result<Vec<TensorFile>> {
        let lens = self.files.iter().flat_map(|file| &file.tensors).map(|tensor| tensor.payload.len());
        let (mut done, total) = (0u64, lens.fold(0, u64::saturating_add));
        let mut buffer = Vec::new();
        let mut finished = Vec::new();
        for plan in &self.files {
            let mut file = AtomicFile::create(&plan.path)?;
            let (bytes, sha256) = plan.write(file.file(), &mut buffer, &mut |bytes| {
                done = done.saturating_add(bytes);
                progress(Progress { phase: Phase::Write, done, total });
            })?;
            finished.push((file, TensorFile { path: plan.path.clone(), bytes, sha256: Some(sha256) }));
        }
        for (path, text) in &self.texts {
            let mut file = AtomicFile::create(path)?;
            file.file().write_all(text.as_bytes()).map_err(|error| Error::io(path, "write it", error))?;
            finished.push((file, TensorFile { path: path.clone(), bytes: text.len() as u64, sha256: None }));
        }
        // No file of several appears before all are complete.
        let mut files = Vec::new();
        for (file, about) in finished {
            file.commit()?;
            files.push(about);
        }
        Ok(files)
    }
}

impl File<'_> {
    fn write(
        &self,
        file: &mut std::fs::File,
        buffer: &mut Vec<u8>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(u64, String)> {
        let described = self.tensors.iter().map(|tensor| {
            let Outgoing { name, dtype, shape, payload } = tensor;
            Described { name, dtype: *dtype, shape, len: payload.len() }
        });
        let header = safetensors::encode_header(described, self.metadata.as_deref());
        if header.len() as u64 > MAX_HEADER {
            let reason = format!("its header would have {} bytes, the format permits {MAX_HEADER}", header.len());
            return Err(Error::refused(&self.path, reason));
        }
        let failed = |error| Error::io(&self.path, "write it", error);
        let mut out = Hashed::new(std::io::BufWriter::new(file));
        out.write_all(&header).map_err(failed)?;
        for tensor in &self.tensors {
            copy(&*tensor.payload, &mut out, &self.path, buffer, progress)?;
        }
        out.finish().map_err(failed)
    }
}
