//! What can be wrong with a model's tokenizer.

use p64_core::metadata::ValueKind;

/// Why a tokenizer could not be made. Every variant names the metadata key at fault.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A key that cannot be done without is not there.
    #[error("{key} is missing: {why}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What it is needed for.
        why: &'static str,
    },
    /// A key holds another type of value.
    #[error("{key} is of type {found}, it must be {expected}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// The type or types that pass.
        expected: &'static str,
        /// The type that is there.
        found: &'static str,
    },
    /// An array of one element per token has another length.
    #[error("{key} has {found} elements, tokenizer.ggml.tokens has {expected}")]
    Length {
        /// The key.
        key: &'static str,
        /// Number of tokens.
        expected: usize,
        /// Number of elements.
        found: u64,
    },
    /// A special token's id is outside the vocabulary.
    #[error("{key} is {id}, the vocabulary has {vocab} tokens")]
    IdRange {
        /// The key.
        key: &'static str,
        /// The id.
        id: u64,
        /// Number of tokens.
        vocab: usize,
    },
    /// A count or length passes a limit of this reader.
    #[error("{key}: {what} is {found}, the limit is {limit}")]
    Limit {
        /// The key.
        key: &'static str,
        /// What is counted.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The count.
        found: u64,
    },
    /// An element of an array has no meaning.
    #[error("{key}, element {index}: {what}")]
    Element {
        /// The key.
        key: &'static str,
        /// Index of the element.
        index: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The tokenizer's kind is not one this build has.
    #[error("tokenizer.ggml.model is {found:?}, this build has {}", super::vocab::MODELS)]
    UnknownModel {
        /// The kind.
        found: String,
    },
    /// The pre-tokenizer is not one this build has.
    #[error("tokenizer.ggml.pre is {found:?}, this build has {known}")]
    UnknownPre {
        /// The name.
        found: String,
        /// The names that pass.
        known: String,
    },
    /// A token is to be added that the model does not name.
    #[error("{flag} is true, but {id} is not set")]
    NoToken {
        /// The key that asks for the token.
        flag: &'static str,
        /// The key that should name it.
        id: &'static str,
    },
}

impl TokenizerError {
    /// As much of a name from a file as a message shows: a file may hold a megabyte for it.
    pub(super) fn shown(name: &str) -> String {
        name.chars().take(40).collect()
    }

    pub(super) const fn wrong_type(key: &'static str, expected: &'static str, found: ValueKind) -> Self {
        Self::WrongType { key, expected, found: found.name() }
    }
}
