//! One conversion, planned: everything but the reading of payloads.

use super::digest::{Digesting, Input, PIECE};
use super::draft::Draft;
use super::encode::Encoding;
use super::{ConvertReport, Phase, ProduceOptions, Progress, TensorChange, Warning, provenance};
use crate::error::{Error, Result};
use crate::pool::Tasks;
use crate::quantize::Imatrix;
use crate::source::{Payload, Rearranged, SourceModel};
use crate::split::{Contents, Cut, Failure, SetPlan};
use crate::write::{self, BlobSink, LayoutOptions, Plan};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A source and the container it will become.
pub(super) struct Job<'s> {
    source: &'s SourceModel<'s>,
    digesting: &'s Digesting<'s>,
    inputs: &'s [Input<'s>],
    draft: Draft,
    plan: Plan,
    layout: LayoutOptions,
    imatrix: Option<&'s Imatrix>,
    pool: Tasks,
    output: PathBuf,
}

impl<'s> Job<'s> {
    /// Plans the container. `output` is named in errors about the result.
    pub fn new(
        source: &'s SourceModel<'s>,
        digesting: &'s Digesting<'s>,
        options: &'s ProduceOptions,
        output: &Path,
    ) -> Result<Self> {
        let inputs = digesting.inputs();
        let draft = Draft::new(source, inputs, options, inputs.first().map_or(output, Input::path))?;
        // A digest's length is known before the digest, so that the plan comes before the source is read.
        let placeholder = vec!["0".repeat(provenance::DIGEST_LEN); inputs.len()];
        let model = draft.model(inputs, &placeholder, output)?;
        let plan = Plan::new(&model, &options.layout).map_err(|error| error.about(output))?;
        // A copy needs no help.
        let pool = Tasks::new(if draft.is_changed() { options.threads } else { 1 })?;
        let (layout, imatrix) = (options.layout, options.imatrix.as_ref());
        Ok(Self { source, digesting, inputs, draft, plan, layout, imatrix, pool, output: output.to_owned() })
    }

    /// Writes the container. The source's digests, which another thread works at, stand in its last blob.
    pub fn run<W: Write + Seek>(&self, out: &mut W, progress: &mut dyn FnMut(Progress)) -> Result<ConvertReport> {
        let start = Instant::now();
        let written = self.write(out, progress)?;
        Ok(self.report(written, (self.plan.file_len(), self.plan.padding_len()), start))
    }

    /// Writes the files of a set, which appear when all are complete. `check` is asked about the path of each, before
    /// anything is written.
    pub fn run_set(
        &self,
        cut: &Cut,
        check: impl Fn(&Path) -> Result<()>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ConvertReport> {
        let start = Instant::now();
        let path = self.inputs.first().map_or(self.output.as_path(), Input::path);
        let draft = &self.draft;
        let placeholder = vec!["0".repeat(provenance::DIGEST_LEN); self.inputs.len()];
        let contents = Contents {
            model: draft.base.clone(),
            layout: self.layout,
            metadata: draft.metadata.clone(),
            provenance: Some(draft.provenance(self.inputs, &placeholder)),
            manifold: None,
        };
        let plan = SetPlan::new(&contents, cut, path)?;
        let paths = plan.paths(&self.output)?;
        paths.iter().try_for_each(|path| check(path))?;
        let mut written = Written::default();
        let mut payload = |index: usize, sink: &mut BlobSink<'_>| self.payload(index, sink, &mut written, progress);
        let files = plan.write(&paths, &mut payload)?;
        written.source_sha256 = self.digesting.wait(progress)?;
        for input in self.inputs {
            input.check_unchanged()?;
        }
        let provenance = draft.provenance(self.inputs, &written.source_sha256);
        let mut set = plan.finish(files, &paths, Some(provenance))?;
        set.duration = start.elapsed();
        written.notes = plan.notes(cut);
        let bytes = set.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
        let report = self.report(written, (bytes, plan.padding_len()), start);
        Ok(ConvertReport { set: Some(set), ..report })
    }

    fn report(&self, written: Written, (bytes, padding_bytes): (u64, u64), start: Instant) -> ConvertReport {
        let notes = self.source.notes.iter().chain(&self.draft.notes).chain(&written.notes);
        let mut warnings: Vec<_> = notes.cloned().map(Warning::Note).collect();
        if self.draft.base.raw_transcode {
            warnings.push(Warning::RawTranscode);
        }
        ConvertReport {
            tensors: self.source.tensors.len() as u64,
            source_files: self.inputs.len(),
            source_bytes: match self.inputs {
                [] => self.source.tensors.iter().map(|tensor| tensor.payload.len()).sum(),
                inputs => inputs.iter().map(Input::len).sum(),
            },
            source_sha256: written.source_sha256,
            source_format: provenance::format(&self.source.provenance),
            profile: self.draft.profile.clone(),
            bytes,
            padding_bytes,
            raw_transcode: self.draft.base.raw_transcode,
            changes: written.changes,
            set: None,
            warnings,
            duration: start.elapsed(),
        }
    }

    fn write<W: Write + Seek>(&self, out: &mut W, progress: &mut dyn FnMut(Progress)) -> Result<Written> {
        let Self { source, digesting, inputs, draft, plan, output, .. } = self;
        let mut result = Written::default();
        let written = write::write(plan, out, |index, sink| -> std::result::Result<(), Failure> {
            if index < source.tensors.len() {
                return self.payload(index, sink, &mut result, progress);
            }
            let metadata = draft.metadata.as_deref().filter(|_| index == source.tensors.len());
            match metadata {
                Some(area) => sink.write_all(area)?,
                None => {
                    sink.flush()?;
                    result.source_sha256 = digesting.wait(progress)?;
                    sink.write_all(&draft.provenance(inputs, &result.source_sha256))?;
                }
            }
            Ok(())
        });
        match written {
            Ok(()) => Ok(result),
            Err(Failure::Source(error)) => Err(error),
            Err(Failure::Output(error)) => Err(Error::io(output, "write it", error)),
        }
    }

    /// The payload of one of the source's tensors, as it is or encoded anew.
    fn payload(
        &self,
        index: usize,
        sink: &mut BlobSink<'_>,
        written: &mut Written,
        progress: &mut dyn FnMut(Progress),
    ) -> std::result::Result<(), Failure> {
        let Self { source, inputs, draft, plan, imatrix, pool, output, .. } = self;
        let (Some(tensor), Some(&recipe)) = (source.tensors.get(index), draft.recipes.get(index)) else {
            return Ok(());
        };
        let Written { done, buffer, changes, .. } = written;
        let mut advance = |piece| {
            *done = done.saturating_add(piece);
            progress(Progress { phase: Phase::Write, done: *done, total: plan.payload_len() });
        };
        let payload = tensor.payload.as_ref();
        if recipe.is_lossless() {
            return match Rearranged::new(payload, recipe.dtype(payload.dtype())) {
                Ok(tiles) => copy(&tiles, buffer, sink, &mut advance),
                Err(payload) => copy(payload, buffer, sink, &mut advance),
            };
        }
        let path = inputs.first().map_or(output.as_path(), Input::path);
        // A contradiction was found when the recipes were made.
        let importance = imatrix.and_then(|all| all.for_tensor(&tensor.name, &payload.shape()).ok().flatten());
        let error = Encoding { tensor, recipe, importance, pool, path }.write(sink, &mut advance)?;
        let name = tensor.name.clone();
        let (from, to) = (payload.dtype(), recipe.dtype(payload.dtype()));
        changes.push(TensorChange { name, from, to, error });
        Ok(())
    }
}

/// What the writing found out.
#[derive(Default)]
struct Written {
    source_sha256: Vec<String>,
    changes: Vec<TensorChange>,
    notes: Vec<String>,
    /// Payload bytes so far.
    done: u64,
    /// Room for a piece.
    buffer: Vec<u8>,
}

/// A payload as it is, in pieces; read, not mapped, so that what is done with takes no room.
fn copy(
    payload: &dyn Payload,
    buffer: &mut Vec<u8>,
    sink: &mut BlobSink<'_>,
    copied: &mut dyn FnMut(u64),
) -> std::result::Result<(), Failure> {
    let mut at = 0u64;
    while at < payload.len() {
        let left = usize::try_from(payload.len().saturating_sub(at)).unwrap_or(PIECE);
        buffer.resize(left.min(PIECE), 0);
        payload.read_at(at, buffer)?;
        sink.write_all(buffer)?;
        at = at.saturating_add(buffer.len() as u64);
        copied(buffer.len() as u64);
    }
    Ok(())
}
