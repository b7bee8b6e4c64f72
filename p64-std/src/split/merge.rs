//! The files of a set become one container.

use super::contents::Contents;
use super::is_part;
use super::maker::whole;
use super::plan::{Failure, identity, read_table};
use crate::atomic_file::AtomicFile;
use crate::convert::{Phase, Progress};
use crate::error::{Error, Result};
use crate::map::{MapOptions, MappedSet};
use crate::write::{self, CHUNK, Holes};
use p64_core::validate::Integrity;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a merge wrote.
#[derive(Clone, Debug)]
pub struct MergeReport {
    /// Files of the set.
    pub files: usize,
    /// Tensors of the model.
    pub tensors: u64,
    /// Bytes of the container.
    pub bytes: u64,
    /// The set's identity: 64 hexadecimal digits.
    pub identity: String,
    /// Whether the container is the one that was split: its bytes up to the end of the checksum table, and so those of
    /// all payloads, have the set's identity. It is not when a file of the set was edited since.
    pub identical: bool,
    /// Wall-clock time.
    pub duration: Duration,
}

/// Puts the files of a set together; `input` is any of them.
///
/// # Errors
/// What [`MappedSet::open`] answers; [`Error::Refused`] for a container that is no file of a set; [`Error::SameFile`];
/// and what the system answers. The container appears whole or not at all.
pub fn merge(input: &Path, output: &Path, progress: &mut dyn FnMut(Progress)) -> Result<MergeReport> {
    let start = Instant::now();
    // Lazy: every blob is verified when it is taken, right before it is written.
    let options = MapOptions { integrity: Integrity::Lazy, ..MapOptions::default() };
    let (set, _) = MappedSet::open(input, &options)?;
    let Some(expected) = set.identity() else {
        return Err(Error::refused(input, "this is one container, no file of a split set; there is nothing to merge"));
    };
    if is_part(&set, output) {
        return Err(Error::SameFile { path: output.to_owned() });
    }
    let contents = Contents::of(&set)?;
    let plan = whole(&contents).map_err(|error| error.about(output))?;
    let tensors: Vec<_> = set.tensors().collect();
    let areas: Vec<&[u8]> =
        [&contents.metadata, &contents.provenance].into_iter().flatten().map(Vec::as_slice).collect();
    let (mut done, total) = (0u64, contents.payload_len());
    let mut file = AtomicFile::create(output)?;
    let mut out = Holes::new(file.file());
    let written = write::write(&plan, &mut out, |index, sink| -> std::result::Result<(), Failure> {
        if let Some(tensor) = tensors.get(index) {
            for piece in tensor.tensor()?.bytes().chunks(CHUNK) {
                sink.write_all(piece)?;
                done = done.saturating_add(piece.len() as u64);
                progress(Progress { phase: Phase::Write, done, total });
            }
            return Ok(());
        }
        let area = index.checked_sub(tensors.len()).and_then(|added| areas.get(added)).copied().unwrap_or_default();
        Ok(sink.write_all(area)?)
    });
    let failed = |error| Error::io(output, "write it", error);
    written.map_err(|failure| match failure {
        Failure::Source(error) => error,
        Failure::Output(error) => failed(error),
    })?;
    out.finish().map_err(failed)?;
    let table = read_table(file.file(), &plan, plan.blobs().count().saturating_add(1)).map_err(failed)?;
    let found = identity(plan.front(), &table);
    file.commit()?;
    Ok(MergeReport {
        files: set.parts().len(),
        tensors: tensors.len() as u64,
        bytes: plan.file_len(),
        identical: found == expected,
        identity: expected.to_owned(),
        duration: start.elapsed(),
    })
}
