//! SentencePiece-style merging by score: characters are joined as long as the join is a token, the highest score first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::error::TokenizerError;
use super::unicode_len;
use super::vocab::Vocabulary;

/// What a space is written as in the vocabulary: U+2581, lower one eighth block.
pub(super) const SPACE: &[u8] = "\u{2581}".as_bytes();

/// The tokens of single bytes, for what the vocabulary does not spell.
#[derive(Clone, Debug)]
pub(super) struct Spm {
    /// 256 of them.
    bytes: Vec<u32>,
}

/// A stretch of the text: one character at first, a token as soon as it was joined.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    start: usize,
    /// 0 once it was joined to its left neighbour.
    len: usize,
    prev: usize,
    next: usize,
}

/// Two neighbours whose join is a token.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Join {
    score: f32,
    left: Reverse<usize>,
    right: usize,
    len: usize,
}

impl Eq for Join {}

impl PartialOrd for Join {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The highest score first; of equal scores the leftmost.
impl Ord for Join {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score.total_cmp(&other.score).then(self.left.cmp(&other.left)).then(self.len.cmp(&other.len))
    }
}

const NONE: usize = usize::MAX;

/// Memory that one encoding reuses from fragment to fragment.
#[derive(Default, Debug)]
pub(super) struct Scratch {
    text: Vec<u8>,
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Join>,
}

impl Spm {
    /// Finds the tokens of the 256 bytes: `<0xNN>`, else the byte as a text, else the unknown token.
    ///
    /// # Errors
    /// A byte has none of the three, so that a text could come up that has no tokens.
    pub(super) fn new(vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        let token = |byte: u8| {
            let named = vocabulary.find(format!("<0x{byte:02X}>").as_bytes());
            named.or_else(|| vocabulary.find(&[byte])).or(vocabulary.unknown())
        };
        const WHY: &str = "the vocabulary lacks byte tokens, so it needs one for what it cannot spell";
        let missing = TokenizerError::Missing { key: "tokenizer.ggml.unknown_token_id", why: WHY };
        let bytes: Option<Vec<u32>> = (0..=255).map(token).collect();
        Ok(Self { bytes: bytes.ok_or(missing)? })
    }

    /// Appends the tokens of a fragment; `prefix` puts a space before it.
    ///
    /// Spaces are written as U+2581 before the text is split into characters. A broken character just before a space thus
    /// takes bytes of it, which come back as U+2581: llama.cpp's ids for ill-formed text, kept equal here.
    pub(super) fn encode(
        &self,
        fragment: &[u8],
        prefix: bool,
        vocabulary: &Vocabulary,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) {
        let Scratch { text, symbols, queue } = scratch;
        text.clear();
        if prefix {
            text.extend_from_slice(SPACE);
        }
        for &byte in fragment {
            if byte == b' ' { text.extend_from_slice(SPACE) } else { text.push(byte) }
        }
        split(text, symbols);
        queue.clear();
        for left in 0..symbols.len() {
            offer(vocabulary, text, symbols, queue, left);
        }
        while let Some(join) = queue.pop() {
            let Reverse(left) = join.left;
            let (Some(&a), Some(&b)) = (symbols.get(left), symbols.get(join.right)) else { continue };
            // Either has grown or gone since.
            if a.len == 0 || b.len == 0 || a.len + b.len != join.len {
                continue;
            }
            if let Some(right) = symbols.get_mut(join.right) {
                right.len = 0;
            }
            if let Some(left) = symbols.get_mut(left) {
                (left.len, left.next) = (join.len, b.next);
            }
            if let Some(next) = symbols.get_mut(b.next) {
                next.prev = left;
            }
            offer(vocabulary, text, symbols, queue, a.prev);
            offer(vocabulary, text, symbols, queue, left);
        }
        for symbol in symbols.iter().filter(|symbol| symbol.len > 0) {
            let piece = text.get(symbol.start..symbol.start + symbol.len).unwrap_or_default();
            match vocabulary.find(piece) {
                Some(id) => out.push(id),
                None => out.extend(piece.iter().filter_map(|&byte| self.bytes.get(usize::from(byte)))),
            }
        }
    }
}

/// Splits into characters by their first byte, whether they are well-formed or not.
fn split(text: &[u8], symbols: &mut Vec<Symbol>) {
    symbols.clear();
    let mut start = 0;
    while let Some(&first) = text.get(start) {
        let len = unicode_len(first).min(text.len() - start);
        let at = symbols.len();
        symbols.push(Symbol { start, len, prev: at.checked_sub(1).unwrap_or(NONE), next: at + 1 });
        start += len;
    }
    if let Some(last) = symbols.last_mut() {
        last.next = NONE;
    }
}

/// Queues the join of the symbol at `left` and its right neighbour, if it is a token.
fn offer(vocabulary: &Vocabulary, text: &[u8], symbols: &[Symbol], queue: &mut BinaryHeap<Join>, left: usize) {
    let Some(first) = symbols.get(left) else { return };
    let Some(second) = symbols.get(first.next) else { return };
    let len = first.len + second.len;
    if let Some(id) = text.get(first.start..first.start + len).and_then(|joined| vocabulary.find(joined)) {
        queue.push(Join { score: vocabulary.score(id), left: Reverse(left), right: first.next, len });
    }
}

#[cfg(test)]
mod tests;
