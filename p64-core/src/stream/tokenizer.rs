//! The Q42T section, a string at a time. The twin of `tokenizer.rs`.
#![forbid(unsafe_code)]

use super::ReadAt;
use super::utf8::Utf8;
use super::window::Window;
use crate::error::{Code, Error, Place, Section};
use crate::extent::Extent;
use crate::layout::SECTION_ALIGN;
use crate::limits::{MAX_MERGES, MAX_VOCABULARY};
use crate::num;
use crate::tokenizer::{MAGIC, MAX_STOPS, NO_TOKEN, VERSION, VERSION_2};
use crate::validate::{Checked, Report};

const PLACE: Place = Place::Section(Section::Tokenizer);

/// What the section says, and where its lists begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TokenizerInfo {
    pub(super) version: u16,
    pub(super) add_bos: bool,
    pub(super) bos: u32,
    pub(super) eos: u32,
    pub(super) token_count: u32,
    pub(super) merge_count: u32,
    /// File offsets of the length field of the first string of each list.
    pub(super) pre: u64,
    pub(super) tokens: u64,
    pub(super) merges: u64,
}

impl TokenizerInfo {
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

    /// Vocabulary entries.
    #[must_use]
    pub const fn token_count(&self) -> u32 {
        self.token_count
    }

    /// Merge pairs.
    #[must_use]
    pub const fn merge_count(&self) -> u32 {
        self.merge_count
    }
}

/// How far the check has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// File offset of the next byte.
    at: u64,
    /// Where the section ends.
    end: u64,
    stage: Stage,
    info: TokenizerInfo,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Head,
    /// The length of a string is next.
    Length(Text),
    /// `left` of a string's `len` bytes are next; it began at `from`.
    Bytes {
        text: Text,
        from: u64,
        len: u32,
        left: u32,
        utf8: Utf8,
    },
    TokenCount,
    MergeCount,
    Trailer,
    Padding,
    Zeros,
    Done,
}

/// Which string.
#[derive(Clone, Copy, Debug)]
enum Text {
    Pre,
    Token(u32),
    /// A merge pair, and whether its left half has been read.
    Merge(u32, bool),
}

impl Text {
    const fn place(self) -> Place {
        match self {
            Self::Pre => PLACE,
            Self::Token(id) => Place::Token(id),
            Self::Merge(index, _) => Place::Merge(index),
        }
    }
}

impl Walk {
    /// At the beginning of a section.
    pub(super) fn new(section: Extent) -> Self {
        let info = TokenizerInfo::default();
        Self { at: section.start(), end: section.end(), stage: Stage::Head, info }
    }

    /// What the section says, once all of it has been checked.
    pub(super) const fn info(&self) -> Option<TokenizerInfo> {
        match self.stage {
            Stage::Done => Some(self.info),
            _ => None,
        }
    }

    /// Goes on where it stopped; after a failed read the next call begins the same piece again.
    #[inline(never)]
    pub(super) fn step<R: ReadAt>(&mut self, window: &mut Window<'_, R>, report: &mut Report<'_>) -> Checked<()> {
        let at = self.at;
        let next = self.next(window, report);
        match next {
            Ok(stage) => self.stage = stage,
            Err(_) => self.at = at,
        }
        next.map(|_| ())
    }

    fn next<R: ReadAt>(&mut self, window: &mut Window<'_, R>, report: &mut Report<'_>) -> Checked<Stage> {
        Ok(match self.stage {
            Stage::Head => self.head(window, report)?,
            Stage::Length(text) => {
                let len = self.u32(window, text.place(), report)?;
                self.need(u64::from(len), text.place(), report)?;
                Stage::Bytes { text, from: self.at, len, left: len, utf8: Utf8::START }
            }
            Stage::Bytes { text, from, len, left: 0, utf8 } => {
                if !utf8.is_complete() {
                    let error = Error::new(Code::TokenizerNotUtf8, text.place()).at(from);
                    return Err(report.refuse(error.values(0, u64::from(len))));
                }
                self.after(text)
            }
            Stage::Bytes { text, from, len, left, mut utf8 } => {
                let bytes = window.some(self.at, self.end)?;
                let bytes = bytes.get(..num::index(left)).unwrap_or(bytes);
                utf8.extend(bytes);
                let taken = num::count(bytes.len());
                self.at = self.at.saturating_add(u64::from(taken));
                Stage::Bytes { text, from, len, left: left.saturating_sub(taken), utf8 }
            }
            Stage::TokenCount => {
                self.info.token_count = self.count(window, MAX_VOCABULARY, Code::TokenizerVocabulary, 4, report)?;
                // The special ids stand at the front, 12 bytes before the first string.
                let special_at = self.info.pre.saturating_sub(12);
                for id in [self.info.bos, self.info.eos] {
                    if id != NO_TOKEN {
                        self.check_id(id, special_at, report)?;
                    }
                }
                self.info.tokens = self.at;
                if self.info.token_count == 0 { Stage::MergeCount } else { Stage::Length(Text::Token(0)) }
            }
            Stage::MergeCount => {
                self.info.merge_count = self.count(window, MAX_MERGES, Code::TokenizerMerges, 8, report)?;
                self.info.merges = self.at;
                if self.info.merge_count == 0 { Stage::Trailer } else { Stage::Length(Text::Merge(0, false)) }
            }
            Stage::Trailer => {
                if self.info.version == VERSION_2 {
                    self.trailer(window, report)?;
                }
                Stage::Padding
            }
            Stage::Padding => {
                let padding = self.end.saturating_sub(self.at);
                if padding >= SECTION_ALIGN {
                    let error = Error::new(Code::TokenizerLength, PLACE).at(self.at);
                    report.deviation(error.values(SECTION_ALIGN, padding))?;
                }
                Stage::Zeros
            }
            Stage::Zeros if self.at < self.end => {
                let (next, found) = window.first_nonzero(self.at, self.end)?;
                if let Some(found) = found {
                    return Err(report.refuse(nonzero(found)));
                }
                self.at = next;
                Stage::Zeros
            }
            Stage::Zeros | Stage::Done => Stage::Done,
        })
    }

    /// Magic, version, flags, special ids: the fields before the first string.
    fn head<R: ReadAt>(&mut self, window: &mut Window<'_, R>, report: &mut Report<'_>) -> Checked<Stage> {
        let error = |at, code, expected, found| Error::new(code, PLACE).at(at).values(expected, found);
        let at = self.at;
        let magic = self.u32(window, PLACE, report)?;
        if magic != u32::from_le_bytes(MAGIC) {
            let [expected, found] = [u32::from_be_bytes(MAGIC), magic.swap_bytes()].map(u64::from);
            return Err(report.refuse(error(at, Code::TokenizerMagic, expected, found)));
        }
        let at = self.at;
        let version = self.u16(window, report)?;
        if ![VERSION, VERSION_2].contains(&version) {
            let (expected, found) = (u64::from(VERSION_2), u64::from(version));
            return Err(report.refuse(error(at, Code::TokenizerVersion, expected, found)));
        }
        let at = self.at;
        let flags = self.u16(window, report)?;
        if flags != 0 {
            report.deviation(error(at, Code::TokenizerFlags, 0, u64::from(flags)))?;
        }
        self.info.version = version;
        self.info.bos = self.u32(window, PLACE, report)?;
        self.info.eos = self.u32(window, PLACE, report)?;
        self.info.add_bos = self.u8_then_zeros(window, u8::MAX, report)? != 0;
        self.info.pre = self.at;
        Ok(Stage::Length(Text::Pre))
    }

    /// The stop ids of version 2.
    fn trailer<R: ReadAt>(&mut self, window: &mut Window<'_, R>, report: &mut Report<'_>) -> Checked<()> {
        let most = u8::try_from(MAX_STOPS).unwrap_or(u8::MAX);
        let count = self.u8_then_zeros(window, most, report)?;
        for index in 0..most {
            let at = self.at;
            let id = self.u32(window, PLACE, report)?;
            if index < count {
                self.check_id(id, at, report)?;
            }
        }
        Ok(())
    }

    /// What follows a string.
    fn after(&self, text: Text) -> Stage {
        match text {
            Text::Pre => Stage::TokenCount,
            Text::Token(id) => match id.saturating_add(1) {
                next if next < self.info.token_count => Stage::Length(Text::Token(next)),
                _ => Stage::MergeCount,
            },
            Text::Merge(index, false) => Stage::Length(Text::Merge(index, true)),
            Text::Merge(index, true) => match index.saturating_add(1) {
                next if next < self.info.merge_count => Stage::Length(Text::Merge(next, false)),
                _ => Stage::Trailer,
            },
        }
    }

    /// The next `len` bytes, at most 4, as a number.
    #[inline(never)]
    fn field<R: ReadAt>(
        &mut self,
        window: &mut Window<'_, R>,
        len: usize,
        place: Place,
        report: &mut Report<'_>,
    ) -> Checked<u32> {
        self.need(num::wide(len), place, report)?;
        let bytes = window.ahead(self.at, self.end, len)?;
        let value = bytes.iter().take(len).rev().fold(0u32, |value, byte| (value << 8) | u32::from(*byte));
        self.at = self.at.saturating_add(num::wide(len));
        Ok(value)
    }

    fn u32<R: ReadAt>(&mut self, window: &mut Window<'_, R>, place: Place, report: &mut Report<'_>) -> Checked<u32> {
        self.field(window, 4, place, report)
    }

    fn u16<R: ReadAt>(&mut self, window: &mut Window<'_, R>, report: &mut Report<'_>) -> Checked<u16> {
        self.field(window, 2, PLACE, report).map(|value| u16::try_from(value).unwrap_or_default())
    }

    /// A byte, at most `most` (only the number of stop ids has a bound), and the three bytes of padding behind it.
    fn u8_then_zeros<R: ReadAt>(
        &mut self,
        window: &mut Window<'_, R>,
        most: u8,
        report: &mut Report<'_>,
    ) -> Checked<u8> {
        let at = self.at;
        let byte = u8::try_from(self.field(window, 1, PLACE, report)?).unwrap_or_default();
        if byte > most {
            let error = Error::new(Code::TokenizerStops, PLACE).at(at);
            return Err(report.refuse(error.values(u64::from(most), u64::from(byte))));
        }
        let at = self.at;
        let padding = self.field(window, 3, PLACE, report)?.to_le_bytes();
        match crate::validate::first_nonzero(&padding, at) {
            Some(found) => Err(report.refuse(nonzero(found))),
            None => Ok(byte),
        }
    }

    #[inline(never)]
    fn need(&self, len: u64, place: Place, report: &mut Report<'_>) -> Checked<()> {
        let have = self.end.saturating_sub(self.at);
        if len <= have {
            return Ok(());
        }
        Err(report.refuse(Error::new(Code::TokenizerTruncated, place).at(self.at).values(len, have)))
    }

    /// A count of items of at least `least` bytes each.
    #[inline(never)]
    fn count<R: ReadAt>(
        &mut self,
        window: &mut Window<'_, R>,
        limit: u32,
        code: Code,
        least: u64,
        report: &mut Report<'_>,
    ) -> Checked<u32> {
        let at = self.at;
        let count = self.u32(window, PLACE, report)?;
        if count > limit {
            return Err(report.refuse(Error::new(code, PLACE).at(at).values(u64::from(limit), u64::from(count))));
        }
        self.need(u64::from(count).saturating_mul(least), PLACE, report)?;
        Ok(count)
    }

    #[inline(never)]
    fn check_id(&self, id: u32, at: u64, report: &mut Report<'_>) -> Checked<()> {
        if id < self.info.token_count {
            return Ok(());
        }
        let error = Error::new(Code::TokenizerSpecialId, PLACE).at(at);
        Err(report.refuse(error.values(u64::from(self.info.token_count), u64::from(id))))
    }
}

fn nonzero((at, byte): (u64, u64)) -> Error {
    Error::new(Code::TokenizerPadding, PLACE).at(at).values(0, byte)
}
