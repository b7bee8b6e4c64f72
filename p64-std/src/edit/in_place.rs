//! The edited container in the place of the old one.

use super::journal::{Journal, journal_path, remove};
use super::not_valid;
use super::reader::Reader;
use super::revision::{Blob, Revision};
use super::source::{self, Source};
use crate::convert::{Phase, Progress};
use crate::error::{Error, Result};
use p64_core::validate::{Integrity, Policy};
use std::fs::File;
use std::path::Path;

/// Writes front and tail of the file, which this process has for itself. Answers the bytes written, the journal's included.
pub(super) fn write(
    revision: &Revision,
    source: &Source,
    (file, path): (&File, &Path),
    integrity: Integrity,
    progress: &mut dyn FnMut(Progress),
) -> Result<u64> {
    let mut front = revision.front(source);
    let blobs = revision.blobs(source);
    let mut tail: Option<(u64, Vec<u8>)> = None;
    for (blob, range) in &blobs {
        match blob {
            Blob::Stored(stored) if stored.range == *range && tail.is_none() => {}
            Blob::Stored(_) => return Err(Error::refused(path, would_move(revision, source))),
            Blob::Made(bytes) => {
                let (start, tail) = tail.get_or_insert((range.start, Vec::new()));
                tail.resize(usize::try_from(range.start.saturating_sub(*start)).unwrap_or(0), 0);
                tail.extend_from_slice(bytes);
            }
        }
    }
    let (start, mut tail) = tail.unwrap_or((revision.plan.file_len(), Vec::new()));
    // What a longer table left behind goes too; from there to the first blob a strict file has zeros already. Without
    // weights before it the tail may have moved: then what stands up to its new place goes.
    let room = if source.tensors.is_empty() { start } else { source.front_len().max(front.len() as u64) };
    front.resize(usize::try_from(room).unwrap_or(0), 0);
    tail.resize(usize::try_from(revision.plan.file_len().saturating_sub(start)).unwrap_or(0), 0);

    let regions = vec![(0, front.as_slice()), (start, tail.as_slice())];
    let len = revision.plan.file_len();
    // As the file will be, before it is.
    let reader = Reader { file, path, len, regions: &regions };
    source::check_reader(reader, path, Policy::Strict, integrity).map_err(|error| not_valid(error, path))?;

    let journal = Journal::new(file, path, regions, source.file_len, len)?;
    let beside = journal_path(path);
    let total = (front.len() as u64).saturating_add(tail.len() as u64);
    progress(Progress { phase: Phase::Write, done: 0, total });
    let written = journal.write(&beside)?;
    journal.apply(file, path, &mut |done, total| progress(Progress { phase: Phase::Write, done, total }))?;
    remove(&beside)?;
    Ok(written.saturating_add(total))
}

fn would_move(revision: &Revision, source: &Source) -> String {
    let first = |starts: &mut dyn Iterator<Item = u64>| starts.min().unwrap_or(0);
    let old = first(&mut source.tensors.iter().map(|stored| stored.range.start));
    let new = first(&mut revision.plan.blobs().map(|(_, range)| range.start));
    let what = if new == old {
        "their order would be another one"
    } else if new > old {
        "the names or the tokenizer need more room before them than there is"
    } else {
        "they would begin earlier in the file"
    };
    format!("the weights would have to move ({what}), which an edit in place does not do; write a new file with -o")
}
