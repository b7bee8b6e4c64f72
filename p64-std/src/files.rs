//! Opening and reading files with errors that say which path and what was being done.

use crate::error::{Error, Result};
use crate::sniff::{Kind, SNIFF_LEN};
use std::fs::{File, FileType, Metadata, TryLockError};
use std::io;
use std::ops::Deref;
use std::path::Path;

/// Opens a regular file for reading and says how many bytes it has. A pipe or a device is refused before it is opened,
/// which could block.
pub(crate) fn open(path: &Path) -> Result<(File, u64)> {
    let about = std::fs::metadata(path).map_err(|error| Error::io(path, "open it", error))?;
    if let Some(what) = not_a_file(about.file_type()) {
        return Err(Error::NotAFile { path: path.to_owned(), what });
    }
    let file = File::open(path).map_err(|error| Error::io(path, "open it", error))?;
    let about = metadata(&file, path)?;
    Ok((file, about.len()))
}

pub(crate) fn metadata(file: &File, path: &Path) -> Result<Metadata> {
    file.metadata().map_err(|error| Error::io(path, "ask for its size", error))
}

/// What something is that is no regular file.
pub(crate) fn not_a_file(kind: FileType) -> Option<&'static str> {
    match kind {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => Some("a folder"),
        _ => Some("a device or pipe"),
    }
}

/// The error for a file of kind `found` where `wanted` is needed.
pub(crate) fn other_kind(path: &Path, found: Kind, wanted: Kind) -> Error {
    let path = path.to_owned();
    if found.is_model() { Error::WrongFormat { path, found, wanted } } else { Error::NotAModel { path, kind: found } }
}

/// The kind of a file, by its first bytes.
pub(crate) fn kind(path: &Path) -> Result<Kind> {
    let (file, len) = open(path)?;
    let mut head = Vec::new();
    read_on(&file, path, &mut head, len.min(SNIFF_LEN as u64))?;
    Ok(Kind::of(&head))
}

/// Fills `buffer` from file offset `offset`. On Unix the file's own position is not used, so threads may share it.
pub(crate) fn read_at(file: &File, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<()> {
    #[cfg(unix)]
    let done = std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset);
    #[cfg(not(unix))]
    let done = {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = file;
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(buffer))
    };
    done.map_err(|error| Error::io(path, "read it", error))
}

/// Writes all of `bytes` at file offset `offset`.
pub(crate) fn write_at(file: &File, path: &Path, offset: u64, bytes: &[u8]) -> Result<()> {
    #[cfg(unix)]
    let done = std::os::unix::fs::FileExt::write_all_at(file, bytes, offset);
    #[cfg(not(unix))]
    let done = {
        use std::io::{Seek, SeekFrom, Write};
        let mut file = file;
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.write_all(bytes))
    };
    done.map_err(|error| Error::io(path, "write it", error))
}

/// Appends to `bytes`, which holds the front of the file, until it holds the first `want` bytes.
pub(crate) fn read_on(file: &File, path: &Path, bytes: &mut Vec<u8>, want: u64) -> Result<()> {
    let have = bytes.len();
    let want = usize::try_from(want).map_err(|_| Error::io(path, "read it", io::ErrorKind::OutOfMemory.into()))?;
    if want > have {
        bytes.resize(want, 0);
        read_at(file, path, have as u64, bytes.get_mut(have..).unwrap_or_default())?;
    }
    Ok(())
}

/// An open file with a lock on it, where the file system has locks: shared by those who read it, exclusive for an edit in
/// place.
#[derive(Debug)]
pub(crate) struct Locked(File);

impl Locked {
    /// For reading, as long as no edit in place is under way.
    pub fn shared(file: File, path: &Path) -> Result<Self> {
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                Err(Error::io(path, "read it while it is being edited in place", io::ErrorKind::ResourceBusy.into()))
            }
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self(file)),
        }
    }

    /// For this process alone, to be written to.
    pub fn exclusive(path: &Path) -> Result<Self> {
        // Refuses what is no file before it is opened.
        open(path)?;
        let file = File::options().read(true).write(true).open(path);
        let file = file.map_err(|error| Error::io(path, "write to it", error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => {
                let action = "edit it in place while another program uses it";
                Err(Error::io(path, action, io::ErrorKind::ResourceBusy.into()))
            }
            Err(TryLockError::Error(error)) => Err(Error::io(path, "lock it", error)),
        }
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a process that is just being started and has inherited the file.
        let _ = self.0.unlock();
    }
}

/// Whether two paths lead to one file.
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        match (std::fs::metadata(a), std::fs::metadata(b)) {
            (Ok(a), Ok(b)) => a.dev() == b.dev() && a.ino() == b.ino(),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    {
        match (a.canonicalize(), b.canonicalize()) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        }
    }
}
