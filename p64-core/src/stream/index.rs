//! The check for duplicate names, with an index of the caller's or in passes, and the sorting of the index.
#![forbid(unsafe_code)]

use super::validator::Facts;
use super::window::Window;
use super::{ReadAt, names};
use crate::num;
use crate::validate::names::{WINDOW, duplicate};
use crate::validate::{Checked, NameSlot, Report};

/// How far the check has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Duplicates {
    /// Without an index: the hashes of the names from `base` on are kept, and each name from there on is compared.
    Passes { base: u32, index: u32, hashes: [u32; WINDOW] },
    /// With a sorted index: slot `at` is compared with the slot `back` before it.
    Index { at: u32, back: u32 },
}

impl Duplicates {
    /// Nothing compared yet.
    pub(super) const PASSES: Self = Self::Passes { base: 0, index: 0, hashes: [0; WINDOW] };
    /// Nothing compared yet.
    pub(super) const INDEX: Self = Self::Index { at: 1, back: 1 };

    /// Compares the next name; `true` when all have been.
    #[inline(never)]
    pub(super) fn step<R: ReadAt>(
        &mut self,
        facts: &Facts,
        slots: &[NameSlot],
        window: &mut Window<'_, R>,
        report: &mut Report<'_>,
    ) -> Checked<bool> {
        let tensors = facts.header.tensor_count.get();
        let end = facts.sections.strings.end();
        match self {
            Self::Passes { base, .. } if *base >= tensors => return Ok(true),
            Self::Passes { base, index, .. } if *index >= tensors => {
                *base = base.saturating_add(num::count(WINDOW));
                *index = *base;
            }
            Self::Passes { base, index, hashes } => {
                let at = facts.name_at(window, *index)?;
                let hash = names::walk(window, at, end)?.hash;
                for (first, other) in (*base..*index).zip(hashes.iter()) {
                    if *other == hash {
                        let first_at = facts.name_at(window, first)?;
                        if names::equal(window, first_at, at, end)? {
                            report.deviation(duplicate(first, *index))?;
                        }
                    }
                }
                if let Some(slot) = hashes.get_mut(num::index(index.saturating_sub(*base))) {
                    *slot = hash;
                }
                *index = index.saturating_add(1);
            }
            Self::Index { at, .. } if *at >= tensors => return Ok(true),
            Self::Index { at, back } => {
                let slot = |at: u32| slots.get(num::index(at)).copied();
                let pair = slot(*at).zip(at.checked_sub(*back).and_then(slot));
                if let Some((own, other)) = pair.filter(|(own, other)| own.hash == other.hash) {
                    let [a, b] = [facts.name_at(window, other.index)?, facts.name_at(window, own.index)?];
                    if !names::equal(window, a, b, end)? {
                        *back = back.saturating_add(1);
                        return Ok(false);
                    }
                    report.deviation(duplicate(other.index, own.index))?;
                }
                *at = at.saturating_add(1);
                *back = 1;
            }
        }
        Ok(false)
    }
}

/// Sorts by hash, then by place in the table: heapsort, because it needs neither memory nor recursion nor luck.
pub(super) fn sort(slots: &mut [NameSlot]) {
    let len = slots.len();
    for root in (0..len.div_euclid(2)).rev() {
        sift_down(slots, root);
    }
    for end in (1..len).rev() {
        swap(slots, 0, end);
        sift_down(slots.get_mut(..end).unwrap_or_default(), 0);
    }
}

fn key(slots: &[NameSlot], at: usize) -> Option<(u32, u32)> {
    slots.get(at).map(|slot| (slot.hash, slot.index))
}

fn swap(slots: &mut [NameSlot], a: usize, b: usize) {
    if let Ok([a, b]) = slots.get_disjoint_mut([a, b]) {
        core::mem::swap(a, b);
    }
}

/// Lets the slot at `root` sink below all that are larger.
fn sift_down(slots: &mut [NameSlot], root: usize) {
    let mut root = root;
    loop {
        let left = root.saturating_mul(2).saturating_add(1);
        let right = left.saturating_add(1);
        let child = if key(slots, right) > key(slots, left) { right } else { left };
        // Past the end there is no key, which is less than any.
        if key(slots, child) <= key(slots, root) {
            return;
        }
        swap(slots, root, child);
        root = child;
    }
}

/// The first slot with that hash or a greater one.
pub(super) fn lower_bound(slots: &[NameSlot], hash: u32) -> u32 {
    num::count(slots.partition_point(|slot| slot.hash < hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn sorts_like_the_standard_library() {
        for len in 0..70u32 {
            let slot = |index: u32| NameSlot { hash: index.wrapping_mul(2_654_435_761) >> 28, index };
            let mut slots: Vec<_> = (0..len).map(slot).collect();
            sort(&mut slots);
            let found: Vec<_> = slots.iter().map(|slot| (slot.hash, slot.index)).collect();
            let mut expected: Vec<_> = (0..len).map(|index| (slot(index).hash, index)).collect();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}
