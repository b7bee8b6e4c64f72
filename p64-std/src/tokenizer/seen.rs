//! The words of a text that have been encoded before: most words of a text are, and their ids are copied.

use std::collections::HashMap;

use super::hash::Folding;

/// Bytes of the longest words that are remembered: longer ones are rarely seen twice.
const MAX_LEN: usize = 64;
/// Most words that are remembered, a few MB of them.
const MAX_WORDS: usize = 1 << 16;

/// For each word where its ids stand in the output, which only grows.
#[derive(Default, Debug)]
pub(super) struct Seen(HashMap<Box<[u8]>, (usize, usize), Folding>);

impl Seen {
    /// Appends the ids of `word`: those of the last time, or what `encode` appends.
    pub(super) fn encode(&mut self, word: &[u8], out: &mut Vec<u32>, encode: impl FnOnce(&mut Vec<u32>)) {
        if let Some(&(from, to)) = self.0.get(word) {
            return out.extend_from_within(from..to);
        }
        let from = out.len();
        encode(out);
        if word.len() <= MAX_LEN && self.0.len() < MAX_WORDS {
            self.0.insert(word.into(), (from, out.len()));
        }
    }
}
