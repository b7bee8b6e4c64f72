//! Byte-pair encoding: words of bytes or characters, merged pair by pair in the order of the merge list.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use p64_core::limits::MAX_MERGES;

use super::alphabet;
use super::error::TokenizerError;
use super::pairs::Pairs;
use super::pre::{Pre, Splitter, Units};
use super::seen::Seen;
use super::spm::SPACE;
use super::texts::Texts;
use super::unicode::lower;
use super::unicode_len;
use super::vocab::Vocabulary;

/// The merges of a BPE model, by ids.
///
/// A symbol is a token's id, or, from the vocabulary's size up, a text that only merges mention (a pruned vocabulary).
#[derive(Clone, Debug)]
pub(super) struct Bpe {
    pre: Pre,
    splitter: Splitter,
    merges: Pairs,
    /// The symbol of each byte, 256 of them; empty where symbols begin as characters.
    bytes: Vec<u32>,
    /// Symbols of characters that are no token but that merges mention.
    characters: HashMap<char, u32>,
    /// Where symbols begin as characters: the tokens of the 256 bytes, for what has no token.
    fallback: Vec<Option<u32>>,
    /// What a symbol past the vocabulary is written with, from the vocabulary's size up.
    spelled: Vec<Vec<u32>>,
    vocab: u32,
}

/// A symbol of the word that is being merged.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    id: u32,
    /// Where it begins in the word.
    start: usize,
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
/// The id of a character that neither a token nor a merge mentions.
const UNKNOWN: u32 = u32::MAX - 1;

/// Memory that one encoding reuses from word to word.
#[derive(Default, Debug)]
pub(super) struct Scratch {
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Reverse<Pair>>,
    text: String,
    escaped: Vec<u8>,
    seen: Seen,
}

const KEY: &str = "tokenizer.ggml.merges";

impl Bpe {
    /// Resolves the merge list, first rank first; each merge is its two halves in the byte alphabet. `count` is about how many
    /// there are.
    ///
    /// # Errors
    /// More than [`MAX_MERGES`] merges; an empty half.
    pub(super) fn new<'a>(
        pre: Pre,
        vocabulary: &Vocabulary,
        (count, merges): (usize, impl Iterator<Item = Option<(&'a [u8], &'a [u8])>>),
    ) -> Result<Self, TokenizerError> {
        let mut symbols = Symbols { texts: &vocabulary.texts, extra: HashMap::new(), order: Vec::new() };
        let (mut bytes, mut fallback) = (Vec::new(), Vec::new());
        if pre.units() == Units::Bytes {
            let symbol = |byte| symbols.of(alphabet::char_of(byte).encode_utf8(&mut [0; 4]).as_bytes());
            bytes = (0..=255).map(symbol).collect();
        } else {
            fallback = (0..=255_u8).map(|byte| vocabulary.find(format!("<0x{byte:02X}>").as_bytes())).collect();
        }
        let mut pairs = Pairs::with_capacity(count.min(MAX_MERGES as usize));
        let mut joined = Vec::new();
        let mut next = 0;
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
            // Most vocabularies number what merges make in the order of the merges.
            let merged = if symbols.is(next, &joined) { next } else { symbols.of(&joined) };
            pairs.add(symbols.of(left), symbols.of(right), rank, merged);
            next = merged.wrapping_add(1);
        }
        let spelled = symbols.order.iter().map(|text| spell(text, &vocabulary.texts, &fallback)).collect();
        let only = |text: &str| {
            let mut chars = text.chars();
            chars.next().filter(|_| chars.as_str().is_empty())
        };
        let characters = symbols.extra.iter().filter_map(|(text, &id)| Some((only(str::from_utf8(text).ok()?)?, id)));
        let characters = if pre.units() == Units::Bytes { HashMap::new() } else { characters.collect() };
        let vocab = u32::try_from(vocabulary.len()).unwrap_or(u32::MAX);
        let splitter = pre.splitter();
        Ok(Self { pre, splitter, merges: pairs, bytes, characters, fallback, spelled, vocab })
    }

    /// Appends the tokens of a fragment. Bytes that the vocabulary has no token for are left out, as llama.cpp does: such a
    /// vocabulary has no way to say them.
    pub(super) fn encode(&self, fragment: &[u8], texts: &Texts, scratch: &mut Scratch, out: &mut Vec<u32>) {
        if self.pre.units() != Units::CharactersAndSpaces {
            return self.encode_text(&lossy(fragment), texts, scratch, out);
        }
        let mut escaped = std::mem::take(&mut scratch.escaped);
        escaped.clear();
        for &byte in fragment {
            if byte == b' ' { escaped.extend_from_slice(SPACE) } else { escaped.push(byte) }
        }
        self.encode_text(&lossy(&escaped), texts, scratch, out);
        scratch.escaped = escaped;
    }

    /// The same for models without tokens for white space: it is dropped, and each stretch between is encoded alone.
    pub(super) fn encode_without_spaces(
        &self,
        fragment: &[u8],
        vocabulary: &Vocabulary,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) {
        for part in lossy(fragment).split(char::is_whitespace).filter(|part| !part.is_empty()) {
            if vocabulary.normalizer.lowercase {
                let lower: String = part.chars().map(lower).collect();
                self.encode_text(&lower, &vocabulary.texts, scratch, out);
            } else {
                self.encode_text(part, &vocabulary.texts, scratch, out);
            }
        }
    }

    fn encode_text(&self, text: &str, texts: &Texts, scratch: &mut Scratch, out: &mut Vec<u32>) {
        let mut seen = std::mem::take(&mut scratch.seen);
        self.splitter.split(text, &mut |word| {
            seen.encode(word.as_bytes(), out, |out| self.encode_word(word, texts, scratch, out));
        });
        scratch.seen = seen;
    }

    fn encode_word(&self, word: &str, texts: &Texts, scratch: &mut Scratch, out: &mut Vec<u32>) {
        if let Some(id) = self.whole(word, texts, scratch) {
            return out.push(id);
        }
        self.merge(word, texts, scratch);
        for symbol in &scratch.symbols {
            if symbol.id < self.vocab {
                out.push(symbol.id);
            } else if symbol.id == UNKNOWN {
                let character = word.as_bytes().get(symbol.start..).unwrap_or_default();
                let len = character.first().map_or(0, |&first| unicode_len(first));
                out.extend(character.iter().take(len).filter_map(|&byte| *self.fallback.get(usize::from(byte))?));
            } else if let Some(ids) = symbol.id.checked_sub(self.vocab).and_then(|at| self.spelled.get(at as usize)) {
                out.extend_from_slice(ids);
            }
        }
    }

    /// The token of a word that is not to be merged up from its symbols.
    fn whole(&self, word: &str, texts: &Texts, scratch: &mut Scratch) -> Option<u32> {
        let line_breaks = self.pre.keeps_line_breaks() && word.bytes().all(|byte| byte == b'\n');
        if !self.pre.ignores_merges() && !line_breaks {
            return None;
        }
        if self.pre.units() != Units::Bytes {
            return texts.find(word.as_bytes());
        }
        scratch.text.clear();
        scratch.text.extend(word.bytes().map(alphabet::char_of));
        texts.find(scratch.text.as_bytes())
    }

    /// The symbol that a character begins as.
    fn character(&self, c: &str, texts: &Texts) -> u32 {
        let extra = || self.characters.get(&c.chars().next()?).copied();
        texts.find(c.as_bytes()).or_else(extra).unwrap_or(UNKNOWN)
    }

    /// Merges a word; `scratch.symbols` holds the result among symbols that are [`GONE`].
    fn merge(&self, word: &str, texts: &Texts, scratch: &mut Scratch) {
        let Scratch { symbols, queue, .. } = scratch;
        symbols.clear();
        queue.clear();
        let mut push = |start, id| {
            let at = symbols.len();
            symbols.push(Symbol { id, start, prev: at.checked_sub(1).unwrap_or(NONE), next: at + 1 });
        };
        if self.pre.units() == Units::Bytes {
            for (start, byte) in word.bytes().enumerate() {
                push(start, self.bytes.get(usize::from(byte)).copied().unwrap_or(GONE));
            }
        } else {
            for (start, c) in word.char_indices() {
                push(start, self.character(c.encode_utf8(&mut [0; 4]), texts));
            }
        }
        if let Some(last) = symbols.last_mut() {
            last.next = NONE;
        }
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
    /// Whether a text is that of this token and of no other.
    fn is(&self, id: u32, text: &[u8]) -> bool {
        !self.texts.repeats() && self.texts.get(id) == Some(text)
    }

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

/// The tokens of a text that is no token: of its bytes, or, without those, one for each character that has one.
fn spell(text: &[u8], texts: &Texts, fallback: &[Option<u32>]) -> Vec<u32> {
    if !fallback.is_empty() {
        return text.iter().filter_map(|&byte| *fallback.get(usize::from(byte))?).collect();
    }
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
