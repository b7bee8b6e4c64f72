//! Where the vocabularies come from.

use std::path::{Path, PathBuf};

use p64_core::metadata::Metadata;
use p64_core::validate::Integrity;
use p64_std::convert::{ConvertOptions, convert_gguf};
use p64_std::map::{MapOptions, MappedContainer};
use p64_std::tokenizer::{Tokenizer, TokenizerError};
use p64_tests::data::workspace;

/// A GGUF that holds a vocabulary and no tensors.
pub struct Gguf {
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
        Self { bytes: std::fs::read(path).expect("readable") }
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

    /// Sets a key to a text.
    pub fn set_str(&mut self, key: &str, text: &str) {
        let mut value = 8_u32.to_le_bytes().to_vec();
        value.extend((text.len() as u64).to_le_bytes());
        value.extend(text.as_bytes());
        self.set(key, &value);
    }

    /// Sets a key to a flag.
    pub fn set_bool(&mut self, key: &str, value: bool) {
        self.set(key, &[7, 0, 0, 0, value.into()]);
    }

    /// Puts a key first. One of that name is given another.
    fn set(&mut self, key: &str, value: &[u8]) {
        let mut name = (key.len() as u64).to_le_bytes().to_vec();
        name.extend(key.as_bytes());
        let mut count = u64::from_le_bytes(self.bytes[16..24].try_into().expect("eight bytes"));
        if let Some(at) = self.bytes.windows(name.len()).position(|window| window == name) {
            // Set here before: it is first.
            if at == 24 {
                let end = 24 + name.len() + value_len(&self.bytes[24 + name.len()..]);
                self.bytes.drain(24..end);
                count -= 1;
            } else {
                self.bytes[at + name.len() - 1] = b'~';
            }
        }
        self.bytes[16..24].copy_from_slice(&(count + 1).to_le_bytes());
        self.bytes.splice(24..24, [&name, value].concat());
    }

    /// The tokenizer of the container that this file becomes.
    pub fn tokenizer_of_container(&self) -> Result<Tokenizer, TokenizerError> {
        let folder = tempfile::tempdir().expect("a folder");
        let [gguf, container] = ["in.gguf", "out.p64"].map(|name| folder.path().join(name));
        std::fs::write(&gguf, &self.bytes).expect("written");
        convert_gguf(&gguf, &container, &ConvertOptions::default(), &mut |_| ()).expect("converted");
        let options = MapOptions { integrity: Integrity::Lazy, ..MapOptions::default() };
        let (mapped, _) = MappedContainer::open(&container, &options).expect("valid");
        let metadata = mapped.container().metadata().expect("well-formed").expect("kept");
        Tokenizer::from_metadata(&metadata)
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> Result<Tokenizer, TokenizerError> {
        Tokenizer::from_metadata(&self.metadata())
    }
}

/// Bytes of a text or a flag with its type.
fn value_len(bytes: &[u8]) -> usize {
    if bytes[0] == 7 { 5 } else { 12 + usize::from(bytes[4]) }
}

/// One of llama.cpp's vocabularies.
pub fn vocabulary(name: &str) -> Gguf {
    let path = workspace(&format!("models/vocabularies/ggml-vocab-{name}.gguf"));
    assert!(path.is_file(), "{} is missing: run `make vocabularies` first", path.display());
    Gguf::read(&path)
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
