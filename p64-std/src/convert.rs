//! Conversion from GGUF, the byte-preserving profile (spec §13.1).
//!
//! ```text
//! open      header, keys and tensor tables of the source, checked
//! plan      every offset of the container; too large a result ends here
//! digest    first pass over the source: SHA-256, for the exporter to prove itself by
//! write     second pass: payloads in pieces of 4 MiB from the source to their places
//! commit    flush, then the file appears under its name, whole
//! ```
//!
//! Working memory is the tables and keys of the source (a few MB), what is made of them, and one piece; it does not grow
//! with the payloads. The same source and options give the same bytes.

pub(crate) mod hparams;
mod job;
mod parity;
pub(crate) mod provenance;
pub(crate) mod source;
pub(crate) mod tokenizer;

pub use crate::write::LayoutOptions as ConvertOptions;
pub use parity::{ParityReport, check_parity};

use crate::atomic_file::AtomicFile;
use crate::error::{Error, Result};
use crate::files;
use crate::gguf::GgufSet;
use job::Job;
use std::fmt;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a long operation is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Phase {
    /// Reading the source for its digest.
    Digest,
    /// Writing the output.
    Write,
    /// Comparing a container with its source.
    Compare,
}

/// How far a phase has come, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The phase.
    pub phase: Phase,
    /// Bytes done.
    pub done: u64,
    /// Bytes of the whole phase.
    pub total: u64,
}

/// Something about the source that a person should know; the conversion is good all the same.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Warning {
    /// The source has padding bytes that are not zero. They carry no meaning and are not kept.
    OddPadding {
        /// The file.
        path: PathBuf,
        /// File offset of the first of them.
        offset: u64,
    },
    /// No tokenizer, or a hyperparameter without a default is missing.
    RawTranscode,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OddPadding { path, offset } => write!(
                f,
                "{}: padding at file offset {offset:#x} is not zero; an export will have zeros there and another digest",
                path.display()
            ),
            Self::RawTranscode => f.write_str(
                "the source has no tokenizer or lacks hyperparameters: the container is a raw transcode and cannot be run",
            ),
        }
    }
}

/// What a conversion did.
#[derive(Clone, Debug)]
pub struct ConvertReport {
    /// Tensors of the source.
    pub tensors: u64,
    /// Files of the source.
    pub source_files: usize,
    /// Bytes of the source.
    pub source_bytes: u64,
    /// SHA-256 of each file of the source, in hexadecimal digits.
    pub source_sha256: Vec<String>,
    /// Version of the GGUF.
    pub source_version: u32,
    /// Bytes of the container.
    pub bytes: u64,
    /// Zero bytes between and behind its blobs.
    pub padding_bytes: u64,
    /// Whether flag bit 1 is set.
    pub raw_transcode: bool,
    /// What a person should know.
    pub warnings: Vec<Warning>,
    /// Wall-clock time.
    pub duration: Duration,
}

/// Converts a GGUF (or, given the first file of a split one, all of them) into one container at `output`.
///
/// # Errors
/// [`Error::Gguf`] for a source that breaks a rule, [`Error::Refused`] for one that no container can hold,
/// [`Error::TooLarge`] before anything is written, [`Error::SameFile`], [`Error::SourceChanged`], and what the system
/// answers. What stood at `output` is then unchanged, and nothing else is left behind.
pub fn convert_gguf(
    input: &Path,
    output: &Path,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<ConvertReport> {
    let start = Instant::now();
    let set = GgufSet::open(input)?;
    if let Some(part) = set.parts().iter().find(|part| files::is_same_file(part.path(), output)) {
        return Err(Error::SameFile { path: part.path().to_owned() });
    }
    let stamps = source::stamps(&set)?;
    let job = Job::new(&set, options, input, output)?;
    let mut out = AtomicFile::create(output)?;
    let mut report = job.run(out.file(), progress)?;
    if source::stamps(&set)? != stamps {
        return Err(Error::SourceChanged { path: input.to_owned() });
    }
    out.commit()?;
    report.duration = start.elapsed();
    Ok(report)
}

/// Converts a GGUF that is in memory. `label` stands for its path in messages.
///
/// # Errors
/// As [`convert_gguf`], but for the system's answers; a part of a split model is refused.
pub fn convert_bytes(label: &Path, gguf: Vec<u8>, options: &ConvertOptions) -> Result<(Vec<u8>, ConvertReport)> {
    let set = GgufSet::from_bytes(label, gguf)?;
    let job = Job::new(&set, options, label, label)?;
    let mut out = Cursor::new(Vec::new());
    let report = job.run(&mut out, &mut |_| ())?;
    Ok((out.into_inner(), report))
}
