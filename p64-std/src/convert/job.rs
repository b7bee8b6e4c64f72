//! One conversion, planned: everything but the reading of payloads.

use super::digest::{Input, Shared, digests};
use super::draft::Draft;
use super::{ConvertReport, Phase, ProduceOptions, Progress, Warning, provenance};
use crate::error::{Error, Result};
use crate::source::{Payload, SourceModel};
use crate::write::{self, BlobSink, CHUNK, Plan};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often the progress of a digest is told that is waited for.
const TICK: Duration = Duration::from_millis(100);

/// A source and the container it will become.
pub(super) struct Job<'s> {
    source: &'s SourceModel<'s>,
    inputs: &'s [Input<'s>],
    draft: Draft,
    plan: Plan,
    output: PathBuf,
}

impl<'s> Job<'s> {
    /// Plans the container. `output` is named in errors about the result.
    pub fn new(
        source: &'s SourceModel<'s>,
        inputs: &'s [Input<'s>],
        options: &ProduceOptions,
        output: &Path,
    ) -> Result<Self> {
        let draft = Draft::new(source, inputs, options, inputs.first().map_or(output, Input::path))?;
        // A digest's length is known before the digest, so that the plan comes before the source is read.
        let placeholder = vec!["0".repeat(provenance::DIGEST_LEN); inputs.len()];
        let model = draft.model(inputs, &placeholder, output)?;
        let plan = Plan::new(&model, &options.layout).map_err(|error| error.about(output))?;
        Ok(Self { source, inputs, draft, plan, output: output.to_owned() })
    }

    /// Writes the container, while another thread reads the source for its digests. They stand in the last blob.
    pub fn run<W: Write + Seek>(&self, out: &mut W, progress: &mut dyn FnMut(Progress)) -> Result<ConvertReport> {
        let start = Instant::now();
        let shared = Shared::default();
        let source_sha256 = thread::scope(|scope| {
            let (sender, receiver) = sync_channel(1);
            let (inputs, progressed) = (self.inputs, &shared);
            let digesting = thread::Builder::new().name("p64-sha256".to_owned()).spawn_scoped(scope, move || {
                // Nobody listens any more when the writing failed.
                let _ = sender.send(digests(inputs, progressed));
            });
            // A system that gives no thread leaves the digest to this one.
            let receiver = digesting.is_ok().then_some(receiver);
            let written = self.write(out, receiver.as_ref(), &shared, progress);
            shared.stop.store(true, Ordering::Relaxed);
            written
        })?;
        let mut warnings: Vec<_> = self.source.notes.iter().cloned().map(Warning::Note).collect();
        if self.draft.base.raw_transcode {
            warnings.push(Warning::RawTranscode);
        }
        Ok(ConvertReport {
            tensors: self.source.tensors.len() as u64,
            source_files: self.inputs.len(),
            source_bytes: self.inputs.iter().map(Input::len).sum(),
            source_sha256,
            source_format: provenance::format(&self.source.provenance),
            profile: self.draft.profile.clone(),
            bytes: self.plan.file_len(),
            padding_bytes: self.plan.padding_len(),
            raw_transcode: self.draft.base.raw_transcode,
            warnings,
            duration: start.elapsed(),
        })
    }

    fn write<W: Write + Seek>(
        &self,
        out: &mut W,
        receiver: Option<&Receiver<Result<Vec<String>>>>,
        shared: &Shared,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<String>> {
        let Self { source, inputs, draft, plan, output } = self;
        let mut buffer = Vec::new();
        let mut source_sha256 = Vec::new();
        let (mut done, total) = (0u64, plan.payload_len());
        let written = write::write(plan, out, |index, sink| -> std::result::Result<(), Failure> {
            if let Some(tensor) = source.tensors.get(index) {
                return copy(tensor.payload.as_ref(), &mut buffer, sink, &mut |piece| {
                    done = done.saturating_add(piece);
                    progress(Progress { phase: Phase::Write, done, total });
                });
            }
            let metadata = draft.metadata.as_deref().filter(|_| index == source.tensors.len());
            match metadata {
                Some(area) => sink.write_all(area)?,
                None => {
                    source_sha256 = match receiver {
                        Some(receiver) => self.wait(receiver, shared, progress)?,
                        None => digests(inputs, shared)?,
                    };
                    sink.write_all(&draft.provenance(inputs, &source_sha256))?;
                }
            }
            Ok(())
        });
        match written {
            Ok(()) => Ok(source_sha256),
            Err(Failure::Source(error)) => Err(error),
            Err(Failure::Output(error)) => Err(Error::io(output, "write it", error)),
        }
    }

    /// The digests, when the other thread has them.
    fn wait(
        &self,
        receiver: &Receiver<Result<Vec<String>>>,
        shared: &Shared,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<String>> {
        let total = self.inputs.iter().map(Input::len).sum();
        loop {
            match receiver.recv_timeout(TICK) {
                Ok(digests) => return digests,
                Err(RecvTimeoutError::Timeout) => {
                    let done = shared.done.load(Ordering::Relaxed);
                    progress(Progress { phase: Phase::Digest, done, total });
                }
                // It panicked, and the scope will say so; until then its work is done here.
                Err(RecvTimeoutError::Disconnected) => return digests(self.inputs, shared),
            }
        }
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

/// A payload as it is, in pieces.
fn copy(
    payload: &dyn Payload,
    buffer: &mut Vec<u8>,
    sink: &mut BlobSink<'_>,
    copied: &mut dyn FnMut(u64),
) -> std::result::Result<(), Failure> {
    if let Some(bytes) = payload.bytes() {
        for piece in bytes.chunks(CHUNK) {
            sink.write_all(piece)?;
            copied(piece.len() as u64);
        }
        return Ok(());
    }
    let mut at = 0u64;
    while at < payload.len() {
        let left = usize::try_from(payload.len().saturating_sub(at)).unwrap_or(CHUNK);
        buffer.resize(left.min(CHUNK), 0);
        payload.read_at(at, buffer)?;
        sink.write_all(buffer)?;
        at = at.saturating_add(buffer.len() as u64);
        copied(buffer.len() as u64);
    }
    Ok(())
}
