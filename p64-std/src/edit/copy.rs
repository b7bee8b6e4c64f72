//! The edited container as a new file.

use super::revision::{Blob, Revision};
use super::source::Source;
use crate::convert::{Phase, Progress};
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

/// Bytes between two reports of progress; a multiple of every block size, so that blocks can be shared.
const PIECE: u64 = 64 << 20;

/// Bytes that go over as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    from: u64,
    to: u64,
    len: u64,
}

/// Writes the container and says how many of its bytes were not copied from the old one. Gaps are left out of the empty
/// file `out`, which makes them zeros.
pub(super) fn write(
    revision: &Revision,
    source: &Source,
    (input, input_path): (&File, &Path),
    (out, out_path): (&mut File, &Path),
    progress: &mut dyn FnMut(Progress),
) -> Result<u64> {
    let failed = |error| Error::io(out_path, "write it", error);
    let front = revision.front(source);
    let mut written = front.len() as u64;
    out.set_len(revision.plan.file_len()).map_err(failed)?;
    out.seek(SeekFrom::Start(0)).and_then(|_| out.write_all(&front)).map_err(failed)?;
    for (blob, range) in revision.blobs(source) {
        if let Blob::Made(bytes) = blob {
            out.seek(SeekFrom::Start(range.start)).and_then(|_| out.write_all(bytes)).map_err(failed)?;
            written = written.saturating_add(bytes.len() as u64);
        }
    }
    let runs = runs(revision, source);
    let total = runs.iter().map(|run| run.len).sum();
    let mut done = 0u64;
    for run in runs {
        copy(run, input, out, &mut |bytes| {
            done = done.saturating_add(bytes);
            progress(Progress { phase: Phase::Write, done, total });
        })
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::SourceChanged { path: input_path.to_owned() },
            _ => failed(error),
        })?;
    }
    out.flush().map_err(failed)?;
    Ok(written)
}

/// The old file's blobs, those that stay together in one piece with the zeros between them.
fn runs(revision: &Revision, source: &Source) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut last = None;
    for (blob, range) in revision.blobs(source) {
        let Blob::Stored(stored) = blob else {
            last = None;
            continue;
        };
        let (from, to, len) = (stored.range.start, range.start, stored.description.size);
        // Between neighbours of the old table lies nothing but padding, which a strict file has as zeros.
        let neighbours = last.is_some_and(|last: u32| last.checked_add(1) == Some(stored.index));
        last = Some(stored.index);
        match runs.last_mut() {
            Some(run) if neighbours && from.checked_sub(run.from) == to.checked_sub(run.to) && from >= run.from => {
                run.len = from.saturating_sub(run.from).saturating_add(len);
            }
            _ => runs.push(Run { from, to, len }),
        }
    }
    runs.retain(|run| run.len > 0);
    runs
}

/// The standard library's copy between files asks the kernel first, which shares blocks where the file system can. Holes of
/// the old file are left out.
fn copy(run: Run, mut input: &File, mut out: &File, copied: &mut dyn FnMut(u64)) -> io::Result<()> {
    let end = run.from.saturating_add(run.len);
    let mut at = run.from;
    while at < end {
        let data = next_data(input, at, end);
        copied(data.start.saturating_sub(at));
        at = data.start;
        input.seek(SeekFrom::Start(at))?;
        out.seek(SeekFrom::Start(run.to.saturating_add(at.saturating_sub(run.from))))?;
        while at < data.end {
            let piece = data.end.saturating_sub(at).min(PIECE);
            if io::copy(&mut input.take(piece), &mut out)? < piece {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            at = at.saturating_add(piece);
            copied(piece);
        }
    }
    Ok(())
}

/// The first stretch of `at..end` that the file system keeps bytes of, empty at `end` when there is none.
fn next_data(file: &File, at: u64, end: u64) -> Range<u64> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{SeekFrom, seek};
        match seek(file, SeekFrom::Data(at)) {
            Ok(start) if start >= end => return end..end,
            Ok(start) => {
                let stop = seek(file, SeekFrom::Hole(start)).unwrap_or(end).min(end);
                return start..stop.max(start);
            }
            // Nothing but a hole is left.
            Err(rustix::io::Errno::NXIO) => return end..end,
            Err(_) => {}
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = file;
    at..end
}
