//! A split GGUF: files `<stem>-00001-of-0000N.gguf` that hold one model together.

use super::error::{Error as GgufError, Place, Problem};
use super::file::GgufFile;
use super::tensors::GgufTensor;
use crate::error::{Error, Result};
use crate::part_name::{self, PartName};
use p64_core::metadata::Metadata;
use std::collections::HashSet;
use std::path::Path;

const COUNT: &str = "split.count";
const NUMBER: &str = "split.no";
const TENSORS: &str = "split.tensors.count";

/// One GGUF, or all files of a split one.
#[derive(Debug)]
pub struct GgufSet {
    parts: Vec<GgufFile>,
}

impl GgufSet {
    /// Opens a GGUF; when it is the first file of a set, all of them.
    ///
    /// # Errors
    /// As [`GgufFile::open`] for each file. A missing file is named; files that do not belong together, and a file that
    /// is not the first of its set, are [`Error::Gguf`].
    pub fn open(path: &Path) -> Result<Self> {
        let first = GgufFile::open(path)?;
        let count = number(&first, COUNT)?.unwrap_or(1);
        if count <= 1 {
            return Ok(Self { parts: vec![first] });
        }
        let refuse = |problem| Err(Error::gguf(path, GgufError::new(problem, Place::Set)));
        let Some(name) = PartName::of(path, part_name::GGUF).filter(|name| name.count == count) else {
            return refuse(Problem::SplitName { count });
        };
        if name.number != 1 {
            return refuse(Problem::SplitNotFirst { first: name.path(1).display().to_string() });
        }
        let mut parts = vec![first];
        for number in 2..=count {
            parts.push(GgufFile::open(&name.path(number))?);
        }
        check(&parts)?;
        Ok(Self { parts })
    }

    /// Takes a GGUF that is in memory. A part of a split model is refused: the others are not there.
    ///
    /// # Errors
    /// As [`GgufFile::from_bytes`].
    pub fn from_bytes(label: &Path, bytes: Vec<u8>) -> Result<Self> {
        let only = GgufFile::from_bytes(label, bytes)?;
        match number(&only, COUNT)? {
            Some(count) if count > 1 => {
                Err(Error::gguf(label, GgufError::new(Problem::SplitName { count }, Place::Set)))
            }
            _ => Ok(Self { parts: vec![only] }),
        }
    }

    /// The files, one unless the model is split.
    #[must_use]
    pub fn parts(&self) -> &[GgufFile] {
        &self.parts
    }

    /// The keys of the model: those of the first file.
    #[must_use]
    pub fn metadata(&self) -> Metadata<'_> {
        self.parts.first().map_or(Metadata::EMPTY, |part| part.gguf().metadata())
    }

    /// All tensors with their file, tables one after the other.
    pub fn tensors(&self) -> impl Iterator<Item = (&GgufFile, &GgufTensor<'_>)> {
        self.parts.iter().flat_map(|part| part.gguf().tensors().iter().map(move |tensor| (part, tensor)))
    }

    /// Bytes of all files.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.parts.iter().map(|part| part.gguf().file_len()).sum()
    }
}

/// A whole number among the keys; another type is refused.
fn number(part: &GgufFile, key: &str) -> Result<Option<u64>> {
    let found = part.gguf().metadata().u32(key).map_err(|error| {
        let index = match error.place {
            p64_core::error::Place::Key(index) => index,
            _ => 0,
        };
        Error::gguf(part.path(), GgufError::new(Problem::Metadata(error), Place::Key(index, Some(key.to_owned()))))
    })?;
    Ok(found.map(u64::from))
}

fn check(parts: &[GgufFile]) -> Result<()> {
    let count = parts.len() as u64;
    let mut names = HashSet::new();
    let mut tensors = 0u64;
    for (expected, part) in (0u64..).zip(parts) {
        let refuse = |problem, place| Err(Error::gguf(part.path(), GgufError::new(problem, place)));
        match number(part, COUNT)? {
            Some(found) if found == count => {}
            found => return refuse(Problem::SplitCount { expected: count, found: found.unwrap_or(1) }, Place::Set),
        }
        match number(part, NUMBER)? {
            Some(found) if found == expected => {}
            found => return refuse(Problem::SplitNumber { expected, found: found.unwrap_or(0) }, Place::Set),
        }
        for (index, tensor) in (0u32..).zip(part.gguf().tensors()) {
            if !names.insert(tensor.name) {
                return refuse(Problem::SplitDuplicate, Place::Tensor(index, Some(tensor.name.to_owned())));
            }
        }
        tensors = tensors.saturating_add(part.gguf().tensors().len() as u64);
    }
    for part in parts {
        if let Some(expected) = number(part, TENSORS)?.filter(|&expected| expected != tensors) {
            let problem = Problem::SplitTensors { expected, found: tensors };
            return Err(Error::gguf(part.path(), GgufError::new(problem, Place::Set)));
        }
    }
    Ok(())
}
