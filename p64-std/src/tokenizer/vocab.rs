//! The vocabulary: what each token's text, type and score are, and which tokens are special.
//!
//! Defaults for absent keys are llama.cpp's ([`defaults`](super::defaults)). A default id that the vocabulary does not reach
//! counts as absent. An id that the file states and the vocabulary does not reach is an error, as is an array whose length
//! differs from the tokens'.

mod keys;
mod marks;

use super::pre::Pre;
use super::texts::Texts;

pub(super) use keys::{Draft, Keys, MERGES, collect_texts};
pub(super) use marks::Strips;
pub use p64_core::tokenizer::TokenType;

/// How text becomes tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Model {
    /// Byte-pair encoding after a pre-tokenizer.
    Bpe(Pre, Kind),
    /// SentencePiece-style merging by score.
    Spm,
    /// The longest token first, word by word.
    WordPiece,
    /// The highest sum of scores.
    Unigram,
    /// The longest token first, over bytes.
    Rwkv,
    /// The highest sum of scores, computed from the end.
    Plamo,
}

/// What comes before byte-pair encoding, in two models of few files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Nothing.
    Plain,
    /// White space is dropped, and the text between becomes lower case where the file says so.
    Whitespace,
    /// Between `<dna>` and `</dna>` six bases are a token.
    HybridDna,
}

/// The names of the models that this build has, for messages.
pub(super) const MODELS: &str = "gpt2, gemma4, hybriddna, whitespace (byte-pair encoding), llama (SPM), bert (WordPiece), \
                                 t5 (unigram), rwkv, plamo2";

/// How WordPiece changes text before it looks for tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Normalizer {
    pub(super) lowercase: bool,
    pub(super) strip_accents: bool,
}

/// Tokens, their types and the special ones among them.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    pub(super) model: Model,
    pub(super) texts: Texts,
    types: Vec<TokenType>,
    /// One per token for the models that choose by score, else empty.
    scores: Vec<f32>,
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    eot: Option<u32>,
    unknown: Option<u32>,
    pub(super) separator: Option<u32>,
    padding: Option<u32>,
    pub(super) add_bos: bool,
    pub(super) add_eos: bool,
    pub(super) add_space_prefix: bool,
    pub(super) cleans_spaces: bool,
    pub(super) normalizer: Normalizer,
    /// Tokens that take the white space beside them with them.
    pub(super) strips: Strips,
    /// Ascending.
    ends: Vec<u32>,
    chat_template: Option<String>,
}

impl Vocabulary {
    /// Number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is no token; never so for a vocabulary that was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of a token as the model's file writes it (BPE: in the byte alphabet; SPM: `▁` for a space).
    #[must_use]
    pub fn text(&self, id: u32) -> Option<&[u8]> {
        self.texts.get(id)
    }

    /// The lowest id with this text, as the file writes it.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Option<u32> {
        self.texts.find(text)
    }

    /// The type of a token; `None` past the vocabulary.
    #[must_use]
    pub fn token_type(&self, id: u32) -> Option<TokenType> {
        self.types.get(usize::try_from(id).ok()?).copied()
    }

    /// The types of all tokens, by id.
    pub(super) fn types(&self) -> &[TokenType] {
        &self.types
    }

    pub(super) fn score(&self, id: u32) -> f32 {
        usize::try_from(id).ok().and_then(|id| self.scores.get(id)).copied().unwrap_or(0.0)
    }

    /// The token that begins a sequence.
    #[must_use]
    pub const fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The token that ends a sequence.
    #[must_use]
    pub const fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// The token that ends a turn, where the file names one.
    #[must_use]
    pub const fn eot(&self) -> Option<u32> {
        self.eot
    }

    /// The token for what cannot be spelled.
    #[must_use]
    pub const fn unknown(&self) -> Option<u32> {
        self.unknown
    }

    /// The token between the texts of a pair and after a single one (BERT's `[SEP]`).
    #[must_use]
    pub const fn separator(&self) -> Option<u32> {
        self.separator
    }

    /// The token that fills batches.
    #[must_use]
    pub const fn padding(&self) -> Option<u32> {
        self.padding
    }

    /// Whether the model wants BOS before a text.
    #[must_use]
    pub const fn add_bos(&self) -> bool {
        self.add_bos
    }

    /// Whether the model wants EOS after a text.
    #[must_use]
    pub const fn add_eos(&self) -> bool {
        self.add_eos
    }

    /// Whether generation ends at this token: EOS, EOT, EOM, and the tokens whose text is one of the well-known ends.
    #[must_use]
    pub fn is_end_of_generation(&self, id: u32) -> bool {
        self.ends.binary_search(&id).is_ok()
    }

    /// The tokens that end generation, ascending.
    #[must_use]
    pub fn end_of_generation(&self) -> &[u32] {
        &self.ends
    }

    /// The model's chat template (Jinja), where it has one.
    #[must_use]
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }

    /// Whether a token of a `hybriddna` vocabulary is one of the groups of bases, which follow `<oov>`.
    pub(super) fn is_kmer(&self, id: u32) -> bool {
        self.find(b"<oov>").is_some_and(|unknown| id > unknown)
    }

    /// The byte that a token of type [`TokenType::Byte`] stands for.
    pub(super) fn byte(&self, id: u32) -> Option<u8> {
        (self.token_type(id) == Some(TokenType::Byte)).then(|| parse_byte(self.text(id)?)).flatten()
    }
}

/// Reads `<0xNN>`.
fn parse_byte(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let ok = digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
    ok.then(|| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()).flatten()
}

#[cfg(test)]
mod tests;
