//! WordPiece (BERT): text is normalised and split into words, and each word is taken apart from its front, the longest token
//! first. In GGUF a token that begins a word begins with U+2581; the others have lost their `##`.

use super::bpe::lossy;
use super::error::TokenizerError;
use super::spm::SPACE;
use super::trie::Trie;
use super::unicode::{CONTROL, MARK, PUNCTUATION, base, is_ideograph, lower};
use super::vocab::{Normalizer, Vocabulary};

/// The longest tokens of a vocabulary, and the token for words that have none.
#[derive(Clone, Debug)]
pub(super) struct WordPiece {
    trie: Trie,
    unknown: u32,
    normalizer: Normalizer,
}

impl WordPiece {
    /// # Errors
    /// The vocabulary names no unknown token, so that a text could come up that has no tokens.
    pub(super) fn new(vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        const WHY: &str = "WordPiece writes it for words that it cannot spell";
        let missing = TokenizerError::Missing { key: "tokenizer.ggml.unknown_token_id", why: WHY };
        Ok(Self {
            trie: Trie::new(vocabulary.texts.iter()),
            unknown: vocabulary.unknown().ok_or(missing)?,
            normalizer: vocabulary.normalizer,
        })
    }

    /// Appends the tokens of a fragment. Ill-formed bytes are left out.
    pub(super) fn encode(&self, fragment: &[u8], out: &mut Vec<u32>) {
        let mut word = String::new();
        for c in lossy(fragment).chars() {
            let c = if self.normalizer.strip_accents { base(c) } else { c };
            if c.is_whitespace() {
                self.finish(&mut word, out);
                continue;
            }
            let dropped = c == char::REPLACEMENT_CHARACTER
                || CONTROL.contains(c)
                || (self.normalizer.strip_accents && MARK.contains(c));
            if dropped {
                continue;
            }
            let alone = PUNCTUATION.contains(c) || is_ideograph(c);
            if alone {
                self.finish(&mut word, out);
            }
            word.push(if self.normalizer.lowercase { lower(c) } else { c });
            if alone {
                self.finish(&mut word, out);
            }
        }
        self.finish(&mut word, out);
    }

    /// Appends the tokens of a word and empties it: all of them, or the unknown token.
    fn finish(&self, word: &mut String, out: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        let before = out.len();
        let text = [SPACE, word.as_bytes()].concat();
        let mut rest = &text[..];
        while !rest.is_empty() {
            let found = self.trie.longest(rest).and_then(|(len, id)| Some((rest.get(len..)?, id)));
            let Some((after, id)) = found else {
                out.truncate(before);
                out.push(self.unknown);
                break;
            };
            out.push(id);
            rest = after;
        }
        word.clear();
    }
}
