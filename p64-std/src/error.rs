//! What can go wrong with files: every error names the path, and most a next step.

use crate::gguf;
use crate::safetensors;
use crate::sniff::Kind;
use std::io;
use std::path::{Path, PathBuf};

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A P64 that core refuses, or a limit of core's.
    #[error("{}: {source}", path.display())]
    Core {
        /// The file.
        path: PathBuf,
        /// Core's finding.
        source: p64_core::Error,
    },
    /// A GGUF that breaks a rule of `docs/acceptance.md`.
    #[error("{}: {source}", path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// What and where.
        #[source]
        source: Box<gguf::Error>,
    },
    /// A safetensors file or index that breaks a rule of `docs/acceptance.md`.
    #[error("{}: {source}", path.display())]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// What and where.
        #[source]
        source: Box<safetensors::Error>,
    },
    /// The operating system refused something.
    #[error("{}: cannot {action}: {source}{}", path.display(), hint(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was being done, as the object of "cannot".
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A file of another kind stands where a model is wanted.
    #[error("{}: this is {kind}, not a model: {}", path.display(), kind.advice())]
    NotAModel {
        /// The file.
        path: PathBuf,
        /// What its first bytes say it is.
        kind: Kind,
    },
    /// A model of the other format stands where one format is wanted.
    #[error("{}: this is {found}, {wanted} is needed here", path.display())]
    WrongFormat {
        /// The file.
        path: PathBuf,
        /// What its first bytes say it is.
        found: Kind,
        /// What the operation reads.
        wanted: Kind,
    },
    /// A folder, a device or a pipe stands where a file is wanted.
    #[error("{}: this is {what}, not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is, with its article.
        what: &'static str,
    },
    /// Names, tokenizer, tables or keys would pass what stands before the blobs of a container; the blobs themselves may have
    /// any length.
    #[error(
        "{}: names, tokenizer, tables or keys would take {bytes} bytes; a container holds less than {} of them",
        path.display(),
        p64_core::limits::MAX_FILE_V4
    )]
    TooLarge {
        /// The output that was asked for.
        path: PathBuf,
        /// Bytes they would take; [`u64::MAX`] for more than can be counted.
        bytes: u64,
    },
    /// Input and output are one file.
    #[error("{}: input and output are the same file", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The source changed while it was read twice.
    #[error("{}: the file changed while it was being read; nothing was written", path.display())]
    SourceChanged {
        /// The source.
        path: PathBuf,
    },
    /// A server answers otherwise than is needed, or not at all.
    #[error("{url}: {reason}")]
    Remote {
        /// The address, without what may be secret in it.
        url: String,
        /// What it said or what is missing.
        reason: String,
    },
    /// A well-formed source that cannot become what was asked for.
    #[error("{}: {reason}", path.display())]
    Refused {
        /// The source.
        path: PathBuf,
        /// What stands against it, and where.
        reason: String,
    },
    /// Options that contradict each other or pass a limit.
    #[error("{reason}")]
    Usage {
        /// What is wrong with them.
        reason: String,
    },
}

/// A second sentence for answers of the system that have a remedy.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "; there is no room for the file, and what was there before is unchanged"
        }
        _ => "",
    }
}

impl Error {
    /// An answer of the system about `path`; `action` completes "cannot ...".
    pub fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), action, source }
    }

    pub(crate) fn core(path: &Path, source: p64_core::Error) -> Self {
        Self::Core { path: path.to_owned(), source }
    }

    pub(crate) fn gguf(path: &Path, source: gguf::Error) -> Self {
        Self::Gguf { path: path.to_owned(), source: Box::new(source) }
    }

    pub(crate) fn safetensors(path: &Path, source: safetensors::Error) -> Self {
        Self::Safetensors { path: path.to_owned(), source: Box::new(source) }
    }

    pub(crate) fn refused(path: &Path, reason: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), reason: reason.into() }
    }

    /// The exit status of a command that ends with this error: 1 when the input is at fault, 2 when the request or the
    /// system is.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Core { source, .. } => match source.kind() {
                p64_core::Kind::Caller => 2,
                _ => 1,
            },
            Self::Gguf { .. }
            | Self::Safetensors { .. }
            | Self::NotAModel { .. }
            | Self::WrongFormat { .. }
            | Self::TooLarge { .. }
            | Self::Refused { .. } => 1,
            Self::Io { .. }
            | Self::NotAFile { .. }
            | Self::SameFile { .. }
            | Self::Remote { .. }
            | Self::SourceChanged { .. }
            | Self::Usage { .. } => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_path_reason_and_next_step() {
        let path = Path::new("m.gguf");
        let error = Error::NotAModel { path: path.to_owned(), kind: Kind::Empty };
        assert_eq!(error.to_string(), "m.gguf: this is an empty file, not a model: fetch the model again");
        let error = Error::io(path, "open it", io::Error::from(io::ErrorKind::StorageFull));
        assert!(error.to_string().starts_with("m.gguf: cannot open it: "), "{error}");
        assert!(error.to_string().ends_with("what was there before is unchanged"), "{error}");
        let error = Error::TooLarge { path: path.to_owned(), bytes: 1 << 33 };
        assert_eq!(
            error.to_string(),
            "m.gguf: names, tokenizer, tables or keys would take 8589934592 bytes; a container holds less than 4294967296 of \
             them"
        );
    }

    #[test]
    fn input_at_fault_is_1_and_request_or_system_is_2() {
        let path = PathBuf::from("x");
        assert_eq!(Error::NotAModel { path: path.clone(), kind: Kind::Text }.exit_code(), 1);
        assert_eq!(Error::core(&path, p64_core::Error::buffer_too_small(2, 1)).exit_code(), 2);
        assert_eq!(Error::SameFile { path }.exit_code(), 2);
    }
}
