//! What a conversion tells: its progress, its warnings and what it did.

use crate::quantize::TensorError;
use crate::split::SplitReport;
use p64_core::DType;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What a long operation is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Phase {
    /// Reading what is left of the source for its digest.
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
    /// What the reader of the source had to say.
    Note(String),
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
            Self::Note(text) => f.write_str(text),
        }
    }
}

/// A tensor whose payload was replaced.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorChange {
    /// The tensor.
    pub name: String,
    /// Its type in the source.
    pub from: DType,
    /// Its type in the container.
    pub to: DType,
    /// How far the new values are from the old ones.
    pub error: TensorError,
}

/// What a conversion did.
#[derive(Clone, Debug)]
pub struct ConvertReport {
    /// Tensors of the source.
    pub tensors: u64,
    /// Files of the source; none for a container, which remembers its own source.
    pub source_files: usize,
    /// Bytes of the source's files; of a container, of its tensors.
    pub source_bytes: u64,
    /// SHA-256 of each file of the source, in hexadecimal digits.
    pub source_sha256: Vec<String>,
    /// Format of the source, as `p64.source.format` has it (spec §17.2): "gguf v3", for example.
    pub source_format: String,
    /// Producer profile, as `p64.profile` has it.
    pub profile: String,
    /// Bytes of the container; of a set, of all its files.
    pub bytes: u64,
    /// Zero bytes between and behind its blobs.
    pub padding_bytes: u64,
    /// Whether flag bit 1 is set.
    pub raw_transcode: bool,
    /// The tensors whose payloads were replaced, in the order of the container.
    pub changes: Vec<TensorChange>,
    /// The files and the identity of a set; `None` for one container.
    pub set: Option<SplitReport>,
    /// What a person should know.
    pub warnings: Vec<Warning>,
    /// Wall-clock time.
    pub duration: Duration,
}
