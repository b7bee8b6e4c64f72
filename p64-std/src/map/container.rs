//! A mapped P64.

use super::Mapping;
use crate::error::{Error, Result};
use crate::files;
use crate::sniff::Kind;
use crc_fast::{CrcAlgorithm, Digest};
use p64_core::container::{Container, TensorInfo};
use p64_core::crc32c::Checksum;
use p64_core::layout::header::RawHeader;
use p64_core::layout::{RECORD, header::MAGIC};
use p64_core::validate::{Integrity, NameSlot, OpenOptions, Policy, Storage};
use self_cell::MutBorrow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use zerocopy::FromBytes;

/// CRC-32C by the processor's own instructions where it has them; the same values as [`p64_core::crc32c::checksum`].
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    low(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes))
}

/// [`checksum`] in the form core takes, which also continues over a next piece.
pub const CHECKSUM: Checksum = Checksum::new(|crc, bytes| {
    if crc == 0 {
        return checksum(bytes);
    }
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    low(digest.finalize())
});

/// A 32-bit CRC has no bits above 32.
fn low(crc: u64) -> u32 {
    u32::try_from(crc & u64::from(u32::MAX)).unwrap_or(0)
}

/// Most deviations that [`MappedContainer::open`] answers with: a hostile file can have several for each entry.
pub const MAX_WARNINGS: usize = 1_000;

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapOptions {
    /// Whether known deviations are errors or warnings.
    pub policy: Policy,
    /// When the blobs' checksums are verified.
    pub integrity: Integrity,
    /// Threads that verify checksums under [`Integrity::Full`]; 0 for one per core.
    pub threads: usize,
}

impl Default for MapOptions {
    fn default() -> Self {
        Self { policy: Policy::Compatible, integrity: Integrity::Full, threads: 0 }
    }
}

struct Owner {
    mapping: Mapping,
    verified: MutBorrow<Box<[AtomicU8]>>,
    names: MutBorrow<Box<[NameSlot]>>,
}

self_cell::self_cell!(
    struct Cell {
        owner: Owner,
        #[covariant]
        dependent: Container,
    }
);

/// A validated container together with the mapping it lies in, an index of its names and the record of verified blobs.
pub struct MappedContainer {
    path: PathBuf,
    cell: Cell,
}

impl MappedContainer {
    /// Maps and validates the file. Also answers the deviations that the policy let pass, in the order of the checks,
    /// the first [`MAX_WARNINGS`] of them.
    ///
    /// # Errors
    /// [`Error::Core`] with the first failed check, [`Error::NotAModel`] or [`Error::WrongFormat`] for other kinds of
    /// files, and what the system answers.
    pub fn open(path: &Path, options: &MapOptions) -> Result<(Self, Vec<p64_core::Error>)> {
        let mapping = Mapping::open(path)?;
        let tensors = count_tensors(&mapping, path)?;
        let owner = Owner {
            verified: MutBorrow::new((0..tensors).map(|_| AtomicU8::new(0)).collect()),
            names: MutBorrow::new(vec![NameSlot::default(); tensors].into_boxed_slice()),
            mapping,
        };
        let mut warnings = Vec::new();
        // Blobs are verified below, by several threads; `verified` then makes each a single look-up.
        let lazy = OpenOptions { policy: options.policy, integrity: Integrity::Lazy, checksum: CHECKSUM };
        let cell = Cell::try_new(owner, |owner| {
            let storage = Storage { names: owner.names.borrow_mut(), verified: owner.verified.borrow_mut() };
            Container::open_with(&owner.mapping, &lazy, storage, &mut |warning| {
                if warnings.len() < MAX_WARNINGS {
                    warnings.push(warning);
                }
            })
        });
        let cell = cell.map_err(|error| Error::core(path, error))?;
        let container = Self { path: path.to_owned(), cell };
        if options.integrity == Integrity::Full {
            container.verify(options.threads)?;
        }
        Ok((container, warnings))
    }

    /// Verifies every blob that has not been, by `threads` threads; 0 for one per core. Of a container that was opened under
    /// [`Integrity::Full`] none is left.
    ///
    /// # Errors
    /// [`Error::Core`] with the first blob of the table whose checksum does not match.
    pub fn verify(&self, threads: usize) -> Result<()> {
        verify(self.container(), threads).map_err(|error| Error::core(&self.path, error))
    }

    /// The container. What it hands out borrows from `self`.
    #[must_use]
    pub fn container(&self) -> &Container<'_> {
        self.cell.borrow_dependent()
    }

    /// Where the file was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's bytes before its checksum table: header, records, names and tokenizer, all of which have been checked.
    #[must_use]
    pub fn front(&self) -> &[u8] {
        let end = usize::try_from(self.container().sections().checksums.start()).unwrap_or(0);
        self.cell.borrow_owner().mapping.get(..end).unwrap_or_default()
    }
}

impl fmt::Debug for MappedContainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensors = self.container().tensor_count();
        f.debug_struct("MappedContainer").field("path", &self.path).field("tensors", &tensors).finish()
    }
}

/// The header's tensor count where the file has room for that many entries, so that no storage is made for a claim.
/// What else is wrong with the header is core's to say.
fn count_tensors(file: &[u8], path: &Path) -> Result<usize> {
    if !file.starts_with(&MAGIC) {
        let kind = Kind::of(file.get(..crate::sniff::SNIFF_LEN).unwrap_or(file));
        return Err(files::other_kind(path, kind, Kind::P64));
    }
    let Ok((header, _)) = RawHeader::ref_from_prefix(file) else { return Ok(0) };
    let count = usize::try_from(header.tensor_count.get()).unwrap_or(usize::MAX);
    Ok(if count <= file.len() / RECORD { count } else { 0 })
}

/// Verifies every blob. Of several that fail, the first of the table is reported, whatever thread found it.
fn verify(container: &Container<'_>, threads: usize) -> p64_core::Result<()> {
    let available = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let threads = if threads == 0 { available() } else { threads };
    let mut infos: Vec<TensorInfo<'_>> = container.tensors().collect();
    // The largest can be most of the file: whoever has it is done last.
    infos.sort_by_key(|info| std::cmp::Reverse(info.extent().len()));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut first = None;
        // Blobs differ in length by orders of magnitude: each thread takes the next, not a share.
        while let Some(info) = infos.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = container.tensor(info) {
                first = first.into_iter().chain([(info.index(), error)]).min_by_key(|(index, _)| *index);
            }
        }
        first
    };
    let found: Vec<_> = std::thread::scope(|scope| {
        // Threads that the system does not give are done without.
        let help = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (1..threads.min(infos.len())).map_while(help).collect();
        let own = work();
        helpers.into_iter().map(|helper| helper.join().unwrap_or_default()).chain([own]).collect()
    });
    // A thread that panicked has verified less than it took; this pass finds out, and costs nothing otherwise.
    match found.into_iter().flatten().min_by_key(|(index, _)| *index) {
        Some((_, error)) => Err(error),
        None => container.verify_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published check value, and core's implementation on every length up to a few cache lines.
    #[test]
    fn checksum_is_crc_32c() {
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
        let bytes: Vec<u8> = (0u32..1200).map(|i| u8::try_from(i * i % 251).expect("below 251")).collect();
        for len in 0..bytes.len() {
            let expected = p64_core::crc32c::checksum(&bytes[..len]);
            assert_eq!(checksum(&bytes[..len]), expected, "{len} bytes");
            let (head, tail) = bytes[..len].split_at(len / 3);
            assert_eq!(CHECKSUM.update(CHECKSUM.of(head), tail), expected, "{len} bytes in two pieces");
        }
    }

    #[test]
    fn it_can_be_shared_between_threads() {
        fn check<T: Send + Sync>() {}
        check::<MappedContainer>();
    }
}
