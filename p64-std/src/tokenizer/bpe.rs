//! Byte-level byte-pair encoding: words of bytes, merged pair by pair in the order of the merge list.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use p64_core::limits::MAX_MERGES;

use super::alphabet;
use super::error::TokenizerError;
use super::pairs::Pairs;
use super::pre::Pre;
use super::texts::Texts;
use super::vocab::Vocabulary;

/// The merges of a byte-level BPE model, by ids.
///
/// A symbol is a token's id, or, from the vocabulary's size up, a text that only merges mention (a pruned vocabulary).
#[derive(Clone, Debug)]
pub(super) struct Bpe {
    pre: Pre,
    merges: Pairs,
    /// The symbol of each byte; 256 of them.
    bytes: Vec<u32>,
    /// What a symbol past the vocabulary is written with, from the vocabulary's size up.
    spelled: Vec<Vec<u32>>,
    vocab: u32,
}

/// A symbol of the word that is being merged.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    id: u32,
    prev: usize,
    next: usize,
}

/// A pair that may merge. The order is the merging's: lowest rank first, then the leftmost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Pair {
    rank: u32,
    left: usize,
    right: usize,
    ids: (u32, u32),
    merged: u32,
}

const NONE: usize = usize::MAX;
/// The id of a symbol that was merged into its left neighbour.
const GONE: u32 = u32::MAX;

/// Memory that one encoding reuses from word to word.
#[derive(Default, Debug)]
pub(super) struct Scratch {
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Reverse<Pair>>,
    text: String,
}

const KEY: &str = "tokenizer.ggml.merges";

impl Bpe {
    /// Resolves the merge list, first rank first; each merge is its two halves in the byte alphabet.
    ///
    /// # Errors
    /// More than [`MAX_MERGES`] merges; an empty half.
    pub(super) fn new<'a>(
        pre: Pre,
        vocabulary: &Vocabulary,
        merges: impl Iterator<Item = Option<(&'a [u8], &'a [u8])>>,
    ) -> Result<Self, TokenizerError> {
        let mut symbols = Symbols { texts: &vocabulary.texts, extra: HashMap::new(), order: Vec::new() };
        let bytes =
            (0..=255).map(|byte| symbols.of(alphabet::char_of(byte).encode_utf8(&mut [0; 4]).as_bytes())).collect();
        let mut pairs = Pairs::default();
        let mut joined = Vec::new();
        for (index, merge) in merges.enumerate() {
            let rank = u32::try_from(index).ok().filter(|&rank| rank < MAX_MERGES).ok_or(TokenizerError::Limit {
                key: KEY,
                what: "the number of merges",
                limit: MAX_MERGES.into(),
                found: index as u64 + 1,
            })?;
            let Some((left, right)) = merge.filter(|(left, right)| !left.is_empty() && !right.is_empty()) else {
                return Err(TokenizerError::Element { key: KEY, index, what: "not two texts with a space between" });
            };
            joined.clear();
            joined.extend_from_slice(left);
            joined.extend_from_slice(right);
            pairs.add(symbols.of(left), symbols.of(right), rank, symbols.of(&joined));
        }
        let spelled = symbols.order.iter().map(|text| spell(text, &vocabulary.texts)).collect();
        let vocab = u32::try_from(vocabulary.len()).unwrap_or(u32::MAX);
        Ok(Self { pre, merges: pairs, bytes, spelled, vocab })
    }

    /// Appends the tokens of `text`. Bytes that the vocabulary has no token for are left out, as llama.cpp does: such a
    /// vocabulary has no way to say them.
    pub(super) fn encode(&self, text: &str, texts: &Texts, scratch: &mut Scratch, out: &mut Vec<u32>) {
        self.pre.split(text, &mut |word| {
            if self.pre.ignores_merges() {
                scratch.text.clear();
                scratch.text.extend(word.bytes().map(alphabet::char_of));
                if let Some(id) = texts.find(scratch.text.as_bytes()) {
                    return out.push(id);
                }
            }
            self.merge(word.as_bytes(), scratch);
            for symbol in &scratch.symbols {
                if symbol.id < self.vocab {
                    out.push(symbol.id);
                } else if let Some(ids) = symbol.id.checked_sub(self.vocab).and_then(|at| self.spelled.get(at as usize))
                {
                    out.extend_from_slice(ids);
                }
            }
        });
    }

    /// Merges a word; `scratch.symbols` holds the result among symbols that are [`GONE`].
    fn merge(&self, word: &[u8], scratch: &mut Scratch) {
        let Scratch { symbols, queue, .. } = scratch;
        symbols.clear();
        queue.clear();
        symbols.extend(word.iter().enumerate().map(|(at, byte)| Symbol {
            id: self.bytes.get(usize::from(*byte)).copied().unwrap_or(GONE),
            prev: at.checked_sub(1).unwrap_or(NONE),
            next: if at + 1 < word.len() { at + 1 } else { NONE },
        }));
        for left in 0..symbols.len() {
            self.offer(symbols, queue, left);
        }
        while let Some(Reverse(pair)) = queue.pop() {
            let id = |at: usize| symbols.get(at).map(|symbol| symbol.id);
            // A symbol only ever grows or goes, so unchanged ids mean that the two are still neighbours.
            if id(pair.left) != Some(pair.ids.0) || id(pair.right) != Some(pair.ids.1) {
                continue;
            }
            let Some(next) = symbols.get_mut(pair.right).map(|right| {
                right.id = GONE;
                right.next
            }) else {
                continue;
            };
            let Some(prev) = symbols.get_mut(pair.left).map(|left| {
                (left.id, left.next) = (pair.merged, next);
                left.prev
            }) else {
                continue;
            };
            if let Some(next) = symbols.get_mut(next) {
                next.prev = pair.left;
            }
            self.offer(symbols, queue, prev);
            self.offer(symbols, queue, pair.left);
        }
    }

    /// Queues the pair of the symbol at `left` and its right neighbour, if it is one that merges.
    fn offer(&self, symbols: &[Symbol], queue: &mut BinaryHeap<Reverse<Pair>>, left: usize) {
        let Some(first) = symbols.get(left) else { return };
        let Some(second) = symbols.get(first.next) else { return };
        let ids = (first.id, second.id);
        if let Some((rank, merged)) = self.merges.get(ids.0, ids.1) {
            queue.push(Reverse(Pair { rank, left, right: first.next, ids, merged }));
        }
    }
}

/// Gives every text a symbol: its token, or a number past the vocabulary.
struct Symbols<'a> {
    texts: &'a Texts,
    extra: HashMap<Vec<u8>, u32>,
    order: Vec<Vec<u8>>,
}

impl Symbols<'_> {
    fn of(&mut self, text: &[u8]) -> u32 {
        if let Some(id) = self.texts.find(text).or_else(|| self.extra.get(text).copied()) {
            return id;
        }
        // At most 1,000,000 tokens and 3 x 5,000,000 texts of merges: far from GONE.
        let id = u32::try_from(self.texts.len() + self.order.len()).unwrap_or(GONE);
        self.extra.insert(text.to_vec(), id);
        self.order.push(text.to_vec());
        id
    }
}

/// The tokens of a text that is no token: one for each character that has one.
fn spell(text: &[u8], texts: &Texts) -> Vec<u32> {
    let mut buffer = [0; 4];
    let chars = text.utf8_chunks().flat_map(|chunk| chunk.valid().chars());
    chars.filter_map(|c| texts.find(c.encode_utf8(&mut buffer).as_bytes())).collect()
}

/// The two halves of a merge as GGUF writes it: split at the first space after the first byte.
pub(super) fn halves(merge: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = merge.iter().skip(1).position(|&b| b == b' ')?.checked_add(1)?;
    Some((merge.get(..space)?, merge.get(space + 1..)?))
}

/// Text of bytes: every byte that is no part of a well-formed character becomes U+FFFD, as in llama.cpp.
///
/// Surrogates and overlong forms count as ill-formed too, byte by byte; llama.cpp lets them pass.
pub(super) fn lossy(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return text.into();
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text.into()
}

#[cfg(test)]
mod tests;
