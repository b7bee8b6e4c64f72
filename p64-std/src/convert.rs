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

mod hparams;
mod parity;
pub(crate) mod provenance;
pub(crate) mod source;
mod tokenizer;

pub use crate::write::LayoutOptions as ConvertOptions;
pub use parity::{ParityReport, check_parity};

use crate::atomic_file::AtomicFile;
use crate::error::{Error, Result};
use crate::files;
use crate::gguf::{GgufFile, GgufSet, GgufTensor};
use crate::write::{self, Model, Plan, TensorDescription, file_order};
use p64_core::container::{METADATA_NAME, PROVENANCE_NAME};
use p64_core::metadata::Metadata;
use std::fmt;
use std::io::{self, Write};
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
    let source: Vec<(&GgufFile, &GgufTensor<'_>)> = set.tensors().collect();
    // A digest's length is known before the digest, so that the plan comes before the first pass.
    let placeholder = vec!["0".repeat(provenance::DIGEST_LEN); set.parts().len()];
    let draft = Draft::new(&set, &source, options, input)?;
    let model = draft.model(&placeholder, output)?;
    let plan = Plan::new(&model, options).map_err(|error| error.about(output))?;

    let mut out = AtomicFile::create(output)?;
    let mut buffer = Vec::new();
    let digests = source::digests(&set, &mut buffer, progress)?;
    let areas = [draft.metadata.as_slice(), &draft.provenance(&digests)];
    let mut warnings = Vec::new();
    if model.raw_transcode {
        warnings.push(Warning::RawTranscode);
    }
    for part in set.parts() {
        if let Some(offset) = source::first_odd_padding(part, &mut buffer)? {
            warnings.push(Warning::OddPadding { path: part.path().to_owned(), offset });
        }
    }

    let (mut done, total) = (0u64, plan.payload_len());
    let written = write::write(&plan, out.file(), |index, sink| -> std::result::Result<(), Failure> {
        if let Some((part, tensor)) = source.get(index) {
            return source::for_each_piece(part, part.extent(tensor), &mut buffer, |piece| {
                sink.write_all(piece)?;
                done = done.saturating_add(piece.len() as u64);
                progress(Progress { phase: Phase::Write, done, total });
                Ok(())
            });
        }
        let area = index.checked_sub(source.len()).and_then(|added| areas.get(added)).copied().unwrap_or_default();
        done = done.saturating_add(area.len() as u64);
        sink.write_all(area).map_err(Failure::from)
    });
    written.map_err(|failure| match failure {
        Failure::Source(error) => error,
        Failure::Output(error) => Error::io(output, "write it", error),
    })?;
    if source::stamps(&set)? != stamps {
        return Err(Error::SourceChanged { path: input.to_owned() });
    }
    out.commit()?;
    Ok(ConvertReport {
        tensors: source.len() as u64,
        source_files: set.parts().len(),
        source_bytes: set.file_len(),
        source_sha256: digests,
        source_version: set.parts().first().map_or(0, |part| part.gguf().version()),
        bytes: plan.file_len(),
        padding_bytes: plan.padding_len(),
        raw_transcode: model.raw_transcode,
        warnings,
        duration: start.elapsed(),
    })
}

/// Which side of a copy failed.
enum Failure {
    Source(Error),
    Output(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Source(error)
    }
}

/// What a container will hold, but for the digests.
struct Draft<'s> {
    set: &'s GgufSet,
    base: Model,
    /// The blob of `p64.metadata`.
    metadata: Vec<u8>,
    /// Place in the container of each tensor of the source.
    order: Vec<u32>,
    is_default_order: bool,
}

impl<'s> Draft<'s> {
    fn new(
        set: &'s GgufSet,
        source: &[(&GgufFile, &GgufTensor<'_>)],
        options: &ConvertOptions,
        input: &Path,
    ) -> Result<Self> {
        let metadata: Metadata<'_> = set.metadata();
        let refused = |reason: String| Error::refused(input, reason);
        if let Some((_, tensor)) = source.iter().find(|(_, tensor)| tensor.name.starts_with("p64.")) {
            let reason = "names that begin with \"p64.\" are reserved for what a container adds";
            return Err(refused(format!("tensor {:?}: {reason}", tensor.name)));
        }
        let versions = set.parts().iter().map(|part| part.gguf().version());
        if let Some(first) = versions.clone().next()
            && let Some(other) = versions.into_iter().find(|&version| version != first)
        {
            return Err(refused(format!("the files of the set have versions {first} and {other}")));
        }
        let hparams = hparams::read(&metadata).map_err(|(key, error)| refused(format!("{key}: {error}")))?;
        let tokenizer = tokenizer::read(&metadata).map_err(refused)?;
        let n_layer = hparams.n_layer.get();
        let tensors: Vec<_> = source
            .iter()
            .map(|(_, t)| TensorDescription::from_gguf(t.name, n_layer, t.dtype, t.shape, t.size, t.offset))
            .collect();

        let places = file_order(&tensors, options.layer_major);
        let mut order = vec![0u32; places.len()];
        let mut in_file_order = Vec::with_capacity(places.len());
        for (place, &index) in (0u32..).zip(&places) {
            if let (Some(slot), Some(tensor)) = (order.get_mut(index), tensors.get(index)) {
                *slot = place;
                in_file_order.push((tensor.source_offset, tensor.size));
            }
        }
        let is_default_order = provenance::is_default_order(&in_file_order, &order);
        let raw_transcode = tokenizer.is_none() || !hparams::is_complete(&hparams);
        let base = Model { hparams, raw_transcode, tokenizer, tensors };
        let metadata = write::area(u64::from(metadata.len()), metadata.pair_bytes());
        Ok(Self { set, base, metadata, order, is_default_order })
    }

    /// The blob of `p64.provenance`.
    fn provenance(&self, digests: &[String]) -> Vec<u8> {
        provenance::pairs(self.set, digests, &self.order, self.is_default_order).to_area()
    }

    /// The model with both added tensors, which follow all others in every order.
    fn model(&self, digests: &[String], output: &Path) -> Result<Model> {
        let mut model = self.base.clone();
        for (name, size) in [(METADATA_NAME, self.metadata.len()), (PROVENANCE_NAME, self.provenance(digests).len())] {
            let size = size as u64;
            let added = TensorDescription::added(name, size);
            model.tensors.push(added.ok_or_else(|| Error::TooLarge { path: output.to_owned(), bytes: size })?);
        }
        Ok(model)
    }
}
