//! What an export reads: the tensors and keys of a container in memory, or of all files of a set.

use crate::convert::provenance::is_added;
use crate::error::{Error, Result};
use crate::map::MappedSet;
use p64_core::container::{Container, Tensor, TensorInfo};
use p64_core::metadata::Metadata;
use std::path::Path;

/// A model as it is stored.
pub(super) struct Stored<'a> {
    /// Named in errors.
    pub path: &'a Path,
    pub metadata: Option<Metadata<'a>>,
    pub provenance: Option<Metadata<'a>>,
    /// The model's own tensors, by rising place in the whole model's table.
    pub tensors: Vec<StoredTensor<'a>>,
}

/// One tensor of it.
#[derive(Clone, Copy)]
pub(super) struct StoredTensor<'a> {
    /// Place in the whole model's table.
    pub index: u32,
    pub info: TensorInfo<'a>,
    path: &'a Path,
    container: &'a Container<'a>,
}

impl<'a> StoredTensor<'a> {
    /// The file that it stands in.
    pub const fn path(&self) -> &'a Path {
        self.path
    }

    /// The bytes, after their checksum has been verified.
    pub fn tensor(&self) -> Result<Tensor<'a>> {
        self.container.tensor(&self.info).map_err(|error| Error::core(self.path, error))
    }
}

impl<'a> Stored<'a> {
    pub fn of_set(set: &'a MappedSet) -> Result<Self> {
        let tensors = set.tensors().map(|found| {
            let (path, container) = (found.part.path(), found.part.container());
            StoredTensor { index: found.index, info: found.info, path, container }
        });
        let (metadata, provenance) = (set.metadata()?, set.provenance()?);
        Ok(Self { path: set.path(), metadata, provenance, tensors: tensors.collect() })
    }

    /// A container in memory; `path` is its label.
    pub fn of_container(path: &'a Path, container: &'a Container<'a>) -> Result<Self> {
        let core = |error| Error::core(path, error);
        let own = container.tensors().filter(|info| !is_added(info.name()));
        let tensors = own.map(|info| StoredTensor { index: info.index(), info, path, container }).collect();
        let (metadata, provenance) = (container.metadata().map_err(core)?, container.provenance().map_err(core)?);
        Ok(Self { path, metadata, provenance, tensors })
    }

    pub fn tensor(&self, index: u32) -> Option<StoredTensor<'a>> {
        let at = self.tensors.binary_search_by_key(&index, |tensor| tensor.index).ok()?;
        self.tensors.get(at).copied()
    }
}
