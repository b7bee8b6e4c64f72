//! Model files that a command looks into: which format, mapped, and checked.

use crate::failure::{Failure, Result};
use p64_core::tokenizer::{NO_TOKEN, Tokenizer as Section};
use p64_std::Error;
use p64_std::map::{MapOptions, MappedGguf, MappedSet, Mapping, SetWarning};
use p64_std::safetensors::SafetensorsSet;
use p64_std::sniff::{Kind, SNIFF_LEN};
use p64_std::tokenizer::{Q42tParts, Tokenizer, TokenizerError};
use std::path::Path;

/// A model of any format.
pub enum Input {
    /// A container or all files of a split set, and what the policy let pass.
    P64(MappedSet, Vec<SetWarning>),
    Gguf(MappedGguf),
    Safetensors(SafetensorsSet),
}

impl Input {
    /// Opens and checks the file, or the safetensors model of a folder; the first bytes tell the format. `options` are for
    /// a P64: the others have no checksums.
    pub fn open(path: &Path, options: &MapOptions) -> Result<Self> {
        if path.is_dir() {
            return Ok(Self::Safetensors(SafetensorsSet::open(path)?));
        }
        let mapping = Mapping::open(path)?;
        let kind = Kind::of(mapping.get(..SNIFF_LEN).unwrap_or(&mapping));
        drop(mapping);
        match kind {
            Kind::P64 => {
                let (set, warnings) = MappedSet::open(path, options)?;
                Ok(Self::P64(set, warnings))
            }
            Kind::Gguf => Ok(Self::Gguf(MappedGguf::open(path)?)),
            Kind::Safetensors | Kind::SafetensorsIndex => Ok(Self::Safetensors(SafetensorsSet::open(path)?)),
            kind => Err(Error::NotAModel { path: path.to_owned(), kind }.into()),
        }
    }

    /// Where the file was opened; of a sharded model, its first file.
    pub fn path(&self) -> &Path {
        match self {
            Self::P64(set, _) => set.path(),
            Self::Gguf(mapped) => mapped.path(),
            Self::Safetensors(set) => set.files().first().map_or(Path::new(""), |file| file.path()),
        }
    }

    /// The tokenizer, `None` where the file has none. The inner error is the tokenizer's own.
    pub fn read_tokenizer(&self) -> Result<std::result::Result<Option<Tokenizer>, TokenizerError>> {
        let set = match self {
            Self::Gguf(mapped) => return Ok(from_metadata(&mapped.gguf().metadata())),
            Self::P64(set, _) => set,
            // What tokenizes lies in other files beside it.
            Self::Safetensors(_) => return Ok(Ok(None)),
        };
        Ok(match (set.metadata()?, set.tokenizer()) {
            (Some(metadata), _) => from_metadata(&metadata),
            (None, Some(section)) => from_section(&section).map(Some),
            (None, None) => Ok(None),
        })
    }

    /// The tokenizer of a file that must have one.
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        let refuse = |reason| Failure::Input { path: self.path().to_owned(), reason };
        match self.read_tokenizer()? {
            Ok(Some(tokenizer)) => Ok(tokenizer),
            Ok(None) => Err(refuse("the file has no tokenizer".to_owned())),
            Err(error) => Err(refuse(format!("tokenizer: {error}"))),
        }
    }
}

fn from_metadata(
    metadata: &p64_core::metadata::Metadata<'_>,
) -> std::result::Result<Option<Tokenizer>, TokenizerError> {
    let present = metadata.get("tokenizer.ggml.model").is_some();
    present.then(|| Tokenizer::from_metadata(metadata)).transpose()
}

fn from_section(section: &Section<'_>) -> std::result::Result<Tokenizer, TokenizerError> {
    let tokens: Vec<&[u8]> = section.tokens().map(str::as_bytes).collect();
    Tokenizer::from_q42t(Q42tParts {
        pre: section.pre(),
        tokens: tokens.into_iter(),
        merges: section.merges().map(|(left, right)| (left.as_bytes(), right.as_bytes())),
        bos: section.bos().unwrap_or(NO_TOKEN),
        eos: section.eos().unwrap_or(NO_TOKEN),
        add_bos: section.add_bos(),
        stops: section.stops(),
    })
}
