//! Files mapped into memory, read-only: the operating system brings pages in as they are touched and drops them when
//! memory is short.

mod container;
mod gguf;
mod set;

pub use container::{CHECKSUM, MAX_WARNINGS, MapOptions, MappedContainer, checksum};
pub use gguf::MappedGguf;
pub use set::{MappedSet, SetTensor, SetWarning, SetWeights};

use crate::error::{Error, Result};
use crate::files::{self, Locked};
use memmap2::Mmap;
use std::ops::Deref;
use std::path::Path;

/// The bytes of a file, mapped or, for a file without bytes (which cannot be mapped), empty.
#[derive(Debug)]
pub struct Mapping(Option<(Mmap, Locked)>);

impl Mapping {
    /// Maps a regular file.
    ///
    /// Whoever changes the file in place while it is mapped changes what was checked; a file that is made shorter ends
    /// the process with SIGBUS at the next touch of a missing page. Files that are replaced by renaming, as our writer
    /// does, are safe: the mapping keeps the old one. [`edit_in_place`](crate::edit::edit_in_place) asks for the file for
    /// itself, so the mapping holds a shared lock on it, where the file system has locks.
    ///
    /// # Errors
    /// [`Error::NotAFile`], [`Error::Io`] of [`std::io::ErrorKind::ResourceBusy`] while the file is being edited in place, and
    /// what the system answers.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, len) = files::open(path)?;
        let file = Locked::shared(file, path)?;
        if len == 0 {
            return Ok(Self(None));
        }
        // SAFETY: the mapping is private to this value, read-only and as long as the file is now, so every byte of the
        // slice is backed. That nobody else truncates or rewrites the file meanwhile cannot be proven by a process; it
        // is the documented condition above, and the reason why converters read instead of mapping.
        #[expect(unsafe_code, reason = "the one mapping of the crate")]
        let map = unsafe { memmap2::MmapOptions::new().map(&*file) };
        let map = map.map_err(|error| Error::io(path, "map it", error))?;
        if map.len() as u64 != len {
            return Err(Error::SourceChanged { path: path.to_owned() });
        }
        Ok(Self(Some((map, file))))
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |(map, _)| map)
    }
}
