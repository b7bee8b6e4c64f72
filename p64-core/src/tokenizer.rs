//! The Q42T tokenizer section, read in place (spec §10, `docs/spec/q42t.md`).
//!
//! ```text
//! "Q42T"   version u16   flags u16   BOS u32   EOS u32   add_bos u8   0 0 0
//! pre-tokenizer           u32 length, UTF-8
//! vocabulary              u32 count, then per token   u32 length, UTF-8
//! merges                  u32 count, then per pair    left, right: u32 length, UTF-8 each
//! version 2 only          stop_count u8, 0 0 0, eight u32 stop ids
//! padding                 zero bytes up to the checksum table
//! ```
//!
//! Every string is checked once; afterwards the iterators cannot fail. Look-up by id walks the section.
//!
//! Text becomes ids and ids become bytes by a [`Vocabulary`], which reads the metadata's keys: the section holds neither
//! types nor scores. [`encode`] and [`decode`] work on it without allocation, for the two tokenizers that small models
//! have; what they would not do exactly they refuse.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::as_conversions, clippy::unwrap_used)
)]

pub mod alphabet;
pub mod decode;
pub mod encode;
mod lookup;
mod merge;
mod pre;
mod special;
pub mod unicode;
mod utf8;
mod vocabulary;
pub mod well_known;

pub use vocabulary::{TokenType, Vocabulary};

use crate::bytes::Cursor;
use crate::error::{Code, Error, Place, Result, Section};
use crate::layout::SECTION_ALIGN;
use crate::limits::{MAX_MERGES, MAX_VOCABULARY};
use crate::num;
use crate::validate::{Policy, Report};

/// The first four bytes of the section.
pub const MAGIC: [u8; 4] = *b"Q42T";
/// The version our writer emits.
pub const VERSION: u16 = 1;
/// The version with stop ids, which is read too.
pub const VERSION_2: u16 = 2;
/// BOS or EOS of a vocabulary that has none.
pub const NO_TOKEN: u32 = u32::MAX;
/// Stop ids a version 2 trailer holds.
pub const MAX_STOPS: usize = 8;

/// A Q42T section whose every string has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Tokenizer<'a> {
    version: u16,
    bos: u32,
    eos: u32,
    add_bos: bool,
    pre: &'a str,
    token_count: u32,
    tokens: &'a [u8],
    merge_count: u32,
    merges: &'a [u8],
    stops: [u32; MAX_STOPS],
    stop_count: usize,
}

const PLACE: Place = Place::Section(Section::Tokenizer);

impl<'a> Tokenizer<'a> {
    /// Reads a section on its own, under the strict policy. `bytes` is the whole section with its zero padding.
    ///
    /// # Errors
    /// The `Tokenizer*` codes, with the offset in `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        Self::check(bytes, 0, &mut Report::new(Policy::Strict, &mut |_| ()))
    }

    pub(crate) fn check(bytes: &'a [u8], offset: u64, report: &mut Report<'_>) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, offset, Code::TokenizerTruncated, PLACE);
        let at = cursor;
        let magic = cursor.u32()?;
        if magic != u32::from_le_bytes(MAGIC) {
            let [expected, found] = [u32::from_be_bytes(MAGIC), magic.swap_bytes()].map(u64::from);
            return Err(at.error(Code::TokenizerMagic).values(expected, found));
        }
        let at = cursor;
        let version = cursor.u16()?;
        if ![VERSION, VERSION_2].contains(&version) {
            return Err(at.error(Code::TokenizerVersion).values(u64::from(VERSION_2), u64::from(version)));
        }
        let at = cursor;
        let flags = cursor.u16()?;
        if flags != 0 {
            let checked = report.deviation(at.error(Code::TokenizerFlags).values(0, u64::from(flags)));
            report.outcome(checked)?;
        }
        let (special_at, bos, eos) = (cursor, cursor.u32()?, cursor.u32()?);
        let add_bos = cursor.u8()? != 0;
        zeros(&mut cursor, 3)?;

        let pre = read_str(&mut cursor)?;
        let token_count = read_count(&mut cursor, MAX_VOCABULARY, Code::TokenizerVocabulary, 4)?;
        for id in [bos, eos].into_iter().filter(|&id| id != NO_TOKEN) {
            check_id(id, token_count, &special_at)?;
        }
        let tokens = cursor.rest();
        if !pass_strs(&mut cursor, token_count) {
            for id in 0..token_count {
                cursor.set_place(Place::Token(id));
                read_str(&mut cursor)?;
            }
        }
        let tokens = consumed(tokens, &cursor);
        cursor.set_place(PLACE);
        let merge_count = read_count(&mut cursor, MAX_MERGES, Code::TokenizerMerges, 8)?;
        let merges = cursor.rest();
        // Two strings each, and at most 5,000,000 of them.
        if !pass_strs(&mut cursor, merge_count.saturating_mul(2)) {
            for merge in 0..merge_count {
                cursor.set_place(Place::Merge(merge));
                read_str(&mut cursor)?;
                read_str(&mut cursor)?;
            }
        }
        let merges = consumed(merges, &cursor);
        cursor.set_place(PLACE);

        let mut stops = [0; MAX_STOPS];
        let mut stop_count = 0;
        if version == VERSION_2 {
            let at = cursor;
            stop_count = usize::from(cursor.u8()?);
            if stop_count > MAX_STOPS {
                let error = at.error(Code::TokenizerStops);
                return Err(error.values(num::wide(MAX_STOPS), num::wide(stop_count)));
            }
            zeros(&mut cursor, 3)?;
            for (slot, index) in stops.iter_mut().zip(0usize..) {
                let at = cursor;
                *slot = cursor.u32()?;
                if index < stop_count {
                    check_id(*slot, token_count, &at)?;
                }
            }
        }
        let padding = num::wide(cursor.rest().len());
        if padding >= SECTION_ALIGN {
            let checked = report.deviation(cursor.error(Code::TokenizerLength).values(SECTION_ALIGN, padding));
            report.outcome(checked)?;
        }
        zeros(&mut cursor, padding)?;
        Ok(Self { version, bos, eos, add_bos, pre, token_count, tokens, merge_count, merges, stops, stop_count })
    }

    /// Section version, 1 or 2.
    #[must_use]
    pub const fn version(&self) -> u16 {
        self.version
    }

    /// Beginning-of-sequence token, when the vocabulary has one.
    #[must_use]
    pub fn bos(&self) -> Option<u32> {
        Some(self.bos).filter(|&id| id != NO_TOKEN)
    }

    /// End-of-sequence token, when the vocabulary has one.
    #[must_use]
    pub fn eos(&self) -> Option<u32> {
        Some(self.eos).filter(|&id| id != NO_TOKEN)
    }

    /// Whether a prompt begins with BOS.
    #[must_use]
    pub const fn add_bos(&self) -> bool {
        self.add_bos
    }

    /// Name of the pre-tokenizer, empty when the source names none.
    #[must_use]
    pub const fn pre(&self) -> &'a str {
        self.pre
    }

    /// Vocabulary entries.
    #[must_use]
    pub const fn token_count(&self) -> u32 {
        self.token_count
    }

    /// The vocabulary in id order.
    pub fn tokens(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        strs(self.tokens)
    }

    /// The vocabulary as it stands in the file: per token a `u32` length and UTF-8.
    #[must_use]
    pub const fn token_bytes(&self) -> &'a [u8] {
        self.tokens
    }

    /// The merge pairs as they stand in the file: left and right, each as in [`Tokenizer::token_bytes`].
    #[must_use]
    pub const fn merge_bytes(&self) -> &'a [u8] {
        self.merges
    }

    /// Merge pairs.
    #[must_use]
    pub const fn merge_count(&self) -> u32 {
        self.merge_count
    }

    /// The merge pairs, most important first.
    pub fn merges(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut parts = strs(self.merges);
        core::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// Ids that end a generation besides EOS (version 2).
    #[must_use]
    pub fn stops(&self) -> &[u32] {
        self.stops.get(..self.stop_count).unwrap_or_default()
    }
}

fn strs<'a>(mut rest: &'a [u8]) -> impl Iterator<Item = &'a str> + use<'a> {
    core::iter::from_fn(move || {
        let (len, tail) = rest.split_first_chunk()?;
        let (text, tail) = tail.split_at_checked(num::index(u32::from_le_bytes(*len)))?;
        rest = tail;
        core::str::from_utf8(text).ok()
    })
}

fn consumed<'a>(before: &'a [u8], cursor: &Cursor<'a>) -> &'a [u8] {
    before.get(..before.len().saturating_sub(cursor.rest().len())).unwrap_or_default()
}

fn read_str<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str> {
    let len = cursor.u32()?;
    let at = *cursor;
    let bytes = cursor.take(u64::from(len))?;
    core::str::from_utf8(bytes).map_err(|_| at.error(Code::TokenizerNotUtf8).values(0, u64::from(len)))
}

/// Moves past `count` strings that are all there and all UTF-8; where one is not, nothing moves, and [`read_str`] says which.
///
/// The strings are checked together with the lengths between them. A length whose bytes are all below 0x80 is ASCII, so
/// that no character reaches across it: the whole is UTF-8 just when each string is. Other lengths, of 128 bytes and more,
/// divide the section into stretches.
fn pass_strs(cursor: &mut Cursor<'_>, count: u32) -> bool {
    const NOT_ASCII: u32 = 0x8080_8080;
    let all = cursor.rest();
    let (mut rest, mut stretch) = (all, all);
    for _ in 0..count {
        let Some((len, after)) = rest.split_first_chunk() else { return false };
        let len = u32::from_le_bytes(*len);
        if len & NOT_ASCII != 0 {
            if !utf8::is_utf8(before(stretch, rest)) {
                return false;
            }
            stretch = after;
        }
        let Some((_, after)) = after.split_at_checked(num::index(len)) else { return false };
        rest = after;
    }
    utf8::is_utf8(before(stretch, rest)) && cursor.take(num::wide(before(all, rest).len())).is_ok()
}

/// The bytes of `whole` before `rest`, its end.
fn before<'b>(whole: &'b [u8], rest: &[u8]) -> &'b [u8] {
    whole.get(..whole.len().saturating_sub(rest.len())).unwrap_or_default()
}

/// A count of items of at least `least` bytes each, checked against `limit` and against what is left of the section.
fn read_count(cursor: &mut Cursor<'_>, limit: u32, code: Code, least: u64) -> Result<u32> {
    let at = *cursor;
    let count = cursor.u32()?;
    if count > limit {
        return Err(at.error(code).values(u64::from(limit), u64::from(count)));
    }
    let (need, have) = (u64::from(count).saturating_mul(least), num::wide(cursor.rest().len()));
    if need > have {
        return Err(cursor.error(Code::TokenizerTruncated).values(need, have));
    }
    Ok(count)
}

fn check_id(id: u32, token_count: u32, at: &Cursor<'_>) -> Result<()> {
    if id < token_count {
        return Ok(());
    }
    Err(at.error(Code::TokenizerSpecialId).values(u64::from(token_count), u64::from(id)))
}

fn zeros(cursor: &mut Cursor<'_>, len: u64) -> Result<()> {
    let at = cursor.offset();
    let bytes = cursor.take(len)?;
    match bytes.iter().zip(at..).find(|(byte, _)| **byte != 0) {
        Some((byte, at)) => Err(Error::new(Code::TokenizerPadding, PLACE).at(at).values(0, u64::from(*byte))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn string(out: &mut Vec<u8>, text: &[u8]) {
        out.extend(u32::try_from(text.len()).expect("short").to_le_bytes());
        out.extend(text);
    }

    /// Three tokens, one merge; without padding.
    fn section(version: u16) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(version.to_le_bytes());
        out.extend([0, 0]);
        out.extend(1u32.to_le_bytes());
        out.extend(2u32.to_le_bytes());
        out.extend([1, 0, 0, 0]);
        string(&mut out, b"gpt-2");
        out.extend(3u32.to_le_bytes());
        for token in ["a", "<s>", "</s>"] {
            string(&mut out, token.as_bytes());
        }
        out.extend(1u32.to_le_bytes());
        string(&mut out, "\u{120}t".as_bytes());
        string(&mut out, b"he");
        if version == VERSION_2 {
            out.extend([2, 0, 0, 0]);
            for id in [2u32, 0, 0, 0, 0, 0, 0, 0] {
                out.extend(id.to_le_bytes());
            }
        }
        out
    }

    #[test]
    fn reads_both_versions() {
        for version in [VERSION, VERSION_2] {
            let mut bytes = section(version);
            bytes.resize(bytes.len().next_multiple_of(64), 0);
            let tokenizer = Tokenizer::parse(&bytes).expect("well-formed");
            assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.add_bos()), (Some(1), Some(2), true));
            assert_eq!(tokenizer.pre(), "gpt-2");
            assert_eq!(tokenizer.tokens().collect::<Vec<_>>(), ["a", "<s>", "</s>"]);
            assert_eq!(tokenizer.merges().collect::<Vec<_>>(), [("\u{120}t", "he")]);
            assert_eq!(tokenizer.stops(), if version == VERSION_2 { &[2, 0][..] } else { &[] });
        }
    }

    /// Lengths that are ASCII (256) and not (130, 33,000), with characters that end at them; each byte of them broken.
    #[test]
    fn long_tokens_are_checked_too() {
        let longs = [65, 128, 16_500].map(|count| "\u{e9}".repeat(count));
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0, 0, 0]);
        bytes.extend([0xff; 8]);
        bytes.extend([0; 8]);
        bytes.extend(7u32.to_le_bytes());
        for token in ["a", &longs[0], "", &longs[1], &longs[2], "\u{20ac}", "b"] {
            string(&mut bytes, token.as_bytes());
        }
        bytes.extend([0; 4]);
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        let tokenizer = Tokenizer::parse(&bytes).expect("well-formed");
        assert_eq!(tokenizer.tokens().map(str::len).collect::<Vec<_>>(), [1, 130, 0, 256, 33_000, 3, 1]);
        let places: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] == 0xc3 || bytes[at] == 0xe2).collect();
        for at in places.into_iter().step_by(97) {
            let (mut broken, was) = (bytes.clone(), bytes[at]);
            broken[at] = b'x';
            let error = Tokenizer::parse(&broken).expect_err("a lone continuation byte");
            assert_eq!(error.code, Code::TokenizerNotUtf8, "{at}: {was:x}");
        }
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = section(VERSION_2);
        for len in 0..bytes.len() {
            assert!(Tokenizer::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn refuses_what_is_malformed() {
        let changed = |at: usize, byte: u8| {
            let mut bytes = section(VERSION);
            bytes[at] = byte;
            bytes
        };
        let cases = [
            (changed(0, b'q'), Code::TokenizerMagic),
            (changed(4, 3), Code::TokenizerVersion),
            (changed(6, 1), Code::TokenizerFlags),
            (changed(8, 3), Code::TokenizerSpecialId),
            (changed(12, 9), Code::TokenizerSpecialId),
            (changed(17, 1), Code::TokenizerPadding),
            (changed(24, 0xff), Code::TokenizerNotUtf8),
            (changed(31, 0x7f), Code::TokenizerVocabulary),
            ([section(VERSION), std::vec![7]].concat(), Code::TokenizerPadding),
            ([section(VERSION), std::vec![0; 64]].concat(), Code::TokenizerLength),
        ];
        for (bytes, code) in cases {
            assert_eq!(Tokenizer::parse(&bytes).expect_err("malformed").code, code);
        }
    }

    #[test]
    fn absent_special_tokens() {
        let mut bytes = section(VERSION);
        bytes[8..16].fill(0xff);
        let tokenizer = Tokenizer::parse(&bytes).expect("well-formed");
        assert_eq!((tokenizer.bos(), tokenizer.eos()), (None, None));
    }
}
