//! Joining neighbours until none joins: the core of both tokenizers, in memory that the caller gives.
//!
//! A piece is a run of slots; its first slot holds its length, the start of the piece before it, and the key of its join
//! with the piece behind it. Keys are computed once for each pair that comes up (at most three for each byte of the
//! word), the lowest is searched anew for each join: n - 1 joins of a word of n bytes scan at most n^2 / 2 pieces.

use crate::num;

/// One byte of the text that is being encoded, with what merging needs: 16 bytes, any contents.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct Slot {
    byte: u32,
    len: u32,
    prev: u32,
    key: u32,
}

/// The key of two pieces that do not join.
pub(super) const NO_JOIN: u32 = u32::MAX;
const NONE: u32 = u32::MAX;

impl Slot {
    pub(super) fn new(byte: u8) -> Self {
        Self { byte: u32::from(byte), len: 1, prev: NONE, key: NO_JOIN }
    }

    pub(super) fn byte(&self) -> u8 {
        self.byte.to_le_bytes()[0]
    }
}

/// The bytes of a piece.
pub(super) fn bytes(piece: &[Slot]) -> impl Iterator<Item = u8> + Clone {
    piece.iter().map(Slot::byte)
}

/// Makes pieces of the lengths that `len` gives for what is left, never 0.
pub(super) fn split(slots: &mut [Slot], len: impl Fn(&[Slot]) -> usize) {
    let (mut at, mut prev) = (0usize, NONE);
    while let Some(rest) = slots.get_mut(at..).filter(|rest| !rest.is_empty()) {
        let len = len(rest).clamp(1, rest.len());
        if let Some(first) = rest.first_mut() {
            (first.len, first.prev, first.key) = (num::count(len), prev, NO_JOIN);
        }
        prev = num::count(at);
        at = at.saturating_add(len);
    }
}

/// The pieces in order.
pub(super) fn pieces(mut slots: &[Slot]) -> impl Iterator<Item = &[Slot]> {
    core::iter::from_fn(move || {
        let len = num::index(slots.first()?.len).clamp(1, slots.len());
        let (piece, rest) = slots.split_at_checked(len)?;
        slots = rest;
        Some(piece)
    })
}

/// Joins the two neighbours with the lowest key, of equal keys the leftmost, until no pair has one.
pub(super) fn merge(slots: &mut [Slot], key: impl Fn(&[Slot], &[Slot]) -> u32) {
    let mut at = 0;
    while at < slots.len() {
        update(slots, at, &key);
        at = end(slots, at);
    }
    while let Some(left) = lowest(slots) {
        let (right, prev) = (end(slots, left), slots.get(left).map_or(NONE, |slot| slot.prev));
        let behind = end(slots, right);
        if let Some(next) = slots.get_mut(behind) {
            next.prev = num::count(left);
        }
        if let Some(slot) = slots.get_mut(left) {
            slot.len = num::count(behind.saturating_sub(left));
        }
        update(slots, num::index(prev), &key);
        update(slots, left, &key);
    }
}

/// Where the piece that begins at `at` ends; always past `at`.
fn end(slots: &[Slot], at: usize) -> usize {
    let len = slots.get(at).map_or(1, |slot| num::index(slot.len).max(1));
    at.saturating_add(len)
}

fn update(slots: &mut [Slot], at: usize, key: &impl Fn(&[Slot], &[Slot]) -> u32) {
    let right = end(slots, at);
    let behind = end(slots, right);
    let pair = (slots.get(at..right), slots.get(right..behind));
    let found = if let (Some(left), Some(right)) = pair { key(left, right) } else { NO_JOIN };
    if let Some(slot) = slots.get_mut(at) {
        slot.key = found;
    }
}

/// The leftmost piece of those with the lowest key.
fn lowest(slots: &[Slot]) -> Option<usize> {
    let (mut at, mut best, mut least) = (0, None, NO_JOIN);
    while let Some(slot) = slots.get(at) {
        if slot.key < least {
            (best, least) = (Some(at), slot.key);
        }
        at = end(slots, at);
    }
    best
}
