//! Spec §8, §14.11: the string table and the names in it.
#![forbid(unsafe_code)]

use super::policy::{Checked, Report};
use super::sections::Sections;
use super::{MAX_UNINDEXED, NameSlot};
use crate::error::{Code, Error, Place, Section};
use crate::hash::fnv1a64;
use crate::layout::tensor::RawTensorEntry;
use crate::limits::MAX_STRING;
use crate::num;

/// Checks every name and fills the index, which is returned sorted; without one, looks for duplicates in passes.
pub(super) fn check<'a>(
    entries: &[RawTensorEntry],
    strings: &[u8],
    sections: &Sections,
    slots: &'a mut [NameSlot],
    report: &mut Report<'_>,
) -> Checked<&'a [NameSlot]> {
    let start = sections.strings.start();
    check_head(strings.first().copied(), start, report)?;
    let end = check_each(entries, strings, start, report)?;
    let tail = strings.get(end..).unwrap_or_default();
    if let Some((at, byte)) = super::first_nonzero(tail, start.saturating_add(num::wide(end))) {
        report.deviation(nonzero_tail((at, byte)))?;
    }

    let count = num::count(entries.len());
    if slots.is_empty() {
        if count > MAX_UNINDEXED {
            return Err(report.refuse(Error::new(Code::TooManyTensors, Place::File).values(0, u64::from(count))));
        }
        find_duplicates_in_passes(entries, strings, report)?;
        return Ok(&[]);
    }
    let have = num::wide(slots.len());
    let Some(slots) = slots.get_mut(..entries.len()) else {
        return Err(report.refuse(Error::new(Code::TooManyTensors, Place::File).values(have, u64::from(count))));
    };
    for (slot, (index, entry)) in slots.iter_mut().zip((0u32..).zip(entries)) {
        *slot = NameSlot { hash: name_hash(name_at(entry, strings)), index };
    }
    let name = |slot: &NameSlot| entries.get(num::index(slot.index)).map_or("", |entry| name_at(entry, strings));
    // Names stand in the key too, so that crafted collisions of the hash cost no more than sorting by name.
    slots.sort_unstable_by(|a, b| {
        a.hash.cmp(&b.hash).then_with(|| name(a).cmp(name(b))).then_with(|| a.index.cmp(&b.index))
    });
    for pair in slots.windows(2) {
        if let [first, second] = pair
            && first.hash == second.hash
            && name(first) == name(second)
        {
            report.deviation(duplicate(first.index, second.index))?;
        }
    }
    Ok(slots)
}

/// Terminated, UTF-8, of sane length, in the order of the entries, together hardly longer than the table. Answers with
/// the end of the last name.
fn check_each(entries: &[RawTensorEntry], strings: &[u8], start: u64, report: &mut Report<'_>) -> Checked<usize> {
    let mut names = Names::new(start, num::wide(strings.len()));
    for (index, entry) in (0u32..).zip(entries) {
        let offset = entry.name_offset.get();
        let rest = strings.get(num::index(offset)..).unwrap_or_default();
        // Bounded, so that a table of one long string cannot be scanned once per entry.
        let window = rest.get(..=num::index(MAX_STRING)).unwrap_or(rest);
        let len = window.iter().position(|&byte| byte == 0);
        let utf8 = len.is_none_or(|len| core::str::from_utf8(rest.get(..len).unwrap_or_default()).is_ok());
        names.accept(index, offset, len.map(num::count), utf8, report)?;
    }
    Ok(usize::try_from(names.end()).unwrap_or(usize::MAX))
}

/// The names seen so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    /// File offset of the string table.
    start: u64,
    size: u64,
    /// Names that share bytes could sum to far more than the table: each entry would cost a scan of its own.
    budget: u64,
    /// Where the next name begins when they follow each other.
    expected: u64,
    in_order: bool,
}

impl Names {
    /// None yet, of a string table of `size` bytes at file offset `start`.
    pub(crate) fn new(start: u64, size: u64) -> Self {
        Self { start, size, budget: size.saturating_add(u64::from(MAX_STRING)), expected: 1, in_order: true }
    }

    /// Checks the next entry's name: `len` bytes before its NUL, `None` when none stands among the first 65,536 bytes or
    /// before the table's end.
    #[inline(never)]
    pub(crate) fn accept(
        &mut self,
        index: u32,
        offset: u32,
        len: Option<u32>,
        utf8: bool,
        report: &mut Report<'_>,
    ) -> Checked<()> {
        let (limit, offset) = (u64::from(MAX_STRING), u64::from(offset));
        let error = |code| Error::new(code, Place::Tensor(index)).at(self.start.saturating_add(offset));
        let left = self.size.saturating_sub(offset);
        if left == 0 {
            return Err(report.refuse(Error::new(Code::NameOffset, Place::Tensor(index)).values(self.size, offset)));
        }
        let Some(len) = len.map(u64::from) else {
            return Err(report.refuse(if left <= limit.saturating_add(1) {
                error(Code::NameUnterminated).values(0, offset)
            } else {
                error(Code::NameTooLong).values(limit, limit.saturating_add(1))
            }));
        };
        if !utf8 {
            return Err(report.refuse(error(Code::NameNotUtf8).values(0, offset)));
        }
        if len == 0 {
            report.deviation(error(Code::NameEmpty))?;
        }
        let out_of_order = error(Code::NameOrder).values(self.expected, offset);
        if offset != self.expected && self.in_order {
            report.deviation(out_of_order)?;
            self.in_order = false;
        }
        let Some(budget) = self.budget.checked_sub(len) else { return Err(report.refuse(out_of_order)) };
        self.budget = budget;
        self.expected = offset.saturating_add(len).saturating_add(1);
        Ok(())
    }

    /// Where the last name ends, relative to the table. Names in another order leave no single end; what lies behind the
    /// last one is then not judged.
    pub(crate) const fn end(&self) -> u64 {
        if self.in_order && self.expected < self.size { self.expected } else { self.size }
    }
}

const PLACE: Place = Place::Section(Section::Strings);

/// The table begins with a NUL, so that a name offset of zero is an empty name.
pub(crate) fn check_head(first: Option<u8>, start: u64, report: &mut Report<'_>) -> Checked<()> {
    if first == Some(0) {
        return Ok(());
    }
    report.deviation(Error::new(Code::StringsHead, PLACE).at(start).values(0, first.map_or(0, u64::from)))
}

pub(crate) fn nonzero_tail((at, byte): (u64, u64)) -> Error {
    Error::new(Code::StringsTail, PLACE).at(at).values(0, byte)
}

pub(crate) fn duplicate(first: u32, second: u32) -> Error {
    Error::new(Code::NameDuplicate, Place::Tensor(second)).values(u64::from(first), 0)
}

/// Names whose hashes are kept at once where there is no index.
pub(crate) const WINDOW: usize = 32;

/// Looks for duplicates without memory: a window of hashes on the stack, one pass over the later names per window.
fn find_duplicates_in_passes(entries: &[RawTensorEntry], strings: &[u8], report: &mut Report<'_>) -> Checked<()> {
    for (chunk, base) in entries.chunks(WINDOW).zip((0u32..).step_by(WINDOW)) {
        let mut hashes = [0u32; WINDOW];
        for (hash, entry) in hashes.iter_mut().zip(chunk) {
            *hash = name_hash(name_at(entry, strings));
        }
        for (index, entry) in (base..).zip(entries.iter().skip(num::index(base))) {
            let name = name_at(entry, strings);
            let hash = name_hash(name);
            let earlier = (base..index).zip(hashes.iter().zip(chunk));
            for (first, (_, other)) in earlier.filter(|(_, (other, _))| **other == hash) {
                if is_name(other, strings, name) {
                    report.deviation(duplicate(first, index))?;
                }
            }
        }
    }
    Ok(())
}

/// Whether an entry has this name, without looking for the end of another.
fn is_name(entry: &RawTensorEntry, strings: &[u8], name: &str) -> bool {
    let rest = strings.get(num::index(entry.name_offset.get())..).unwrap_or_default();
    rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
}

/// The name of an entry; empty when it was not validated.
pub(crate) fn name_at<'a>(entry: &RawTensorEntry, strings: &'a [u8]) -> &'a str {
    let rest = strings.get(num::index(entry.name_offset.get())..).unwrap_or_default();
    let name = rest.split(|&byte| byte == 0).next().unwrap_or_default();
    core::str::from_utf8(name).unwrap_or_default()
}

/// The index's hash: FNV-1a folded to 32 bits.
pub(crate) fn name_hash(name: &str) -> u32 {
    fold_hash(fnv1a64(name.as_bytes()))
}

pub(crate) fn fold_hash(hash: u64) -> u32 {
    let folded = (hash >> 32) ^ (hash & u64::from(u32::MAX));
    u32::try_from(folded).unwrap_or(0)
}
