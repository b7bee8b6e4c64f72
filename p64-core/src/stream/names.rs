//! Names of the string table, walked without holding one whole.
#![forbid(unsafe_code)]

use super::ReadAt;
use super::utf8::Utf8;
use super::window::Window;
use crate::hash::{OFFSET_BASIS, fnv1a64_continue};
use crate::limits::MAX_STRING;
use crate::num;
use crate::validate::Checked;
use crate::validate::names::fold_hash;

/// What a walk along a name finds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walked {
    /// Bytes before the NUL; `None` when none stands among the first 65,536 or before the table's end.
    pub len: Option<u32>,
    pub utf8: bool,
    pub hash: u32,
}

/// Walks along the name at file offset `at` of a string table that ends at `end`.
#[inline(never)]
pub(super) fn walk<R: ReadAt>(window: &mut Window<'_, R>, at: u64, end: u64) -> Checked<Walked> {
    let end = end.min(at.saturating_add(u64::from(MAX_STRING)).saturating_add(1));
    let (mut pos, mut utf8, mut hash) = (at, Utf8::START, OFFSET_BASIS);
    let mut len = None;
    while pos < end && len.is_none() {
        let bytes = window.some(pos, end)?;
        let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        utf8.extend(name);
        hash = fnv1a64_continue(hash, name);
        let after = pos.saturating_add(num::wide(name.len()));
        if name.len() < bytes.len() {
            len = u32::try_from(after.saturating_sub(at)).ok();
        }
        pos = after;
    }
    Ok(Walked { len, utf8: utf8.is_complete(), hash: fold_hash(hash) })
}

/// Whether the names at file offsets `a` and `b` are equal.
#[inline(never)]
pub(super) fn equal<R: ReadAt>(window: &mut Window<'_, R>, a: u64, b: u64, end: u64) -> Checked<bool> {
    let mut piece = [0; 32];
    let mut done = 0u64;
    loop {
        let (at, other) = (a.saturating_add(done), b.saturating_add(done));
        let len = num::index(u32::try_from(end.saturating_sub(at)).unwrap_or(u32::MAX)).min(piece.len());
        let piece = piece.get_mut(..len).unwrap_or_default();
        window.aside(at, piece)?;
        let bytes = window.some(other, end)?;
        for (x, y) in piece.iter().zip(bytes) {
            match (*x, *y) {
                (0, 0) => return Ok(true),
                (x, y) if x != y => return Ok(false),
                _ => {}
            }
        }
        let compared = piece.len().min(bytes.len());
        if compared == 0 {
            return Ok(false);
        }
        done = done.saturating_add(num::wide(compared));
    }
}

/// Whether the name at file offset `at` is `name`.
#[inline(never)]
pub(super) fn is<R: ReadAt>(window: &mut Window<'_, R>, at: u64, end: u64, name: &str) -> Checked<bool> {
    let mut rest = name.as_bytes();
    let mut pos = at;
    while !rest.is_empty() && pos < end {
        let bytes = window.some(pos, end)?;
        let len = bytes.len().min(rest.len());
        let (head, tail) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        if bytes.get(..len) != Some(head) {
            return Ok(false);
        }
        pos = pos.saturating_add(num::wide(len));
        rest = tail;
    }
    Ok(rest.is_empty() && pos < end && window.some(pos, end)?.first() == Some(&0))
}
