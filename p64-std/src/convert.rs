//! Conversion: a model of any origin becomes one container (spec §13).
//!
//! ```text
//! source    GGUF, container or another format, as tensors and GGUF keys: a SourceModel
//! digest    one more thread begins to sum up the source's SHA-256
//! draft     hyperparameters, tokenizer and order, from the keys; what becomes of each tensor
//! plan      every offset of the container; too large a result ends here
//! write     payloads in pieces from the source to their places, while another thread flushes what is written
//! commit    flush, then the file appears under its name, whole
//! ```
//!
//! Working memory is the tables and keys of the source (a few MB), what is made of them, and two pieces of 256 KiB; where
//! payloads are encoded anew, a few MiB for each thread. It does not grow with the payloads. The same source and options
//! give the same bytes.

mod digest;
mod draft;
mod early;
mod encode;
pub(crate) mod hparams;
mod job;
mod options;
mod parity;
pub(crate) mod provenance;
mod recipe;
mod report;
mod runs;
pub(crate) mod source;
pub(crate) mod tokenizer;

pub use crate::write::LayoutOptions as ConvertOptions;
pub use options::{Layout, ProduceOptions};
pub use parity::{ParityReport, check_parity};
pub use report::{ConvertReport, Phase, Progress, TensorChange, Warning};

use crate::atomic_file::AtomicFile;
use crate::error::{Error, Result};
use crate::files;
use crate::gguf::GgufSet;
use crate::hf;
use crate::safetensors::SafetensorsSet;
use crate::source::{OpenSource, SourceModel};
use crate::write::Holes;
use digest::{Digesting, Input};
use job::Job;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Converts a model into one container at `output`, or where `options` have a cut, into a set whose names begin with it
/// (spec §13.4), the same as if the one container had been split. `inputs` are the files that the model is read from: their lengths and
/// SHA-256 go into `p64.provenance` in this order, unless `source` brings those keys along.
///
/// # Errors
/// [`Error::Refused`] for a source that no container can hold, [`Error::TooLarge`] before anything is written,
/// [`Error::SameFile`] when `output` is one of `inputs`, [`Error::SourceChanged`] when one of them changed meanwhile, and
/// what reading and writing answer. What stood at `output` is then unchanged, and nothing else is left behind.
pub fn convert(
    source: &SourceModel<'_>,
    inputs: &[&Path],
    output: &Path,
    options: &ProduceOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<ConvertReport> {
    let inputs = inputs.iter().map(|path| Input::open(path)).collect::<Result<Vec<_>>>()?;
    Digesting::beside(&inputs, |digesting| write_out(source, digesting, &[], output, options, progress))
}

/// Converts a model of any format that is read: a GGUF (all files of a split one, given the first), a container or a set of
/// them, safetensors (a file, an index or a folder). A folder with a `config.json` becomes a complete model, unless
/// `options` ask for the tensors as they are.
///
/// # Errors
/// As [`convert`], and what opening the files answers.
pub fn convert_file(
    input: &Path,
    output: &Path,
    options: &ProduceOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<ConvertReport> {
    let source = OpenSource::open(input)?;
    let mut others: Vec<PathBuf> = Vec::new();
    let inputs = match &source {
        OpenSource::Gguf(set) => return convert_gguf_set(set, output, options, progress),
        // A container remembers the files that it was made from; its own digest is not theirs.
        OpenSource::P64(set) => {
            others.extend(set.parts().iter().map(|part| part.path().to_owned()));
            Vec::new()
        }
        OpenSource::Safetensors(set) => {
            others.extend(set.index_path().map(Path::to_owned));
            others.extend(folder_of(set).into_iter().flat_map(|folder| BESIDE.map(|name| folder.join(name))));
            set.paths()
        }
    };
    let inputs = inputs.into_iter().map(Input::open).collect::<Result<Vec<_>>>()?;
    Digesting::beside(&inputs, |digesting| {
        let folder = match &source {
            OpenSource::Safetensors(set) if !options.raw => folder_of(set).map(|folder| (set, folder)),
            _ => None,
        };
        let model = match folder {
            Some((set, folder)) if hf::is_complete_folder(folder) => hf::source_model(set, folder)?,
            _ => source.model()?,
        };
        write_out(&model, digesting, &others, output, options, progress)
    })
}

/// What is read beside the tensors of a complete model: no output may take its place.
const BESIDE: [&str; 8] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
];

/// The folder of a model.
fn folder_of(set: &SafetensorsSet) -> Option<&Path> {
    let folder = set.paths().first()?.parent()?;
    Some(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

fn refuse_same<'p>(mut inputs: impl Iterator<Item = &'p Path>, output: &Path) -> Result<()> {
    match inputs.find(|input| files::is_same_file(input, output)) {
        Some(path) => Err(Error::SameFile { path: path.to_owned() }),
        None => Ok(()),
    }
}

/// Converts a GGUF (or, given the first file of a split one, all of them) into one container at `output`, every payload
/// as it is.
///
/// # Errors
/// As [`convert`], and [`Error::Gguf`] for a source that breaks a rule.
pub fn convert_gguf(
    input: &Path,
    output: &Path,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<ConvertReport> {
    convert_gguf_set(&GgufSet::open(input)?, output, &ProduceOptions::preserving(*options), progress)
}

/// Converts a GGUF that is open.
///
/// # Errors
/// As [`convert`].
pub fn convert_gguf_set(
    set: &GgufSet,
    output: &Path,
    options: &ProduceOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<ConvertReport> {
    let inputs = set.parts().iter().map(Input::of_gguf).collect::<Result<Vec<_>>>()?;
    let mut report = Digesting::beside(&inputs, |digesting| {
        let model = SourceModel::of_gguf(set)?;
        write_out(&model, digesting, &[], output, options, progress)
    })?;
    report.warnings.extend(odd_padding(set)?);
    Ok(report)
}

/// Converts a GGUF that is in memory. `label` stands for its path in messages.
///
/// # Errors
/// As [`convert_gguf`], but for the system's answers; a part of a split model is refused.
pub fn convert_bytes(label: &Path, gguf: Vec<u8>, options: &ConvertOptions) -> Result<(Vec<u8>, ConvertReport)> {
    let start = Instant::now();
    let set = GgufSet::from_bytes(label, gguf)?;
    let inputs = set.parts().iter().map(Input::of_gguf).collect::<Result<Vec<_>>>()?;
    let mut out = Cursor::new(Vec::new());
    let mut report = Digesting::beside(&inputs, |digesting| {
        let model = SourceModel::of_gguf(&set)?;
        let options = ProduceOptions::preserving(*options);
        Job::new(&model, digesting, &options, label)?.run(&mut out, &mut |_| ())
    })?;
    report.warnings.extend(odd_padding(&set)?);
    report.duration = start.elapsed();
    Ok((out.into_inner(), report))
}

/// `others` are files that are read too, without being what the source is known by.
fn write_out(
    source: &SourceModel<'_>,
    digesting: &Digesting<'_>,
    others: &[PathBuf],
    output: &Path,
    options: &ProduceOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<ConvertReport> {
    let start = Instant::now();
    let inputs = digesting.inputs();
    let read = || inputs.iter().map(Input::path).chain(others.iter().map(PathBuf::as_path));
    let job = Job::new(source, digesting, options, output)?;
    if let Some(cut) = &options.split {
        let mut report = job.run_set(cut, |path| refuse_same(read(), path), progress)?;
        report.duration = start.elapsed();
        return Ok(report);
    }
    refuse_same(read(), output)?;
    let mut out = AtomicFile::create(output)?;
    let failed = |error| Error::io(output, "write it", error);
    let mut report = early::flushed(out.file(), failed, |file| {
        let mut file = Holes::new(file);
        let report = job.run(&mut file, progress)?;
        file.finish().map_err(failed)?;
        Ok(report)
    })?;
    for input in inputs {
        input.check_unchanged()?;
    }
    out.commit()?;
    report.duration = start.elapsed();
    Ok(report)
}

fn odd_padding(set: &GgufSet) -> Result<Vec<Warning>> {
    let mut buffer = Vec::new();
    let mut warnings = Vec::new();
    for part in set.parts() {
        if let Some(offset) = source::first_odd_padding(part, &mut buffer)? {
            warnings.push(Warning::OddPadding { path: part.path().to_owned(), offset });
        }
    }
    Ok(warnings)
}
