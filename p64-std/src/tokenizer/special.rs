//! Special tokens in raw text: control tokens (where asked for) and user-defined ones stand for themselves and are cut
//! out before anything else.
//!
//! The rule is llama.cpp's: the longest special token anywhere in the text is cut out first, from left to right, then
//! the next shorter in what is left. That is not leftmost-longest: of `ab` and `bcd`, the text `abcd` gives `a`, `bcd`.
//! White space that a token strips is cut out with it.

use super::error::TokenizerError;
use super::vocab::{Strips, TokenType, Vocabulary};

/// Bytes of the longest special token; public models stay below 100. It bounds the work per byte of text.
const MAX_SPECIAL: u32 = 1024;

/// The special tokens of a vocabulary, twice: all of them, and those that are always matched.
#[derive(Clone, Debug)]
pub(super) struct Specials {
    all: Matcher,
    always: Matcher,
}

/// A part of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fragment<'t> {
    /// A special token.
    Token(u32),
    /// Text between them, not empty.
    Text(&'t [u8]),
}

impl Specials {
    /// # Errors
    /// A special token of more than [`MAX_SPECIAL`] bytes.
    pub(super) fn new(vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        let of = |types: &'static [TokenType]| {
            let special = (0..).zip(vocabulary.types()).filter(|(_, kind)| types.contains(kind));
            let texts = special.filter_map(|(id, _)| Some((id, vocabulary.text(id)?)));
            Matcher::new(texts.collect(), &vocabulary.strips)
        };
        let all = of(&[TokenType::Control, TokenType::Unknown, TokenType::UserDefined])?;
        Ok(Self { all, always: of(&[TokenType::UserDefined])? })
    }

    /// Cuts `text` at its special tokens: with `parse_special` at all of them, else at the user-defined ones.
    pub(super) fn partition<'t>(&self, text: &'t [u8], parse_special: bool) -> Vec<Fragment<'t>> {
        if parse_special { self.all.partition(text) } else { self.always.partition(text) }
    }
}

/// A set of texts, sorted, with the way from each to the ones it begins with.
#[derive(Clone, Debug)]
struct Matcher {
    entries: Vec<Entry>,
    /// For each first byte the entries that begin with it; 257 bounds.
    buckets: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Entry {
    text: Box<[u8]>,
    id: u32,
    /// The longest entry that this one begins with.
    shorter: Option<usize>,
    strips_before: bool,
    strips_after: bool,
}

/// A part of the text that is cut out: a token and the white space that it strips.
#[derive(Clone, Copy, Debug)]
struct Cut {
    from: usize,
    to: usize,
    id: u32,
}

/// A place in the text where entry `entry` begins.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: usize,
    entry: usize,
}

impl Matcher {
    fn new(mut texts: Vec<(u32, &[u8])>, strips: &Strips) -> Result<Self, TokenizerError> {
        texts.retain(|(_, text)| !text.is_empty());
        if let Some((_, text)) = texts.iter().find(|(_, text)| text.len() > MAX_SPECIAL as usize) {
            return Err(TokenizerError::Limit {
                key: "tokenizer.ggml.tokens",
                what: "the longest special token's length",
                limit: MAX_SPECIAL.into(),
                found: text.len() as u64,
            });
        }
        // Equal texts: the lowest id stays.
        texts.sort_unstable_by(|a, b| a.1.cmp(b.1).then(a.0.cmp(&b.0)));
        texts.dedup_by(|later, first| later.1 == first.1);
        let mut entries: Vec<Entry> = Vec::with_capacity(texts.len());
        // In sorted order the entries that this one begins with are on the way back from its predecessor.
        for (id, text) in texts {
            let mut shorter = entries.len().checked_sub(1);
            while let Some(entry) =
                shorter.and_then(|at| entries.get(at)).filter(|entry| !text.starts_with(&entry.text))
            {
                shorter = entry.shorter;
            }
            let [strips_before, strips_after] =
                [&strips.before, &strips.after].map(|ids| ids.binary_search(&id).is_ok());
            entries.push(Entry { text: text.into(), id, shorter, strips_before, strips_after });
        }
        let first = |entry: &Entry| entry.text.first().copied().map_or(0, usize::from);
        let buckets = (0..=256).map(|byte| entries.partition_point(|entry| first(entry) < byte)).collect();
        Ok(Self { entries, buckets })
    }

    /// The longest entry that the text begins with.
    fn longest(&self, text: &[u8]) -> Option<usize> {
        let bucket = usize::from(*text.first()?);
        let (mut from, mut to) = (*self.buckets.get(bucket)?, *self.buckets.get(bucket + 1)?);
        let mut longest = None;
        let mut depth = 1;
        // Entries from..to share the text's first `depth` bytes; the one that ends there comes first.
        while from < to {
            if self.entries.get(from)?.text.len() == depth {
                longest = Some(from);
                from += 1;
            }
            let Some(&byte) = text.get(depth) else { break };
            let range = self.entries.get(from..to)?;
            let at = |entry: &Entry| entry.text.get(depth).copied();
            to = from + range.partition_point(|entry| at(entry) <= Some(byte));
            from += range.partition_point(|entry| at(entry) < Some(byte));
            depth += 1;
        }
        longest
    }

    fn partition<'t>(&self, text: &'t [u8]) -> Vec<Fragment<'t>> {
        let mut cuts = self.cuts(text);
        cuts.sort_unstable_by_key(|cut| cut.from);
        let mut fragments = Vec::new();
        let mut from = 0;
        let push_text = |fragments: &mut Vec<_>, from, to| {
            fragments.extend(text.get(from..to).filter(|text| !text.is_empty()).map(Fragment::Text));
        };
        for cut in cuts {
            push_text(&mut fragments, from, cut.from);
            fragments.push(Fragment::Token(cut.id));
            from = cut.to;
        }
        push_text(&mut fragments, from, text.len());
        fragments
    }

    /// The places that are cut out, in no order. They do not overlap.
    fn cuts(&self, text: &[u8]) -> Vec<Cut> {
        let mut cuts = Vec::new();
        if self.entries.is_empty() {
            return cuts;
        }
        // By length: where an entry of that length begins and no longer one is left to try.
        let mut by_length: Vec<Vec<Place>> = Vec::new();
        let queue = |by_length: &mut Vec<Vec<Place>>, place: Place| {
            let len = self.entries.get(place.entry).map_or(0, |entry| entry.text.len());
            if by_length.len() <= len {
                by_length.resize_with(len + 1, Vec::new);
            }
            if let Some(places) = by_length.get_mut(len) {
                places.push(place);
            }
        };
        for at in 0..text.len() {
            if let Some(entry) = text.get(at..).and_then(|rest| self.longest(rest)) {
                queue(&mut by_length, Place { at, entry });
            }
        }
        if by_length.is_empty() {
            return cuts;
        }
        let mut taken = vec![false; text.len()];
        let is_taken = |taken: &[bool], at: usize| taken.get(at).copied().unwrap_or(true);
        while let Some(mut places) = by_length.pop() {
            let len = by_length.len();
            let id = |place: &Place| self.entries.get(place.entry).map_or(0, |entry| entry.id);
            places.sort_unstable_by_key(|place| (id(place), place.at));
            for place in places {
                // What was cut out before is at least as long, so an overlap covers the first or the last byte.
                if is_taken(&taken, place.at) {
                    continue;
                }
                let Some(entry) = self.entries.get(place.entry) else { continue };
                let end = place.at + len;
                if !is_taken(&taken, end - 1) {
                    let strippable = |at: usize| text.get(at).is_some_and(|&b| is_space(b)) && !is_taken(&taken, at);
                    let (mut from, mut to) = (place.at, end);
                    while entry.strips_before && from > 0 && strippable(from - 1) {
                        from -= 1;
                    }
                    while entry.strips_after && strippable(to) {
                        to += 1;
                    }
                    if let Some(range) = taken.get_mut(from..to) {
                        range.fill(true);
                    }
                    cuts.push(Cut { from, to, id: entry.id });
                } else if let Some(entry) = entry.shorter {
                    queue(&mut by_length, Place { at: place.at, entry });
                }
            }
        }
        cuts
    }
}

/// White space of the C locale.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests;
