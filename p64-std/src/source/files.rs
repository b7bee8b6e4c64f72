//! The files that tensors come from.

use super::{Payload, SourceTensor};
use crate::error::{Error, Result};
use crate::files;
use crate::gguf::{GgufFile, GgufSet, GgufTensor};
use crate::map::{MapOptions, MappedSet, SetTensor};
use crate::safetensors::{self, SafetensorsSet};
use crate::sniff::Kind;
use p64_core::metadata::Metadata;
use p64_core::validate::Integrity;
use p64_core::{DType, Shape};
use std::path::Path;

/// A model file of any format that is read.
#[derive(Debug)]
pub enum OpenSource {
    /// A GGUF, or all files of a split one.
    Gguf(GgufSet),
    /// A container, or all files of a split set of them.
    P64(Box<MappedSet>),
    /// One safetensors file, or all files of a sharded model; a container can hold every tensor of it.
    Safetensors(SafetensorsSet),
}

impl OpenSource {
    /// The files that were opened.
    #[must_use]
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Self::Gguf(set) => set.parts().iter().map(|part| part.path()).collect(),
            Self::P64(set) => set.parts().iter().map(|part| part.path()).collect(),
            Self::Safetensors(set) => set.index_path().into_iter().chain(set.paths()).collect(),
        }
    }

    /// Whether a path leads to one of them, by whatever name.
    #[must_use]
    pub fn has_file(&self, path: &Path) -> bool {
        self.paths().iter().any(|own| files::is_same_file(own, path))
    }

    /// Opens the file; its first bytes tell the format. A folder is opened by the safetensors model in it. Checksums of a
    /// container are verified as its bytes are read.
    ///
    /// # Errors
    /// What the reader of the format answers; [`Error::NotAModel`] for files of no format that is read.
    pub fn open(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Self::open_safetensors(path);
        }
        match files::kind(path)? {
            Kind::Gguf => GgufSet::open(path).map(Self::Gguf),
            Kind::P64 => {
                let options = MapOptions { integrity: Integrity::Lazy, ..MapOptions::default() };
                let (set, _) = MappedSet::open(path, &options)?;
                Ok(Self::P64(Box::new(set)))
            }
            Kind::Safetensors | Kind::SafetensorsIndex => Self::open_safetensors(path),
            kind => Err(Error::NotAModel { path: path.to_owned(), kind }),
        }
    }

    fn open_safetensors(path: &Path) -> Result<Self> {
        let set = SafetensorsSet::open(path)?;
        set.check_storable()?;
        Ok(Self::Safetensors(set))
    }

    /// The model's tensors in the order of the file's table, without what a converter added.
    #[must_use]
    pub fn tensors(&self) -> Vec<SourceTensor<'_>> {
        match self {
            Self::Gguf(set) => gguf_tensors(set),
            Self::P64(set) => container_tensors(set).into_iter().map(|(_, tensor)| tensor).collect(),
            // Opening has shown that each can be held.
            Self::Safetensors(set) => safetensors::tensors(set).unwrap_or_default(),
        }
    }

    /// The GGUF keys of the model, where the file has some.
    ///
    /// # Errors
    /// Malformed metadata of a container.
    pub fn metadata(&self) -> Result<Option<Metadata<'_>>> {
        match self {
            Self::Gguf(set) => Ok(Some(set.metadata())),
            Self::P64(set) => set.metadata(),
            Self::Safetensors(_) => Ok(None),
        }
    }
}

/// All tensors, the tables of the files one after the other.
pub(super) fn gguf_tensors(set: &GgufSet) -> Vec<SourceTensor<'_>> {
    let tensors = set.tensors();
    tensors.map(|(file, tensor)| SourceTensor::new(tensor.name, tensor.offset, InGguf { file, tensor })).collect()
}

/// A tensor of a container, row after row.
pub(crate) fn container_payload(found: SetTensor<'_>) -> Box<dyn Payload + '_> {
    let name = found.info.name();
    SourceTensor::new(name, found.info.source_offset(), InContainer(found)).payload
}

/// The tensors that come from the container's own source, with their place in the whole model's table, in that order.
pub(super) fn container_tensors(set: &MappedSet) -> Vec<(u32, SourceTensor<'_>)> {
    set.tensors()
        .map(|found| {
            let info = found.info;
            let mut tensor = SourceTensor::new(info.name(), info.source_offset(), InContainer(found));
            tensor.source_name_hash = Some(info.source_name_hash());
            tensor.role = Some((info.role(), info.role().is_layer().then(|| info.manifold_idx())));
            (found.index, tensor)
        })
        .collect()
}

struct InGguf<'s> {
    file: &'s GgufFile,
    tensor: &'s GgufTensor<'s>,
}

impl Payload for InGguf<'_> {
    fn dtype(&self) -> DType {
        self.tensor.dtype
    }

    fn shape(&self) -> Shape {
        self.tensor.shape
    }

    fn len(&self) -> u64 {
        self.tensor.size
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let extent = self.file.extent(self.tensor);
        inside(self.file.path(), offset, out.len(), extent.len())?;
        self.file.read_at(extent.start().saturating_add(offset), out)
    }
}

struct InContainer<'s>(SetTensor<'s>);

impl Payload for InContainer<'_> {
    fn dtype(&self) -> DType {
        self.0.info.dtype()
    }

    fn shape(&self) -> Shape {
        self.0.info.shape()
    }

    fn len(&self) -> u64 {
        self.0.info.extent().len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        inside(self.0.part.path(), offset, out.len(), self.len())?;
        let tensor = self.0.tensor()?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = tensor.bytes().get(start..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(bytes.unwrap_or_default());
        Ok(())
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.0.tensor().ok().map(|tensor| tensor.bytes())
    }
}

/// A read beyond a payload is a fault of the caller's, answered as the end of a file is.
fn inside(path: &Path, offset: u64, wanted: usize, len: u64) -> Result<()> {
    match offset.checked_add(wanted as u64) {
        Some(end) if end <= len => Ok(()),
        _ => Err(Error::io(path, "read it", std::io::ErrorKind::UnexpectedEof.into())),
    }
}
