//! One conversion, planned: everything but the two passes over the source.

use super::{ConvertOptions, ConvertReport, Phase, Progress, Warning, hparams, provenance, source, tokenizer};
use crate::error::{Error, Result};
use crate::gguf::{GgufFile, GgufSet, GgufTensor};
use crate::write::{self, Model, Plan, TensorDescription, file_order};
use p64_core::container::{METADATA_NAME, PROVENANCE_NAME};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A source and the container it will become.
pub(super) struct Job<'s> {
    draft: Draft<'s>,
    source: Vec<(&'s GgufFile, &'s GgufTensor<'s>)>,
    plan: Plan,
    output: PathBuf,
}

impl<'s> Job<'s> {
    /// Plans the container. `input` and `output` are named in errors.
    pub fn new(set: &'s GgufSet, options: &ConvertOptions, input: &Path, output: &Path) -> Result<Self> {
        let source: Vec<_> = set.tensors().collect();
        let draft = Draft::new(set, &source, options, input)?;
        // A digest's length is known before the digest, so that the plan comes before the first pass.
        let placeholder = vec!["0".repeat(provenance::DIGEST_LEN); set.parts().len()];
        let model = draft.model(&placeholder, output)?;
        let plan = Plan::new(&model, options).map_err(|error| error.about(output))?;
        Ok(Self { draft, source, plan, output: output.to_owned() })
    }

    /// Both passes: the digest of the source, then its payloads into `out`.
    pub fn run<W: Write + Seek>(&self, out: &mut W, progress: &mut dyn FnMut(Progress)) -> Result<ConvertReport> {
        let start = Instant::now();
        let Self { draft, source, plan, output } = self;
        let set = draft.set;
        let mut buffer = Vec::new();
        let digests = source::digests(set, &mut buffer, progress)?;
        let areas = [draft.metadata.as_slice(), &draft.provenance(&digests)];
        let mut warnings = Vec::new();
        if draft.base.raw_transcode {
            warnings.push(Warning::RawTranscode);
        }
        for part in set.parts() {
            if let Some(offset) = source::first_odd_padding(part, &mut buffer)? {
                warnings.push(Warning::OddPadding { path: part.path().to_owned(), offset });
            }
        }

        let (mut done, total) = (0u64, plan.payload_len());
        let written = write::write(plan, out, |index, sink| -> std::result::Result<(), Failure> {
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
        Ok(ConvertReport {
            tensors: source.len() as u64,
            source_files: set.parts().len(),
            source_bytes: set.file_len(),
            source_sha256: digests,
            source_version: set.parts().first().map_or(0, |part| part.gguf().version()),
            bytes: plan.file_len(),
            padding_bytes: plan.padding_len(),
            raw_transcode: draft.base.raw_transcode,
            warnings,
            duration: start.elapsed(),
        })
    }
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
        let metadata = set.metadata();
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
