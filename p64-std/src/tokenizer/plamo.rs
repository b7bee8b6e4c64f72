//! PLaMo-2: the cheapest way to write a text, computed from its end; scores are integers of 1/10,000.

use super::bpe::lossy;
use super::error::TokenizerError;
use super::trie::Trie;
use super::vocab::{TokenType, Vocabulary};

/// The tokens and the tokens of the 256 bytes.
#[derive(Clone, Debug)]
pub(super) struct Plamo {
    trie: Trie,
    bytes: Vec<u32>,
}

/// What a character without a token is taken to score.
const UNKNOWN: i64 = -10_000_000;
/// A score at or below this says that the token is not to be used.
const NEVER: i64 = -20_000_000;

/// The cheapest way from here to the end: its first token, if not bytes, and the length of that.
#[derive(Clone, Copy, Debug)]
struct Step {
    cost: i64,
    len: usize,
    id: Option<u32>,
}

impl Plamo {
    /// # Errors
    /// The vocabulary lacks one of the byte tokens, so that a text could come up that has no tokens.
    pub(super) fn new(vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        let token = |byte: u8| {
            let id = vocabulary.find(format!("<0x{byte:02X}>").as_bytes());
            id.filter(|&id| vocabulary.token_type(id) == Some(TokenType::Byte))
        };
        const WHY: &str = "the vocabulary lacks one of the 256 tokens <0xNN> of type byte";
        let missing = TokenizerError::Missing { key: "tokenizer.ggml.tokens", why: WHY };
        let bytes: Option<Vec<u32>> = (0..=255).map(token).collect();
        let is_text = |(id, _): &(u32, &[u8])| vocabulary.token_type(*id) != Some(TokenType::Byte);
        Ok(Self { trie: Trie::new(vocabulary.texts.iter().filter(is_text)), bytes: bytes.ok_or(missing)? })
    }

    /// Appends the tokens of a fragment. A byte order mark at its front is left out.
    pub(super) fn encode(&self, fragment: &[u8], vocabulary: &Vocabulary, out: &mut Vec<u32>) {
        let text = lossy(fragment);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut steps = vec![Step { cost: 0, len: 0, id: None }; text.len() + 1];
        for (at, c) in text.char_indices().rev() {
            let rest = text.as_bytes().get(at..).unwrap_or_default();
            let after = |len: usize| steps.get(at + len).map_or(i64::MAX, |step| step.cost);
            let mut best = Step { cost: after(c.len_utf8()).saturating_sub(UNKNOWN), len: c.len_utf8(), id: None };
            // Of equal costs the longest token is taken, and a token before bytes.
            self.trie.prefixes(rest, |len, id| {
                let score = score(vocabulary.score(id));
                let cost = after(len).saturating_sub(score);
                if score > NEVER && cost <= best.cost {
                    best = Step { cost, len, id: Some(id) };
                }
            });
            if let Some(step) = steps.get_mut(at) {
                *step = best;
            }
        }
        let mut at = 0;
        while let Some(step) = steps.get(at).filter(|step| step.len > 0) {
            match step.id {
                Some(id) => out.push(id),
                None => {
                    let bytes = text.as_bytes().get(at..at + step.len).unwrap_or_default();
                    out.extend(bytes.iter().filter_map(|&byte| self.bytes.get(usize::from(byte))));
                }
            }
            at += step.len;
        }
    }
}

/// A score in 1/10,000. One that is no number, or infinite, is [`NEVER`].
fn score(score: f32) -> i64 {
    let scaled = (score * 1e4).round();
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    if scaled.abs() < 2e9 { scaled as i64 } else { NEVER }
}
