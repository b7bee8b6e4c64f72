//! Text to token ids, without allocation.
//!
//! ```text
//! bytes -> special tokens cut out -> [BPE] pre-tokenizer -> words -> merges by rank  -> ids
//!                                    [SPM] spaces as U+2581       -> merges by score -> ids
//! ```
//!
//! The ids are those of `p64-std`'s tokenizer, which are llama.cpp's; a model for which they would not be is refused when
//! its [`Vocabulary`] is read.
//!
//! # Cost
//! A piece of `n` bytes (BPE: a word, SPM: the whole text between special tokens) takes at most `3 n` look-ups and
//! `n^2 / 2` steps through the scratch. A look-up compares with every merge (BPE) or token (SPM) there is; with an index
//! ([`Vocabulary::build_index`]) with 20 of a million. Cutting out special tokens compares the text with each of them, once
//! for each cut and once more; without an index that is a walk through the vocabulary. A fast machine has no need of
//! this module (`p64-std` has a heap); a slow one should bound the length of the text it takes.

use super::alphabet;
use super::merge::{self, NO_JOIN, bytes, pieces};
use super::pre::Pre;
use super::unicode::chars;
use super::vocabulary::{Model, Vocabulary};
use crate::error::{Code, Error, Place, Result, Section};
use crate::forward::Parameter;

pub use super::merge::Slot;

/// What a space is written as in SPM vocabularies: U+2581, lower one eighth block.
pub(super) const SPACE: &[u8] = "\u{2581}".as_bytes();
/// What byte-level BPE reads for an ill-formed byte: U+FFFD.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// How a text is read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// Put BOS before and EOS after, where the model wants them.
    pub add_special: bool,
    /// Read the texts of control tokens (`<|im_start|>`) as those tokens. Without it they are spelled out, which is what
    /// text from outside needs. User-defined tokens are matched either way.
    pub parse_special: bool,
}

/// Slots that [`encode`] needs for `text` at most; BPE gets by with those of its longest word. BPE gives no more ids than
/// these and two; SPM may, because it puts a space behind each special token: [`encode`] then says how many.
#[must_use]
pub fn required_len(vocabulary: &Vocabulary<'_>, text: &[u8]) -> usize {
    match vocabulary.model {
        Model::Bpe(_) => bpe_len(text),
        Model::Spm => spm_len(text, true),
    }
}

/// Writes the ids of `text` to `ids` and says how many they are.
///
/// Ill-formed UTF-8: BPE reads every bad byte as U+FFFD, SPM has tokens for bytes.
///
/// # Errors
/// [`Code::BufferTooSmall`] for `scratch` (with the slots that the piece at hand needs) or for `ids` (with the number of
/// all ids; what fits was written). [`Code::MissingKey`] when an SPM vocabulary has neither the byte nor an unknown token
/// for a character.
pub fn encode(
    vocabulary: &Vocabulary<'_>,
    text: &[u8],
    options: Options,
    scratch: &mut [Slot],
    ids: &mut [u32],
) -> Result<usize> {
    let mut ids = Ids { out: ids, len: 0 };
    if options.add_special {
        ids.extend(vocabulary.prefix());
    }
    let (mut from, mut after_special) = (0usize, true);
    loop {
        let cut = vocabulary.next_cut(text, from, options.parse_special);
        let fragment = text.get(from..cut.map_or(text.len(), |cut| cut.at)).unwrap_or_default();
        if !fragment.is_empty() {
            match vocabulary.model {
                Model::Bpe(pre) => bpe(vocabulary, pre, fragment, scratch, &mut ids)?,
                Model::Spm => {
                    let prefix = vocabulary.add_space_prefix && after_special;
                    spm(vocabulary, fragment, prefix, scratch, &mut ids)?;
                }
            }
        }
        let Some(cut) = cut else { break };
        ids.extend(Some(cut.id));
        (from, after_special) = (cut.at.saturating_add(cut.len), true);
    }
    if options.add_special {
        ids.extend(vocabulary.suffix());
    }
    let Ids { out, len } = ids;
    if len <= out.len() { Ok(len) } else { Err(Error::buffer_too_small(len, out.len())) }
}

/// The caller's ids; goes on counting where they end.
struct Ids<'o> {
    out: &'o mut [u32],
    len: usize,
}

impl Ids<'_> {
    fn extend(&mut self, ids: impl IntoIterator<Item = u32>) {
        for id in ids {
            if let Some(slot) = self.out.get_mut(self.len) {
                *slot = id;
            }
            self.len = self.len.saturating_add(1);
        }
    }
}

/// Fills the front of the scratch, one slot for each byte.
fn fill(scratch: &mut [Slot], len: usize, text: impl Iterator<Item = u8>) -> Result<&mut [Slot]> {
    let have = scratch.len();
    let slots = scratch.get_mut(..len).ok_or(Error::buffer_too_small(len, have))?;
    for (slot, byte) in slots.iter_mut().zip(text) {
        *slot = Slot::new(byte);
    }
    Ok(slots)
}

/// A piece as the vocabulary writes it.
fn utf8(piece: &[Slot]) -> impl Iterator<Item = u8> + Clone {
    alphabet::utf8(bytes(piece))
}

/// The bytes of `text` with ill-formed ones replaced.
fn well_formed(text: &[u8]) -> impl Iterator<Item = u8> {
    chars(text).flat_map(|(c, bytes)| {
        let bad = c == char::REPLACEMENT_CHARACTER && bytes.len() == 1;
        (if bad { REPLACEMENT } else { bytes }).iter().copied()
    })
}

fn bpe_len(text: &[u8]) -> usize {
    well_formed(text).count()
}

fn bpe(vocabulary: &Vocabulary<'_>, pre: Pre, fragment: &[u8], scratch: &mut [Slot], ids: &mut Ids<'_>) -> Result<()> {
    pre.split(fragment, &mut |word| {
        let slots = fill(scratch, bpe_len(word), well_formed(word))?;
        merge::split(slots, |_| 1);
        merge::merge(slots, |left, right| vocabulary.find_merge(utf8(left), utf8(right)).unwrap_or(NO_JOIN));
        for piece in pieces(slots) {
            match vocabulary.find_bytes(utf8(piece)) {
                Some(id) => ids.extend([id]),
                // A text that only merges mention (a pruned vocabulary) is spelled; a byte without a token is left out, as
                // llama.cpp does: such a vocabulary has no way to say it.
                None => ids.extend(piece.chunks(1).filter_map(|byte| vocabulary.find_bytes(utf8(byte)))),
            }
        }
        Ok(())
    })
}

fn spm_len(fragment: &[u8], prefix: bool) -> usize {
    escaped(fragment, prefix).count()
}

/// Spaces are written as U+2581 before the text is split into characters. A broken character just before a space thus
/// takes bytes of it, as in llama.cpp.
fn escaped(fragment: &[u8], prefix: bool) -> impl Iterator<Item = u8> {
    let prefix = if prefix { SPACE } else { &[] };
    let text = fragment.iter().flat_map(|byte| if *byte == b' ' { SPACE } else { core::slice::from_ref(byte) });
    prefix.iter().chain(text).copied()
}

fn spm(
    vocabulary: &Vocabulary<'_>,
    fragment: &[u8],
    prefix: bool,
    scratch: &mut [Slot],
    ids: &mut Ids<'_>,
) -> Result<()> {
    let slots = fill(scratch, spm_len(fragment, prefix), escaped(fragment, prefix))?;
    // Characters by their first byte, whether they are well-formed or not.
    merge::split(slots, |rest| match rest.first().map_or(0, Slot::byte) {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xff => 4,
        _ => 1,
    });
    merge::merge(slots, |left, right| {
        let joined = vocabulary.find_bytes(bytes(left).chain(bytes(right)));
        joined.map_or(NO_JOIN, |id| score_key(vocabulary.score(id)))
    });
    for piece in pieces(slots) {
        match vocabulary.find_bytes(bytes(piece)) {
            Some(id) => ids.extend([id]),
            None => {
                for byte in bytes(piece) {
                    ids.extend([byte_token(vocabulary, byte)?]);
                }
            }
        }
    }
    Ok(())
}

/// A number that is the lower, the higher the score; never [`NO_JOIN`] for a score that is a number.
fn score_key(score: f32) -> u32 {
    let bits = score.to_bits();
    // IEEE 754: positive numbers order as their bits, negative ones the other way round.
    if bits >> 31 == 0 { !(bits | 0x8000_0000) } else { bits }
}

/// The token of a byte that the vocabulary does not spell: `<0xNN>`, else the byte as a text, else the unknown token.
fn byte_token(vocabulary: &Vocabulary<'_>, byte: u8) -> Result<u32> {
    let digit = |nibble: u8| if nibble < 10 { nibble | b'0' } else { nibble.wrapping_add(b'A' - 10) };
    let name = [b'<', b'0', b'x', digit(byte >> 4), digit(byte & 0x0f), b'>'];
    let id = vocabulary.find(&name).or_else(|| vocabulary.find(&[byte])).or(vocabulary.unknown);
    let missing = Error::new(Code::MissingKey, Place::Section(Section::Metadata));
    id.ok_or(missing.values(0, u64::from(Parameter::TokenizerUnknown.number())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_scores_have_lower_keys() {
        let scores = [f32::INFINITY, 3.5, 1.0, f32::MIN_POSITIVE, 0.0, -1e-40, -1.0, -1e9, f32::NEG_INFINITY];
        assert!(scores.map(score_key).is_sorted_by(|a, b| a < b));
        assert!(score_key(f32::NEG_INFINITY) < NO_JOIN);
    }
}
