//! The journal of an edit in place: what is about to be written, so that it can be written again.
//!
//! ```text
//! magic        8      "p64edit\0"
//! version      u32    1
//! regions      u32
//! old length   u64    of the file, in bytes
//! new length   u64
//! region       repeated: offset u64, length u64, in the order of the file
//! sectors      u32 each: for every sector that a region touches, CRC-32C of what the region covers of it in the old file
//! bytes        of the regions, as they are to be
//! checksum     u32    CRC-32C of all before
//! ```
//!
//! It stands beside the file as `<name>.p64-journal`, flushed and complete, before the first byte of the file changes,
//! and goes when the last one has been flushed. In between every sector of a region is the old one or the new one, whatever
//! ended the edit; that is what recovery checks before it writes the regions again. A file that was replaced meanwhile is
//! left alone.

use super::source;
use crate::atomic_file::{AtomicFile, sync_folder_of};
use crate::error::{Error, Result};
use crate::files::{self, Locked};
use crate::map::checksum;
use p64_core::validate::{Integrity, Policy};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"p64edit\0";
const VERSION: u32 = 1;
const HEAD: usize = 32;
/// What a device writes whole or not at all.
const SECTOR: u64 = 512;
/// Bytes that are written at a time.
const PIECE: usize = 1 << 16;

/// Where the journal of a file stands while the file is edited in place.
#[must_use]
pub fn journal_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(".p64-journal");
    name.into()
}

/// What became of an interrupted edit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// There was none.
    Nothing,
    /// Its journal was incomplete: the file is the old one, as it was.
    Discarded,
    /// It was completed: the file is the new one.
    Completed,
}

/// Completes an edit in place that was interrupted, or drops what it left.
///
/// # Errors
/// [`Error::Refused`] when the file is neither the old nor the new one nor between them: it was replaced, and the journal
/// beside it is left. [`Error::Io`] as of [`edit_in_place`](super::edit_in_place).
pub fn recover(path: &Path) -> Result<Recovery> {
    let path = path.canonicalize().map_err(|error| Error::io(path, "open it", error))?;
    let beside = journal_path(&path);
    if !beside.exists() {
        return Ok(Recovery::Nothing);
    }
    let file = Locked::exclusive(&path)?;
    let bytes = match std::fs::read(&beside) {
        Ok(bytes) => bytes,
        // Whoever had the lock before has recovered it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Recovery::Nothing),
        Err(error) => return Err(Error::io(&beside, "read it", error)),
    };
    let Some(journal) = Journal::parse(&bytes) else {
        remove(&beside)?;
        return Ok(Recovery::Discarded);
    };
    if !journal.is_of(&file, &path)? {
        let reason = format!(
            "the journal {} is of another file than the one that stands here now; if this one was put here on purpose, \
             delete the journal",
            beside.display()
        );
        return Err(Error::refused(&path, reason));
    }
    journal.apply(&file, &path, &mut |_, _| ())?;
    source::check(&file, &path, Policy::Strict, Integrity::Lazy)?;
    remove(&beside)?;
    Ok(Recovery::Completed)
}

/// Removes a journal that has served, for good.
pub(super) fn remove(beside: &Path) -> Result<()> {
    std::fs::remove_file(beside).map_err(|error| Error::io(beside, "remove it", error))?;
    sync_folder_of(beside).map_err(|error| Error::io(beside, "remove it", error))
}

/// What is to be written where.
pub(super) struct Journal<'a> {
    pub old_len: u64,
    pub new_len: u64,
    /// File offset and bytes.
    pub regions: Vec<(u64, &'a [u8])>,
    /// Checksums of the old file's sectors.
    sectors: Vec<u32>,
}

impl<'a> Journal<'a> {
    /// Of a file as it is now.
    pub fn new(file: &File, path: &Path, regions: Vec<(u64, &'a [u8])>, old_len: u64, new_len: u64) -> Result<Self> {
        let mut journal = Self { old_len, new_len, regions, sectors: Vec::new() };
        let mut sectors = Vec::new();
        let mut bytes = Vec::new();
        for range in journal.ranges() {
            let own = range.start..range.end.min(old_len).max(range.start);
            bytes.resize(usize::try_from(own.end.saturating_sub(own.start)).unwrap_or(0), 0);
            files::read_at(file, path, own.start, &mut bytes)?;
            sectors.push(checksum(&bytes));
        }
        journal.sectors = sectors;
        Ok(journal)
    }

    /// The parts of sectors that the regions cover, in order.
    fn ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let regions: Vec<(u64, u64)> = self.regions.iter().map(|(at, bytes)| (*at, bytes.len() as u64)).collect();
        regions.into_iter().flat_map(|(start, len)| {
            let end = start.saturating_add(len);
            let mut at = start;
            std::iter::from_fn(move || {
                let from = at;
                at = from.saturating_add(SECTOR).saturating_sub(from % SECTOR).min(end);
                (from < end).then_some(from..at)
            })
        })
    }

    /// Puts the journal beside the file, complete and durable.
    pub fn write(&self, beside: &Path) -> Result<u64> {
        let mut out = MAGIC.to_vec();
        let count = u32::try_from(self.regions.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&self.old_len.to_le_bytes());
        out.extend_from_slice(&self.new_len.to_le_bytes());
        for (at, bytes) in &self.regions {
            out.extend_from_slice(&at.to_le_bytes());
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        }
        out.extend(self.sectors.iter().flat_map(|crc| crc.to_le_bytes()));
        self.regions.iter().for_each(|(_, bytes)| out.extend_from_slice(bytes));
        out.extend_from_slice(&checksum(&out).to_le_bytes());
        let mut file = AtomicFile::create(beside)?;
        file.file().write_all(&out).map_err(|error| Error::io(beside, "write it", error))?;
        file.commit()?;
        Ok(out.len() as u64)
    }

    /// `None` for what is no complete journal.
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (content, crc) = bytes.split_last_chunk::<4>()?;
        if checksum(content) != u32::from_le_bytes(*crc) {
            return None;
        }
        let (head, mut rest) = content.split_at_checked(HEAD)?;
        let number = |at: usize| head.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let word = |at: usize| head.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        if head.get(..8)? != MAGIC || word(8)? != VERSION {
            return None;
        }
        let (old_len, new_len) = (number(16)?, number(24)?);
        let mut lengths = Vec::new();
        for _ in 0..word(12)? {
            let (at, after) = rest.split_first_chunk()?;
            let (len, after) = after.split_first_chunk()?;
            lengths.push((u64::from_le_bytes(*at), u64::from_le_bytes(*len)));
            rest = after;
        }
        // The bytes stand behind the sectors, whose number follows from the lengths.
        let all = lengths.iter().try_fold(0u64, |sum, (_, len)| sum.checked_add(*len))?;
        let sectors = rest.len().checked_sub(usize::try_from(all).ok()?)?;
        let (sectors, mut rest) = rest.split_at_checked(sectors)?;
        let mut regions = Vec::new();
        for (at, len) in lengths {
            at.checked_add(len).filter(|end| *end <= new_len)?;
            let (own, after) = rest.split_at_checked(usize::try_from(len).ok()?)?;
            regions.push((at, own));
            rest = after;
        }
        let (words, []) = sectors.as_chunks::<4>() else { return None };
        let sectors = words.iter().map(|crc| u32::from_le_bytes(*crc)).collect::<Vec<_>>();
        let journal = Self { old_len, new_len, regions, sectors };
        (journal.ranges().count() == journal.sectors.len()).then_some(journal)
    }

    /// Whether every sector is the old or the new one.
    fn is_of(&self, file: &File, path: &Path) -> Result<bool> {
        let len = files::metadata(file, path)?.len();
        if len < self.old_len.min(self.new_len) || len > self.old_len.max(self.new_len) {
            return Ok(false);
        }
        let new: Vec<u8> = self.regions.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        let mut new = new.as_slice();
        let mut found = Vec::new();
        for (range, old) in self.ranges().zip(&self.sectors) {
            let size = |from: u64, to: u64| usize::try_from(to.saturating_sub(from)).unwrap_or(0);
            let (own, rest) = new.split_at_checked(size(range.start, range.end)).unwrap_or_default();
            new = rest;
            found.resize(size(range.start, range.end.min(len).max(range.start)), 0);
            files::read_at(file, path, range.start, &mut found)?;
            let is_new = own.starts_with(&found);
            // Where the file grew, zeros may stand behind what was there.
            let (before, grown) = found
                .split_at_checked(size(range.start, range.end.min(self.old_len).max(range.start)))
                .unwrap_or_default();
            let is_old = checksum(before) == *old && grown.iter().all(|byte| *byte == 0);
            if !is_new && !is_old {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the regions and flushes them. It can be done any number of times. `written` is told before each piece how
    /// many of how many bytes are done.
    pub fn apply(&self, file: &File, path: &Path, written: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let total = self.regions.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let mut done = 0u64;
        for (start, bytes) in &self.regions {
            let (mut at, mut rest) = (*start, *bytes);
            while !rest.is_empty() {
                // A process may end between two writes: pieces end where sectors do.
                let size = PIECE.saturating_sub(usize::try_from(at % SECTOR).unwrap_or(0));
                let (piece, after) = rest.split_at_checked(size).unwrap_or((rest, &[]));
                written(done, total);
                files::write_at(file, path, at, piece)?;
                let len = piece.len() as u64;
                (at, done, rest) = (at.saturating_add(len), done.saturating_add(len), after);
            }
        }
        written(done, total);
        file.set_len(self.new_len).map_err(|error| Error::io(path, "change its length", error))?;
        written(done, total);
        file.sync_all().map_err(|error| Error::io(path, "write it", error))?;
        written(done, total);
        Ok(())
    }
}
