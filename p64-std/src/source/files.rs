//! The files that tensors come from.

use super::{Payload, SourceTensor};
use crate::convert::provenance::is_added;
use crate::error::{Error, Result};
use crate::files;
use crate::gguf::{GgufFile, GgufSet, GgufTensor};
use crate::map::{MapOptions, MappedContainer};
use crate::safetensors::{self, SafetensorsSet};
use crate::sniff::Kind;
use p64_core::container::{Container, TensorInfo};
use p64_core::metadata::Metadata;
use p64_core::validate::Integrity;
use p64_core::{DType, Shape};
use std::path::Path;

/// A model file of any format that is read.
#[derive(Debug)]
pub enum OpenSource {
    /// A GGUF, or all files of a split one.
    Gguf(GgufSet),
    /// A container.
    P64(Box<MappedContainer>),
    /// One safetensors file, or all files of a sharded model; a container can hold every tensor of it.
    Safetensors(SafetensorsSet),
}

impl OpenSource {
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
                let (mapped, _) = MappedContainer::open(path, &options)?;
                Ok(Self::P64(Box::new(mapped)))
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
            Self::P64(mapped) => container_tensors(mapped).into_iter().map(|(_, tensor)| tensor).collect(),
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
            Self::P64(mapped) => mapped.container().metadata().map_err(|error| Error::core(mapped.path(), error)),
            Self::Safetensors(_) => Ok(None),
        }
    }
}

/// All tensors, the tables of the files one after the other.
pub(super) fn gguf_tensors(set: &GgufSet) -> Vec<SourceTensor<'_>> {
    let tensors = set.tensors();
    tensors.map(|(file, tensor)| SourceTensor::new(tensor.name, tensor.offset, InGguf { file, tensor })).collect()
}

/// The tensors that come from the container's own source, with their place in its table, in that order.
pub(super) fn container_tensors(mapped: &MappedContainer) -> Vec<(u32, SourceTensor<'_>)> {
    let container = mapped.container();
    let own = container.tensors().filter(|info| !is_added(info.name()));
    own.map(|info| {
        let payload = InContainer { path: mapped.path(), container, info };
        let mut tensor = SourceTensor::new(info.name(), info.source_offset(), payload);
        tensor.source_name_hash = Some(info.source_name_hash());
        tensor.role = Some((info.role(), info.role().is_layer().then(|| info.manifold_idx())));
        (info.index(), tensor)
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

struct InContainer<'s> {
    path: &'s Path,
    container: &'s Container<'s>,
    info: TensorInfo<'s>,
}

impl Payload for InContainer<'_> {
    fn dtype(&self) -> DType {
        self.info.dtype()
    }

    fn shape(&self) -> Shape {
        self.info.shape()
    }

    fn len(&self) -> u64 {
        self.info.extent().len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        inside(self.path, offset, out.len(), self.len())?;
        let tensor = self.container.tensor(&self.info).map_err(|error| Error::core(self.path, error))?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = tensor.bytes().get(start..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(bytes.unwrap_or_default());
        Ok(())
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.container.tensor(&self.info).ok().map(|tensor| tensor.bytes())
    }
}

/// A read beyond a payload is a fault of the caller's, answered as the end of a file is.
fn inside(path: &Path, offset: u64, wanted: usize, len: u64) -> Result<()> {
    match offset.checked_add(wanted as u64) {
        Some(end) if end <= len => Ok(()),
        _ => Err(Error::io(path, "read it", std::io::ErrorKind::UnexpectedEof.into())),
    }
}
