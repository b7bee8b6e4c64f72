//! Tokenizers: text to token ids and back, as the model's own file describes it.
//!
//! ```text
//! bytes -> special tokens cut out -> [BPE]       pre-tokenizer -> words -> merges by rank             -> ids
//!                                    [SPM]       spaces as U+2581       -> merges by score            -> ids
//!                                    [WordPiece] normalised -> words    -> the longest token first    -> ids
//!                                    [unigram]   normalised             -> the best sum of scores     -> ids
//! ```
//!
//! The models have GGUF's names: `gpt2` and its kin, `llama`, `bert`, `t5`, `rwkv`, `plamo2`; `docs/tokenizers.md` lists
//! them and the pre-tokenizers. The ids equal llama.cpp's (`tests/tests/vocabularies.rs`, `tests/tests/tokenizer_golden.rs`).
//! Input is bytes, because a prompt may be cut inside a character; encoding has no failure.
#![forbid(unsafe_code)]

mod bpe;
mod charsmap;
mod decode;
mod defaults;
mod dna;
mod error;
mod hash;
mod pairs;
mod plamo;
mod pre;
mod rwkv;
mod seen;
mod special;
mod spm;
mod texts;
mod trie;
mod unicode;
mod unigram;
mod vocab;
mod wordpiece;

use p64_core::metadata::Metadata;
use p64_core::tokenizer::alphabet;

pub use decode::Utf8Stream;
pub use error::TokenizerError;
pub use vocab::{TokenType, Vocabulary};

pub(crate) use defaults::Defaults;
pub(crate) use pre::Pre;

use bpe::Bpe;
use plamo::Plamo;
use rwkv::Rwkv;
use special::{Fragment, Specials};
use spm::Spm;
use unigram::Unigram;
use vocab::{Draft, Keys, Kind, Model};
use wordpiece::WordPiece;

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
    WordPiece(WordPiece),
    Unigram(Unigram),
    Rwkv(Rwkv),
    Plamo(Plamo),
}

/// Bytes of a character by its first byte, well-formed or not.
const fn unicode_len(first: u8) -> usize {
    match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xff => 4,
        _ => 1,
    }
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
            Model::WordPiece => Merging::WordPiece(WordPiece::new(&vocabulary)?),
            Model::Unigram => {
                let (map, merge_spaces) = keys.normalization()?;
                Merging::Unigram(Unigram::new(&vocabulary, map, merge_spaces)?)
            }
            Model::Rwkv => Merging::Rwkv(Rwkv::new(&vocabulary)),
            Model::Plamo => Merging::Plamo(Plamo::new(&vocabulary)?),
            Model::Bpe(pre, _) => {
                const WHY: &str = "byte-pair encoding merges by it";
                let merges = keys.strings(vocab::MERGES)?;
                // Kimi-K2 takes no merges; its vocabulary is one of whole words and bytes.
                let optional = pre == Pre::from_name("kimi-k2")?;
                let merges = match merges {
                    None if !optional => return Err(TokenizerError::Missing { key: vocab::MERGES, why: WHY }),
                    merges => merges,
                };
                let count = merges.map_or(0, |merges| usize::try_from(merges.len()).unwrap_or(0));
                let merges = merges.iter().flat_map(|merges| merges.strings()).map(bpe::halves);
                Merging::Bpe(Bpe::new(pre, &vocabulary, (count, merges))?)
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
        let vocabulary = Draft::from_q42t(pre, texts, parts.bos, parts.eos, parts.add_bos, parts.stops)?
            .finish(&Default::default())?;
        let merging = Merging::Bpe(Bpe::new(pre, &vocabulary, (0, merges.map(Some)))?);
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
    /// Ill-formed UTF-8: BPE, unigram and PLaMo-2 read every bad byte as U+FFFD, WordPiece leaves it out, SPM and RWKV have
    /// tokens for bytes.
    #[must_use]
    pub fn encode(&self, text: &[u8], add_special: bool, parse_special: bool) -> Vec<u32> {
        let vocabulary = &self.vocabulary;
        let mut ids = Vec::with_capacity(text.len() / 4 + 2);
        // WordPiece frames a text by BOS and the separator whatever the flags say, RWKV and PLaMo-2 by nothing.
        let (framed, bare) = match vocabulary.model {
            Model::WordPiece => (add_special, true),
            Model::Rwkv | Model::Plamo => (false, true),
            _ => (false, false),
        };
        ids.extend(vocabulary.bos.filter(|_| framed || (add_special && vocabulary.add_bos && !bare)));
        let fragments = self.specials.partition(text, parse_special);
        match &self.merging {
            Merging::Bpe(bpe) => {
                let mut scratch = bpe::Scratch::default();
                for fragment in fragments {
                    match fragment {
                        Fragment::Token(id) => ids.push(id),
                        Fragment::Text(text) => match vocabulary.model {
                            Model::Bpe(_, Kind::HybridDna) => {
                                dna::encode(bpe, text, vocabulary, &mut scratch, &mut ids)
                            }
                            Model::Bpe(_, Kind::Whitespace) => {
                                bpe.encode_without_spaces(text, vocabulary, &mut scratch, &mut ids);
                            }
                            _ => bpe.encode(text, &vocabulary.texts, &mut scratch, &mut ids),
                        },
                    }
                }
            }
            Merging::WordPiece(wordpiece) => each(fragments, &mut ids, |text, ids| wordpiece.encode(text, ids)),
            Merging::Unigram(unigram) => {
                let mut scratch = unigram::Scratch::default();
                each(fragments, &mut ids, |text, ids| unigram.encode(text, vocabulary, &mut scratch, ids));
            }
            Merging::Rwkv(rwkv) => each(fragments, &mut ids, |text, ids| rwkv.encode(text, ids)),
            Merging::Plamo(plamo) => each(fragments, &mut ids, |text, ids| plamo.encode(text, vocabulary, ids)),
            Merging::Spm(spm) => {
                let mut scratch = spm::Scratch::of(text.len());
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
        ids.extend(vocabulary.separator.filter(|_| framed));
        ids.extend(vocabulary.eos.filter(|_| add_special && vocabulary.add_eos && !bare));
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

    /// The text of a whole sequence as llama.cpp's detokeniser has it, cleaned up where the model asks for it; see
    /// [`Vocabulary::append_cleaned`].
    #[must_use]
    pub fn detokenize(&self, ids: &[u32], render_special: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.vocabulary.append_cleaned(ids, render_special, &mut bytes);
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

/// Appends each fragment's tokens.
fn each(fragments: Vec<Fragment<'_>>, ids: &mut Vec<u32>, mut encode: impl FnMut(&[u8], &mut Vec<u32>)) {
    for fragment in fragments {
        match fragment {
            Fragment::Token(id) => ids.push(id),
            Fragment::Text(text) => encode(text, ids),
        }
    }
}

#[cfg(test)]
mod tests;
