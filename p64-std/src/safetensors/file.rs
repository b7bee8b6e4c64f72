//! A safetensors file on disk, of which only the header is in memory.

use super::error::{Error as FormatError, Place, Problem};
use super::header::{Header, MAX_HEADER, TensorInfo};
use crate::error::{Error, Result};
use crate::files;
use crate::map::Mapping;
use p64_core::extent::Extent;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const LENGTH: u64 = 8;

/// An open safetensors file.
pub struct SafetensorsFile {
    path: PathBuf,
    file: File,
    len: u64,
    header: Header,
    data_offset: u64,
    /// Made when bytes are first borrowed: what reads in order does not map.
    mapping: OnceLock<Option<Mapping>>,
}

impl SafetensorsFile {
    /// Opens the file and checks its header.
    ///
    /// # Errors
    /// [`Error::Safetensors`] with the first broken rule of `docs/acceptance.md` §4, and what the system answers.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, len) = files::open(path)?;
        let refuse = |problem| Error::safetensors(path, FormatError::new(problem, Place::Header));
        let Some(have) = len.checked_sub(LENGTH) else { return Err(refuse(Problem::Short { have: len })) };
        let mut declared = [0; 8];
        files::read_at(&file, path, 0, &mut declared)?;
        let declared = u64::from_le_bytes(declared);
        if declared > MAX_HEADER {
            return Err(refuse(Problem::HeaderTooLarge { declared }));
        }
        let Some(data_len) = have.checked_sub(declared) else {
            return Err(refuse(Problem::HeaderPastEnd { declared, have }));
        };
        let mut text = vec![0; usize::try_from(declared).unwrap_or(0)];
        files::read_at(&file, path, LENGTH, &mut text)?;
        let header = Header::parse(&text, data_len).map_err(|error| Error::safetensors(path, error))?;
        let data_offset = LENGTH.saturating_add(declared);
        Ok(Self { path: path.to_owned(), file, len, header, data_offset, mapping: OnceLock::new() })
    }

    /// Where the file was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tensors and `__metadata__`.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of the file.
    #[must_use]
    pub const fn file_len(&self) -> u64 {
        self.len
    }

    /// File offset that the tensors' offsets count from.
    #[must_use]
    pub const fn data_offset(&self) -> u64 {
        self.data_offset
    }

    /// The file's bytes of one of its tensors.
    #[must_use]
    pub fn extent(&self, tensor: &TensorInfo) -> Extent {
        // The header's check has shown that the sum lies inside the file.
        Extent::new(self.data_offset.saturating_add(tensor.begin), tensor.len()).unwrap_or_default()
    }

    /// Fills `buffer` from file offset `offset`.
    ///
    /// # Errors
    /// What the system answers; a file that has become shorter is an [`Error::Io`] too.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        files::read_at(&self.file, &self.path, offset, buffer)
    }

    /// The bytes of one of the file's tensors in a mapping of it (see [`Mapping::open`] for what that asks of others);
    /// `None` where the file cannot be mapped or was replaced since it was opened.
    #[must_use]
    pub fn bytes(&self, tensor: &TensorInfo) -> Option<&[u8]> {
        let mapping = self.mapping.get_or_init(|| {
            let same = files::metadata(&self.file, &self.path).is_ok_and(|about| about.len() == self.len);
            Mapping::open(&self.path).ok().filter(|mapping| same && mapping.len() as u64 == self.len)
        });
        self.extent(tensor).of(mapping.as_ref()?)
    }
}

impl fmt::Debug for SafetensorsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensors = self.header.tensors.len();
        f.debug_struct("SafetensorsFile").field("path", &self.path).field("tensors", &tensors).finish()
    }
}
