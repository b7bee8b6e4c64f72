//! Spec §8, §14.11: the string table and the names in it.
#![forbid(unsafe_code)]

use super::policy::Report;
use super::sections::Sections;
use super::{MAX_UNINDEXED, NameSlot};
use crate::error::{Code, Error, Place, Result, Section};
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
) -> Result<&'a [NameSlot]> {
    let place = Place::Section(Section::Strings);
    let start = sections.strings.start();
    match strings.first() {
        Some(0) => {}
        first => {
            let found = first.copied().map_or(0, u64::from);
            report.deviation(Error::new(Code::StringsHead, place).at(start).values(0, found))?;
        }
    }
    let end = check_each(entries, strings, start, report)?;
    let tail = strings.get(end..).unwrap_or_default();
    if let Some((at, byte)) = super::first_nonzero(tail, start.saturating_add(num::wide(end))) {
        report.deviation(Error::new(Code::StringsTail, place).at(at).values(0, byte))?;
    }

    let count = num::count(entries.len());
    if slots.is_empty() {
        if count > MAX_UNINDEXED {
            return Err(Error::new(Code::TooManyTensors, Place::File).values(0, u64::from(count)));
        }
        find_duplicates_in_passes(entries, strings, report)?;
        return Ok(&[]);
    }
    let have = num::wide(slots.len());
    let Some(slots) = slots.get_mut(..entries.len()) else {
        return Err(Error::new(Code::TooManyTensors, Place::File).values(have, u64::from(count)));
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
fn check_each(entries: &[RawTensorEntry], strings: &[u8], start: u64, report: &mut Report<'_>) -> Result<usize> {
    let size = num::wide(strings.len());
    // Names that share bytes could sum to far more than the table: each entry would cost a scan of its own.
    let mut budget = strings.len().saturating_add(num::index(MAX_STRING));
    let mut expected = 1usize;
    let mut in_order = true;
    for (index, entry) in (0u32..).zip(entries) {
        let offset = num::index(entry.name_offset.get());
        let wide = num::wide(offset);
        let error = |code| Error::new(code, Place::Tensor(index)).at(start.saturating_add(wide));
        let Some(rest) = strings.get(offset..).filter(|rest| !rest.is_empty()) else {
            return Err(Error::new(Code::NameOffset, Place::Tensor(index)).values(size, wide));
        };
        // Bounded, so that a table of one long string cannot be scanned once per entry.
        let window = rest.get(..=num::index(MAX_STRING)).unwrap_or(rest);
        let Some(len) = window.iter().position(|&byte| byte == 0) else {
            return Err(if window.len() == rest.len() {
                error(Code::NameUnterminated).values(0, wide)
            } else {
                error(Code::NameTooLong).values(u64::from(MAX_STRING), num::wide(window.len()))
            });
        };
        let name = rest.get(..len).unwrap_or_default();
        if core::str::from_utf8(name).is_err() {
            return Err(error(Code::NameNotUtf8).values(0, wide));
        }
        if name.is_empty() {
            report.deviation(error(Code::NameEmpty))?;
        }
        let out_of_order = error(Code::NameOrder).values(num::wide(expected), wide);
        if offset != expected && in_order {
            in_order = false;
            report.deviation(out_of_order)?;
        }
        budget = budget.checked_sub(len).ok_or(out_of_order)?;
        expected = offset.saturating_add(len).saturating_add(1);
    }
    // Names in another order leave no single end; what lies behind the last one is then not judged.
    Ok(if in_order { expected.min(strings.len()) } else { strings.len() })
}

fn duplicate(first: u32, second: u32) -> Error {
    Error::new(Code::NameDuplicate, Place::Tensor(second)).values(u64::from(first), 0)
}

/// Looks for duplicates without memory: a window of hashes on the stack, one pass over the later names per window.
fn find_duplicates_in_passes(entries: &[RawTensorEntry], strings: &[u8], report: &mut Report<'_>) -> Result<()> {
    const WINDOW: usize = 64;
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
    let hash = fnv1a64(name.as_bytes());
    let folded = (hash >> 32) ^ (hash & u64::from(u32::MAX));
    u32::try_from(folded).unwrap_or(0)
}
