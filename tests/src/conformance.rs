//! The conformance models: random weights from a recipe, with llama.cpp's logits for them.
//!
//! `tests/data/conformance` holds, for each model, a recipe (`NAME.json`: keys, tensors, the rule by which each is filled)
//! and the reference logits (`NAME.f32`). [`Recipe::file`] makes the GGUF of it, byte for byte what the script makes with
//! gguf-py (`scripts/conformance`): the recipe has that file's SHA-256.

mod file;
mod fill;

use crate::data::data;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A family of models, in the order of the README's table.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct FamilyRow {
    /// Its name in the table.
    pub family: String,
    /// What belongs to it.
    pub text: String,
    /// Names in `general.architecture`.
    pub arch: Vec<String>,
    /// Its conformance models.
    pub models: Vec<String>,
}

/// A tensor of a recipe: name, element type, lengths as GGUF orders them, rule, scale.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct TensorRow(pub String, pub String, pub Vec<usize>, pub String, pub i32);

/// A key of a recipe: name, kind, value.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct KeyRow(pub String, pub String, pub serde_json::Value);

/// A conformance model.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Recipe {
    /// Its name, and that of its files.
    pub name: String,
    /// The family's row.
    pub family: String,
    /// Name in `general.architecture`.
    pub arch: String,
    /// What sets it apart from the family's other models.
    pub variant: String,
    /// Tokens of the vocabulary.
    pub vocabulary: usize,
    /// Positions a session has room for; some scalings of the rotary embedding depend on it.
    pub context: usize,
    /// The tokens that were read.
    pub prompt: Vec<u32>,
    /// After how many tokens the golden has logits.
    pub at: Vec<usize>,
    /// Keys in the file's order, without those of the vocabulary.
    pub keys: Vec<KeyRow>,
    /// Tensors in the file's order.
    pub tensors: Vec<TensorRow>,
    /// SHA-256 of the GGUF.
    pub sha256: String,
    /// Root mean square of how far llama.cpp's own logits of this file are from the golden, which is llama.cpp's result with
    /// all weights in f32.
    pub own_rms: f64,
    /// The same with a rounded KV cache, by the name of its type; of few models.
    #[serde(default)]
    pub caches: BTreeMap<String, f64>,
}

/// Every family.
///
/// # Panics
/// When the list cannot be read.
#[must_use]
pub fn families() -> Vec<FamilyRow> {
    read(&data("conformance/families.json"))
}

fn read<T: for<'a> Deserialize<'a>>(path: &PathBuf) -> T {
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Recipe {
    /// Reads a model's recipe.
    ///
    /// # Panics
    /// When there is none of that name.
    #[must_use]
    pub fn load(name: &str) -> Self {
        read(&data(&format!("conformance/{name}.json")))
    }

    /// The reference logits: one row for each of [`Recipe::at`].
    ///
    /// # Panics
    /// When the file is missing or of another length.
    #[must_use]
    pub fn golden(&self) -> Vec<f32> {
        let bytes = std::fs::read(data(&format!("conformance/{}.f32", self.name))).expect("a golden for each recipe");
        let (values, rest) = bytes.as_chunks();
        assert!(rest.is_empty() && values.len() == self.at.len() * self.vocabulary, "{}: length", self.name);
        values.iter().map(|value| f32::from_le_bytes(*value)).collect()
    }

    /// The largest absolute value of the reference logits.
    ///
    /// # Panics
    /// As [`Recipe::golden`].
    #[must_use]
    pub fn max_logit(&self) -> f64 {
        self.golden().into_iter().map(|logit| f64::from(logit.abs())).fold(0.0, f64::max)
    }

    /// The element types of its matrices, the most frequent first.
    #[must_use]
    pub fn types(&self) -> Vec<&str> {
        let matrices = || self.tensors.iter().filter(|tensor| tensor.2.len() > 1).map(|tensor| tensor.1.as_str());
        let mut types: Vec<&str> = matrices().collect::<BTreeSet<_>>().into_iter().collect();
        // F32 is what routers and per-head norms are kept in next to another type.
        types.sort_by_key(|one| (*one == "F32", usize::MAX - matrices().filter(|other| other == one).count()));
        if types.len() > 1 {
            types.retain(|one| *one != "F32");
        }
        types
    }

    /// The GGUF's bytes.
    ///
    /// # Panics
    /// When the recipe names a type or a rule that is not known, or when the bytes have not the recorded digest.
    #[must_use]
    pub fn file(&self) -> Vec<u8> {
        let bytes = file::build(self);
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, self.sha256, "{}: not the bytes that gguf-py wrote", self.name);
        bytes
    }
}
