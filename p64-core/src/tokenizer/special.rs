//! Special tokens in raw text: they stand for themselves and are cut out before anything else.
//!
//! The rule is llama.cpp's: the longest special token anywhere in the text is cut out first, of equal lengths the one with
//! the lowest id, from left to right; then the next in what is left. What lies left of a cut and what lies right of it no
//! longer influence each other, so the first cut of a text is found by cutting and going on in what is left of the cut,
//! and the cuts come up from left to right without memory for them.

use super::vocabulary::{TokenType, Vocabulary};

/// A special token in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cut {
    pub at: usize,
    pub len: usize,
    pub id: u32,
}

impl Vocabulary<'_> {
    /// The first special token at or after `from`: with `parse_special` of all of them, else of the user-defined ones.
    ///
    /// Each step compares the text with every special token; there are as many steps as different special tokens, each
    /// shorter than the one before, stand in front of each other.
    pub(super) fn next_cut(&self, text: &[u8], from: usize, parse_special: bool) -> Option<Cut> {
        let (mut end, mut first) = (text.len(), None);
        while let Some(cut) = text.get(from..end).and_then(|stretch| self.cut(stretch, parse_special)) {
            end = from.saturating_add(cut.at);
            first = Some(Cut { at: end, ..cut });
        }
        first
    }

    fn cut(&self, stretch: &[u8], parse_special: bool) -> Option<Cut> {
        let counts = |id, text: &[u8]| match self.kind(id, text) {
            TokenType::UserDefined => true,
            TokenType::Control | TokenType::Unknown => parse_special,
            _ => false,
        };
        let place = |id, special: &[u8]| {
            let at = position(stretch, special)?;
            counts(id, special).then_some(Cut { at, len: special.len(), id })
        };
        if let Some(mut specials) = self.indexed_specials() {
            return specials.find_map(|(id, special)| place(id, special));
        }
        let mut longest: Option<Cut> = None;
        for (id, special) in self.iter() {
            if special.len() > longest.map_or(0, |cut| cut.len) {
                let is_special = counts(id, special);
                longest = is_special.then(|| place(id, special)).flatten().or(longest);
            }
        }
        longest
    }
}

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    let last = text.len().checked_sub(part.len())?;
    (0..=last).find(|&at| text.get(at..).is_some_and(|rest| rest.starts_with(part)))
}
