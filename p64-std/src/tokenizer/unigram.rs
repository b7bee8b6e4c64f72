//! Unigram (T5, XLM-RoBERTa): of all ways to write a text in tokens the one with the highest sum of scores.

use super::charsmap::CharsMap;
use super::error::TokenizerError;
use super::spm::SPACE;
use super::trie::Trie;
use super::unicode_len;
use super::vocab::{TokenType, Vocabulary};

/// The tokens that may be used, and how text is normalised before.
#[derive(Clone, Debug)]
pub(super) struct Unigram {
    tokens: Trie,
    user_defined: Trie,
    map: CharsMap,
    unknown: u32,
    unknown_score: f64,
    /// A space goes before the text.
    prefix: bool,
    /// Runs of spaces become one, and those at either end none.
    merge_spaces: bool,
}

/// The best way to write the text up to here: its last token, where that begins, and the sum of scores.
#[derive(Clone, Copy, Debug)]
struct Best {
    id: u32,
    from: usize,
    score: f64,
}

/// Memory that one encoding reuses from fragment to fragment.
#[derive(Default, Debug)]
pub(super) struct Scratch {
    text: Vec<u8>,
    best: Vec<Best>,
}

impl Unigram {
    /// # Errors
    /// The vocabulary names no unknown token, so that a text could come up that has no tokens.
    pub(super) fn new(vocabulary: &Vocabulary, map: CharsMap, merge_spaces: bool) -> Result<Self, TokenizerError> {
        const WHY: &str = "the unigram model writes it for what it cannot spell";
        let missing = TokenizerError::Missing { key: "tokenizer.ggml.unknown_token_id", why: WHY };
        let of = |types: &'static [TokenType]| {
            let passes = |(id, _): &(u32, &[u8])| vocabulary.token_type(*id).is_some_and(|t| types.contains(&t));
            vocabulary.texts.iter().filter(passes)
        };
        let scores = of(&[TokenType::Normal]).map(|(id, _)| vocabulary.score(id));
        // 10 below the lowest, in the precision that llama.cpp has it in.
        let unknown_score = scores.fold(f32::MAX, f32::min) - 10.0;
        Ok(Self {
            tokens: Trie::new(of(&[TokenType::Normal, TokenType::UserDefined, TokenType::Unused])),
            user_defined: Trie::new(of(&[TokenType::UserDefined])),
            map,
            unknown: vocabulary.unknown().ok_or(missing)?,
            unknown_score: unknown_score.into(),
            prefix: vocabulary.add_space_prefix,
            merge_spaces,
        })
    }

    /// Appends the tokens of a fragment.
    pub(super) fn encode(&self, fragment: &[u8], vocabulary: &Vocabulary, scratch: &mut Scratch, out: &mut Vec<u32>) {
        let Scratch { text, best } = scratch;
        self.normalize(fragment, text);
        if text.is_empty() {
            return;
        }
        best.clear();
        best.resize(text.len() + 1, Best { id: self.unknown, from: 0, score: f64::MIN });
        if let Some(first) = best.first_mut() {
            first.score = 0.0;
        }
        let mut at = 0;
        while let Some(&first) = text.get(at) {
            let rest = text.get(at..).unwrap_or_default();
            let character = unicode_len(first).min(rest.len());
            let before = best.get(at).map_or(f64::MIN, |best| best.score);
            let mut offer = |len: usize, id: u32, score: f64| {
                if let Some(champion) = best.get_mut(at + len).filter(|champion| before + score > champion.score) {
                    *champion = Best { id, from: at, score: before + score };
                }
            };
            let mut spelled = false;
            self.tokens.prefixes(rest, |len, id| {
                spelled |= len == character;
                // A user-defined token is to be preferred: its score is the best there can be.
                let user_defined = vocabulary.token_type(id) == Some(TokenType::UserDefined);
                offer(len, id, if user_defined { 0.0 } else { vocabulary.score(id).into() });
            });
            if !spelled {
                offer(character, self.unknown, self.unknown_score);
            }
            at += character;
        }
        self.collect(best, out);
    }

    /// Appends the tokens that lead to the end; neighbouring unknown ones become one.
    fn collect(&self, best: &[Best], out: &mut Vec<u32>) {
        let begin = out.len();
        let mut at = best.len() - 1;
        let mut after_unknown = false;
        while let Some(step) = best.get(at) {
            let unknown = step.id == self.unknown;
            if !(unknown && after_unknown) {
                out.push(step.id);
            }
            // Every step leads further to the front.
            if step.from == 0 || step.from >= at {
                break;
            }
            (at, after_unknown) = (step.from, unknown);
        }
        if let Some(new) = out.get_mut(begin..) {
            new.reverse();
        }
    }

    /// Writes `input` as the model was trained on it: mapped by the precompiled map, with U+2581 for spaces.
    fn normalize(&self, input: &[u8], out: &mut Vec<u8>) {
        out.clear();
        let (mut prefixed, mut in_word) = (false, false);
        let mut rest = input;
        while !rest.is_empty() {
            let (piece, consumed) = self.normalize_front(rest);
            for &byte in piece {
                if byte != b' ' {
                    if !in_word {
                        in_word = true;
                        if (self.prefix && !prefixed) || self.merge_spaces {
                            out.extend_from_slice(SPACE);
                            prefixed = true;
                        }
                    }
                    out.push(byte);
                } else {
                    in_word = false;
                    if !self.merge_spaces {
                        out.extend_from_slice(SPACE);
                    }
                }
            }
            rest = rest.get(consumed..).unwrap_or_default();
        }
    }

    /// What the front of a text that is not empty becomes, and how many bytes of it.
    fn normalize_front<'t>(&'t self, text: &'t [u8]) -> (&'t [u8], usize) {
        // The beginning of a user-defined token is left alone, even where the token does not follow: so llama.cpp does it.
        let known = self.user_defined.prefixes(text, |_, _| ());
        if known > 0 {
            return (text.get(..known).unwrap_or_default(), known);
        }
        if let Some((len, replacement)) = self.map.longest(text) {
            return (replacement, len);
        }
        // A look at the first character alone: the whole text may be long.
        let len = text.first().map_or(1, |&first| unicode_len(first)).min(text.len());
        match text.get(..len).filter(|bytes| str::from_utf8(bytes).is_ok()) {
            Some(character) => (character, len),
            None => ("\u{fffd}".as_bytes(), 1),
        }
    }
}
