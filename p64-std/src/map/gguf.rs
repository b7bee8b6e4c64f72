//! A mapped GGUF.

use super::Mapping;
use crate::error::Result;
use crate::gguf::{self, Gguf, GgufTensor};
use std::fmt;
use std::path::{Path, PathBuf};

self_cell::self_cell!(
    struct Cell {
        owner: Mapping,
        #[covariant]
        dependent: Gguf,
    }
);

/// A GGUF whose payloads can be borrowed.
pub struct MappedGguf {
    path: PathBuf,
    cell: Cell,
}

impl MappedGguf {
    /// Maps and checks the file.
    ///
    /// # Errors
    /// As [`GgufFile::open`](crate::gguf::GgufFile::open).
    pub fn open(path: &Path) -> Result<Self> {
        let mapping = Mapping::open(path)?;
        let cell = Cell::try_new(mapping, |bytes| Gguf::parse(bytes)).map_err(|error| gguf::refuse(path, error))?;
        Ok(Self { path: path.to_owned(), cell })
    }

    /// Header, keys and tensor table.
    #[must_use]
    pub fn gguf(&self) -> &Gguf<'_> {
        self.cell.borrow_dependent()
    }

    /// Where the file was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The payload of one of the file's tensors.
    #[must_use]
    pub fn bytes(&self, tensor: &GgufTensor<'_>) -> &[u8] {
        self.gguf().extent(tensor).of(self.cell.borrow_owner()).unwrap_or_default()
    }
}

impl fmt::Debug for MappedGguf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedGguf").field("path", &self.path).field("tensors", &self.gguf().tensors().len()).finish()
    }
}
