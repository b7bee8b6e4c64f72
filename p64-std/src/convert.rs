//! Conversion: a model of any origin becomes one container (spec §13).
//!
//! ```text
//! source    GGUF, container or another format, as tensors and GGUF keys: a SourceModel
//! draft     hyperparameters, tokenizer and order, from the keys; what each tensor becomes
//! plan      every offset of the container; too large a result ends here
//! write     payloads in pieces from the source to their places, while another thread sums up the source's SHA-256
//! commit    flush, then the file appears under its name, whole
//! ```
//!
//! Working memory is the tables and keys of the source (a few MB), what is made of them, and two pieces of 4 MiB; it does
//! not grow with the payloads. The same source and options give the same bytes.

mod digest;
mod draft;
pub(crate) mod hparams;
mod job;
mod options;
mod parity;
pub(crate) mod provenance;
mod report;
pub(crate) mod source;
pub(crate) mod tokenizer;

pub use crate::write::LayoutOptions as ConvertOptions;
pub use options::{Layout, ProduceOptions};
pub use parity::{ParityReport, check_parity};
pub use report::{ConvertReport, Phase, Progress, Warning};

use crate::atomic_file::AtomicFile;
use crate::error::{Error, Result};
use crate::files;
use crate::gguf::GgufSet;
use crate::source::SourceModel;
use crate::write::Holes;
use digest::Input;
use job::Job;
use std::io::Cursor;
use std::path::Path;
use std::time::Instant;

/// Converts a model into one container at `output`. `inputs` are the files that the model is read from: their lengths and
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
    to_file(source, &inputs, output, options, progress)
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
    let model = SourceModel::of_gguf(set)?;
    let mut report = to_file(&model, &inputs, output, options, progress)?;
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
    let model = SourceModel::of_gguf(&set)?;
    let job = Job::new(&model, &inputs, &ProduceOptions::preserving(*options), label)?;
    let mut out = Cursor::new(Vec::new());
    let mut report = job.run(&mut out, &mut |_| ())?;
    report.warnings.extend(odd_padding(&set)?);
    report.duration = start.elapsed();
    Ok((out.into_inner(), report))
}

fn to_file(
    source: &SourceModel<'_>,
    inputs: &[Input<'_>],
    output: &Path,
    options: &ProduceOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<ConvertReport> {
    let start = Instant::now();
    if let Some(input) = inputs.iter().find(|input| files::is_same_file(input.path(), output)) {
        return Err(Error::SameFile { path: input.path().to_owned() });
    }
    let job = Job::new(source, inputs, options, output)?;
    let mut out = AtomicFile::create(output)?;
    let mut file = Holes::new(out.file());
    let mut report = job.run(&mut file, progress)?;
    file.finish().map_err(|error| Error::io(output, "write it", error))?;
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
