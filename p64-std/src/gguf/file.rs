//! A GGUF on disk, of which only the front is in memory.

use super::error::{Error as GgufError, Place, Problem};
use super::head::{Gguf, MAX_HEAD, Stop};
use super::tensors::GgufTensor;
use crate::error::{Error, Result};
use crate::files;
use crate::sniff::Kind;
use p64_core::extent::Extent;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

self_cell::self_cell!(
    struct Head {
        owner: Vec<u8>,
        #[covariant]
        dependent: Gguf,
    }
);

/// First read, which doubles while the table goes on: a front without a vocabulary is mostly shorter.
const FIRST_READ: u64 = 256 * 1024;

/// An open GGUF: header, keys and tensor table in memory, payloads read on demand.
pub struct GgufFile {
    path: PathBuf,
    /// `None` when `head` is the whole file.
    file: Option<File>,
    head: Head,
}

impl GgufFile {
    /// Opens and checks the file. It takes in at most twice the bytes up to the end of its tensor table.
    ///
    /// # Errors
    /// [`Error::Gguf`] with the first broken rule of `docs/acceptance.md`, [`Error::NotAModel`] or
    /// [`Error::WrongFormat`] for other kinds of files, and what the system answers.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, len) = files::open(path)?;
        let head = read_head(&file, path, len)?;
        let gguf = head.borrow_dependent();
        let tail = gguf.tail().map_err(|error| Error::gguf(path, error))?;
        let mut bytes = vec![0; usize::try_from(tail.len()).unwrap_or(0)];
        files::read_at(&file, path, tail.start(), &mut bytes)?;
        gguf.check_tail(&bytes).map_err(|error| Error::gguf(path, error))?;
        Ok(Self { path: path.to_owned(), file: Some(file), head })
    }

    /// Takes a file that is in memory; `label` stands for its path in messages.
    ///
    /// # Errors
    /// As [`GgufFile::open`], but for the system's answers.
    pub fn from_bytes(label: &Path, bytes: Vec<u8>) -> Result<Self> {
        let head = Head::try_new(bytes, |bytes| Gguf::parse(bytes)).map_err(|error| refuse(label, error))?;
        Ok(Self { path: label.to_owned(), file: None, head })
    }

    /// Header, keys and tensor table.
    #[must_use]
    pub fn gguf(&self) -> &Gguf<'_> {
        self.head.borrow_dependent()
    }

    /// Where the file was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes up to the end of the tensor table and some more, as they were read.
    #[must_use]
    pub fn head_bytes(&self) -> &[u8] {
        self.head.borrow_owner()
    }

    /// The open file itself, when there is one.
    pub(crate) const fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// Fills `buffer` from file offset `offset`.
    ///
    /// # Errors
    /// What the system answers; a file that has become shorter is an [`Error::Io`] too.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        if let Some(file) = &self.file {
            return files::read_at(file, &self.path, offset, buffer);
        }
        let wanted = Extent::new(offset, buffer.len() as u64).and_then(|extent| extent.of(self.head_bytes()));
        let end = || Error::io(&self.path, "read it", std::io::ErrorKind::UnexpectedEof.into());
        buffer.copy_from_slice(wanted.ok_or_else(end)?);
        Ok(())
    }

    /// The file's bytes of one of its tensors.
    #[must_use]
    pub fn extent(&self, tensor: &GgufTensor<'_>) -> Extent {
        self.gguf().extent(tensor)
    }
}

impl fmt::Debug for GgufFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GgufFile").field("path", &self.path).field("tensors", &self.gguf().tensors().len()).finish()
    }
}

fn read_head(file: &File, path: &Path, len: u64) -> Result<Head> {
    let mut bytes = Vec::new();
    let mut want = FIRST_READ;
    loop {
        if want > MAX_HEAD {
            let problem = Problem::HeadTooLarge { limit: MAX_HEAD };
            return Err(Error::gguf(path, GgufError::new(problem, Place::Header)));
        }
        files::read_on(file, path, &mut bytes, want.min(len))?;
        match Head::try_new_or_recover(bytes, |bytes| Gguf::parse_head(bytes, len)) {
            Ok(head) => return Ok(head),
            Err((front, Stop::NeedMore)) => bytes = front,
            Err((_, Stop::Refused(error))) => return Err(refuse(path, error)),
        }
        want = want.saturating_mul(2);
    }
}

/// A file of another kind is that kind's error, not a broken rule of GGUF.
pub(crate) fn refuse(path: &Path, error: GgufError) -> Error {
    let found = match error.problem {
        Problem::NotGguf(kind) => kind,
        Problem::BigEndian => Kind::GgufBigEndian,
        Problem::Short { have: 0, .. } if error.place == Place::Header => Kind::Empty,
        _ => return Error::gguf(path, error),
    };
    files::other_kind(path, found, Kind::Gguf)
}
