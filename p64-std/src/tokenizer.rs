//! Tokenizers: text to token ids and back, as the model's own file describes it.
//!
//! ```text
//! bytes -> special tokens cut out -> [BPE] pre-tokenizer -> words -> merges by rank  -> ids
//!                                    [SPM] spaces as U+2581       -> merges by score -> ids
//! ```
//!
//! Two models are known, under GGUF's names: `gpt2` (byte-level BPE) and `llama` (SentencePiece-style with scores and
//! byte fallback). The ids equal llama.cpp's (`tests/tests/tokenizer_golden.rs`). Input is bytes, because a prompt may
//! be cut inside a character; encoding has no failure.
#![forbid(unsafe_code)]

mod bpe;
mod decode;
mod error;
mod pairs;
mod pre;
mod special;
mod spm;
mod texts;
mod vocab;

use p64_core::metadata::Metadata;
use p64_core::tokenizer::alphabet;

pub use decode::Utf8Stream;
pub use error::TokenizerError;
pub use vocab::{TokenType, Vocabulary};

use bpe::Bpe;
use pre::Pre;
use special::{Fragment, Specials};
use spm::Spm;
use vocab::{Draft, Keys, Model};

/// A model's tokenizer.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    specials: Specials,
    merging: Merging,
}

#[derive(Clone, Debug)]
enum Merging {
    Bpe(Bpe),
    Spm(Spm),
}

/// The parts of a Q42T section (spec §10), for a container without `p64.metadata`.
///
/// `T` yields the vocabulary in the order of its ids, `M` the merges as (left, right) in the order of their ranks.
#[derive(Clone, Debug)]
pub struct Q42tParts<'a, T, M> {
    /// The pre-tokenizer's name.
    pub pre: &'a str,
    /// The vocabulary.
    pub tokens: T,
    /// The merges.
    pub merges: M,
    /// Id of the token that begins a sequence, or [`NO_TOKEN`](p64_core::tokenizer::NO_TOKEN).
    pub bos: u32,
    /// Id of the token that ends a sequence, or the same.
    pub eos: u32,
    /// Whether BOS is put before a text.
    pub add_bos: bool,
    /// Further ids that end generation (version 2).
    pub stops: &'a [u32],
}

impl Tokenizer {
    /// The tokenizer that a GGUF's (or a `p64.metadata`'s) keys describe.
    ///
    /// # Errors
    /// A [`TokenizerError`] that names the key at fault. A tokenizer model or pre-tokenizer that this build does not have
    /// is an error too: another one's ids would be wrong.
    pub fn from_metadata(metadata: &Metadata<'_>) -> Result<Self, TokenizerError> {
        let keys = Keys::read(metadata);
        let vocabulary = keys.vocabulary()?;
        let merging = match vocabulary.model {
            Model::Spm => Merging::Spm(Spm::new(&vocabulary)?),
            Model::Bpe(pre) => {
                const WHY: &str = "byte-level BPE merges by it";
                let merges = keys.strings(vocab::MERGES)?;
                let merges = merges.ok_or(TokenizerError::Missing { key: vocab::MERGES, why: WHY })?;
                Merging::Bpe(Bpe::new(pre, &vocabulary, merges.strings().map(bpe::halves))?)
            }
        };
        Self::assemble(vocabulary, merging)
    }

    /// The byte-level BPE tokenizer of a Q42T section. The section has no token types: BOS, EOS and the well-known ends
    /// of turns count as control tokens.
    ///
    /// # Errors
    /// A [`TokenizerError`]. A section without merges is one of an SPM model, whose scores the section has no place for:
    /// that takes `p64.metadata`.
    pub fn from_q42t<'a, T, M>(parts: Q42tParts<'a, T, M>) -> Result<Self, TokenizerError>
    where
        T: ExactSizeIterator<Item = &'a [u8]>,
        M: Iterator<Item = (&'a [u8], &'a [u8])>,
    {
        let mut merges = parts.merges.peekable();
        if merges.peek().is_none() {
            const WHY: &str =
                "the Q42T section has no merges, so the model is SPM, whose scores only p64.metadata holds";
            return Err(TokenizerError::Missing { key: "p64.metadata", why: WHY });
        }
        let texts = vocab::collect_texts("Q42T vocabulary", parts.tokens.len() as u64, parts.tokens)?;
        let pre = Pre::from_name(parts.pre)?;
        let vocabulary = Draft::from_q42t(pre, texts, parts.bos, parts.eos, parts.add_bos, parts.stops)?.finish()?;
        let merging = Merging::Bpe(Bpe::new(pre, &vocabulary, merges.map(Some))?);
        Self::assemble(vocabulary, merging)
    }

    fn assemble(vocabulary: Vocabulary, merging: Merging) -> Result<Self, TokenizerError> {
        Ok(Self { specials: Specials::new(&vocabulary)?, vocabulary, merging })
    }

    /// The token ids of `text`.
    ///
    /// `add_special` puts BOS before and EOS after where the model wants them. `parse_special` reads the texts of control
    /// tokens (`<|im_start|>`) as those tokens; without it they are spelled out, which is what text from outside needs.
    /// User-defined tokens are matched either way.
    ///
    /// Ill-formed UTF-8: BPE reads every bad byte as U+FFFD, SPM has tokens for bytes.
    #[must_use]
    pub fn encode(&self, text: &[u8], add_special: bool, parse_special: bool) -> Vec<u32> {
        let vocabulary = &self.vocabulary;
        let mut ids = Vec::with_capacity(text.len() / 4 + 2);
        ids.extend(vocabulary.bos.filter(|_| add_special && vocabulary.add_bos));
        let fragments = self.specials.partition(text, parse_special);
        match &self.merging {
            Merging::Bpe(bpe) => {
                let mut scratch = bpe::Scratch::default();
                for fragment in fragments {
                    match fragment {
                        Fragment::Token(id) => ids.push(id),
                        Fragment::Text(text) => {
                            bpe.encode(&bpe::lossy(text), &vocabulary.texts, &mut scratch, &mut ids)
                        }
                    }
                }
            }
            Merging::Spm(spm) => {
                let mut scratch = spm::Scratch::default();
                let mut after_special = true;
                for fragment in fragments {
                    match fragment {
                        Fragment::Token(id) => ids.push(id),
                        Fragment::Text(text) => {
                            let prefix = vocabulary.add_space_prefix && after_special;
                            spm.encode(text, prefix, vocabulary, &mut scratch, &mut ids);
                        }
                    }
                    after_special = matches!(fragment, Fragment::Token(_));
                }
            }
        }
        ids.extend(vocabulary.eos.filter(|_| add_special && vocabulary.add_eos));
        ids
    }

    /// The bytes of a whole sequence, without control tokens. A space that the model puts before a text is taken off.
    #[must_use]
    pub fn decode(&self, ids: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.vocabulary.append_sequence(ids, false, &mut bytes);
        bytes
    }

    /// The bytes of a whole sequence, control tokens written as their text.
    #[must_use]
    pub fn decode_special(&self, ids: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.vocabulary.append_sequence(ids, true, &mut bytes);
        bytes
    }

    /// The bytes of one token, its leading space included: what generation adds to the text. Control tokens are empty
    /// unless `render_special`. A token may end inside a character; [`Utf8Stream`] joins them.
    #[must_use]
    pub fn token_bytes(&self, id: u32, render_special: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.vocabulary.append_bytes(id, render_special, &mut bytes);
        bytes
    }

    /// The text of a token as the model's file writes it.
    #[must_use]
    pub fn token_text(&self, id: u32) -> Option<&[u8]> {
        self.vocabulary.text(id)
    }

    /// Number of tokens.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.vocabulary.len()
    }

    /// The vocabulary: texts, types, special tokens.
    #[must_use]
    pub const fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The token that begins a sequence.
    #[must_use]
    pub const fn bos(&self) -> Option<u32> {
        self.vocabulary.bos()
    }

    /// The token that ends a sequence.
    #[must_use]
    pub const fn eos(&self) -> Option<u32> {
        self.vocabulary.eos()
    }

    /// Whether generation ends at this token.
    #[must_use]
    pub fn is_end_of_generation(&self, id: u32) -> bool {
        self.vocabulary.is_end_of_generation(id)
    }

    /// The model's chat template (Jinja), where it has one.
    #[must_use]
    pub fn chat_template(&self) -> Option<&str> {
        self.vocabulary.chat_template()
    }
}

#[cfg(test)]
mod tests;
