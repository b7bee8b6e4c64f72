//! Model files that a command looks into: which format, mapped, and checked.

use crate::failure::Result;
use p64_core::validate::{NameSlot, OpenOptions, Storage};
use p64_core::{Container, Error as CoreError};
use p64_std::Error;
use p64_std::map::{MappedGguf, Mapping};
use p64_std::sniff::{Kind, SNIFF_LEN};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU8;

/// A model file of either format.
pub enum Input {
    P64(P64File),
    Gguf(MappedGguf),
}

impl Input {
    /// Maps the file and tells its format from its first bytes.
    pub fn open(path: &Path) -> Result<Self> {
        let mapping = Mapping::open(path)?;
        let kind = Kind::of(mapping.get(..SNIFF_LEN).unwrap_or(&mapping));
        match kind {
            Kind::P64 => Ok(Self::P64(P64File::new(path, mapping))),
            Kind::Gguf => Ok(Self::Gguf(MappedGguf::open(path)?)),
            kind => Err(Error::NotAModel { path: path.to_owned(), kind }.into()),
        }
    }
}

/// A mapped `.p64` with the memory that a container borrows.
pub struct P64File {
    path: PathBuf,
    mapping: Mapping,
    names: Vec<NameSlot>,
    verified: Vec<AtomicU8>,
}

impl P64File {
    fn new(path: &Path, mapping: Mapping) -> Self {
        // The validator compares the count with the file; until then it must not decide how much is allocated.
        let room = mapping.len() / 64;
        let count = mapping.get(36..40).and_then(|bytes| bytes.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b));
        let count = usize::try_from(count).unwrap_or(room).min(room);
        let verified = std::iter::repeat_with(AtomicU8::default).take(count).collect();
        Self { path: path.to_owned(), mapping, names: vec![NameSlot::default(); count], verified }
    }

    /// Validates the file; the second value is what the compatible policy let pass.
    pub fn container(&mut self, options: &OpenOptions) -> Result<(Container<'_>, Vec<CoreError>)> {
        let mut warnings = Vec::new();
        let storage = Storage { names: &mut self.names, verified: &mut self.verified };
        let container = Container::open_with(&self.mapping, options, storage, &mut |warning| warnings.push(warning));
        match container {
            Ok(container) => Ok((container, warnings)),
            Err(source) => Err(Error::Core { path: self.path.clone(), source }.into()),
        }
    }
}
