//! SentencePiece-style merging by score: characters are joined as long as the join is a token, the highest score first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::OnceLock;

use super::error::TokenizerError;
use super::seen::Seen;
use super::unicode_len;
use super::vocab::Vocabulary;

/// What a space is written as in the vocabulary: U+2581, lower one eighth block.
pub(super) const SPACE: &[u8] = "\u{2581}".as_bytes();

/// The tokens of single bytes, for what the vocabulary does not spell.
#[derive(Clone, Debug)]
pub(super) struct Spm {
    /// 256 of them.
    bytes: Vec<u32>,
    /// Made when the first long text comes: it takes a walk over the vocabulary.
    cuts: OnceLock<Cuts>,
}

/// Bytes from which on a text is long.
const LONG: usize = 4096;

/// Where a text can be cut without changing its tokens: before a space, if no token has a space behind the byte that is before
/// it. Nothing is ever joined across such a place, and which joins come first on one side does not depend on the other.
#[derive(Clone, Debug)]
struct Cuts {
    /// For each byte, whether a token has a space behind it.
    is_before_space: [bool; 256],
}

impl Cuts {
    fn new(vocabulary: &Vocabulary) -> Self {
        let mut is_before_space = [false; 256];
        for (_, text) in vocabulary.texts.iter() {
            for pair in text.windows(SPACE.len() + 1).filter(|pair| pair.ends_with(SPACE)) {
                if let Some(before) = pair.first().and_then(|&byte| is_before_space.get_mut(usize::from(byte))) {
                    *before = true;
                }
            }
        }
        Self { is_before_space }
    }

    /// Where the first part of a text that is not empty ends.
    fn first(&self, text: &[u8]) -> usize {
        let is_cut = |pair: &[u8]| {
            let before = pair.first().copied().unwrap_or(0);
            pair.ends_with(SPACE) && !self.is_before_space.get(usize::from(before)).copied().unwrap_or(true)
        };
        text.windows(SPACE.len() + 1).position(is_cut).map_or(text.len(), |at| at + 1)
    }
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
    seen: Seen,
    /// Whether the fragments are parts of a long text.
    is_long: bool,
}

impl Scratch {
    /// For a text of `len` bytes.
    pub(super) fn of(len: usize) -> Self {
        Self { is_long: len >= LONG, ..Self::default() }
    }
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
        Ok(Self { bytes: bytes.ok_or(missing)?, cuts: OnceLock::new() })
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
        self.encode_parts(fragment, prefix, scratch.is_long.then(|| self.cuts(vocabulary)), vocabulary, scratch, out);
    }

    fn cuts(&self, vocabulary: &Vocabulary) -> &Cuts {
        self.cuts.get_or_init(|| Cuts::new(vocabulary))
    }

    fn encode_parts(
        &self,
        fragment: &[u8],
        prefix: bool,
        cuts: Option<&Cuts>,
        vocabulary: &Vocabulary,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) {
        let Scratch { text, symbols, queue, seen, .. } = scratch;
        text.clear();
        if prefix {
            text.extend_from_slice(SPACE);
        }
        for &byte in fragment {
            if byte == b' ' { text.extend_from_slice(SPACE) } else { text.push(byte) }
        }
        let Some(cuts) = cuts else { return self.encode_part(text, vocabulary, (symbols, queue), out) };
        // A character may be broken and reach into a space: then the space is none, and the place is no place to cut at.
        let is_whole = str::from_utf8(text).is_ok();
        let mut rest = text.as_slice();
        while !rest.is_empty() {
            let end = if is_whole { cuts.first(rest) } else { rest.len() };
            let (part, after) = rest.split_at(end);
            seen.encode(part, out, |out| self.encode_part(part, vocabulary, (symbols, queue), out));
            rest = after;
        }
    }

    /// Appends the tokens of a text whose spaces are written as U+2581.
    fn encode_part(
        &self,
        text: &[u8],
        vocabulary: &Vocabulary,
        (symbols, queue): (&mut Vec<Symbol>, &mut BinaryHeap<Join>),
        out: &mut Vec<u32>,
    ) {
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
