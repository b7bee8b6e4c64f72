//! Where the vocabularies come from.

use std::path::{Path, PathBuf};

use p64_core::metadata::Metadata;
use p64_std::tokenizer::{Tokenizer, TokenizerError};
use p64_tests::data::workspace;

/// A GGUF that holds a vocabulary and no tensors.
pub struct Gguf {
    /// Where it lies.
    pub path: PathBuf,
    bytes: Vec<u8>,
}

/// A vocabulary of llama.cpp's tests.
pub struct Vocabulary {
    /// Its name: `ggml-vocab-NAME.gguf`.
    pub name: String,
    /// The file.
    pub gguf: Gguf,
    /// The texts and ids that come with it, where some do.
    pub pairs: Option<(Vec<u8>, String)>,
}

impl Gguf {
    /// Reads a file.
    pub fn read(path: &Path) -> Self {
        Self { path: path.to_owned(), bytes: std::fs::read(path).expect("readable") }
    }

    /// The keys.
    pub fn metadata(&self) -> Metadata<'_> {
        let count = u64::from_le_bytes(self.bytes[16..24].try_into().expect("eight bytes"));
        Metadata::parse_pairs(&self.bytes[24..], count, 24).expect("well-formed").0
    }

    /// The tokenizer model and pre-tokenizer, `-` where there is none.
    pub fn names(&self) -> (String, String) {
        let metadata = self.metadata();
        let name = |key| metadata.str(key).expect("text").unwrap_or("-").to_owned();
        (name("tokenizer.ggml.model"), name("tokenizer.ggml.pre"))
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> Result<Tokenizer, TokenizerError> {
        Tokenizer::from_metadata(&self.metadata())
    }
}

/// Every vocabulary, by name.
pub fn vocabularies() -> Vec<Vocabulary> {
    let folder = workspace("models/vocabularies");
    let entries = std::fs::read_dir(&folder);
    let entries = entries.unwrap_or_else(|_| panic!("{} is missing: run `make vocabularies` first", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "gguf"));
    paths.sort();
    let vocabulary = |path: &PathBuf| {
        let stem = path.file_stem().expect("a name").to_str().expect("UTF-8");
        let beside = |ending: &str| std::fs::read(path.with_extension(format!("gguf.{ending}"))).ok();
        let pairs = beside("inp").zip(beside("out").map(|bytes| String::from_utf8(bytes).expect("UTF-8")));
        let name = stem.strip_prefix("ggml-vocab-").unwrap_or(stem).to_owned();
        Vocabulary { name, gguf: Gguf::read(path), pairs }
    };
    let all: Vec<Vocabulary> = paths.iter().map(vocabulary).collect();
    assert!(!all.is_empty(), "{} holds no vocabulary: run `make vocabularies` first", folder.display());
    all
}
