//! Attention of several query heads that share a key and value head: what is loaded once meets all of them.
//!
//! ```text
//! score   of two positions at a time, for each head eight partial sums: element i to sum i mod 8
//! mix     of 32 elements at a time, for each head one sum an element: position after position
//! ```
//!
//! These are the sums of one head alone ([`Attention`]), in their order: the bits are the same.
#![forbid(unsafe_code)]

use super::attention::Attention;
use super::cache::{Kept, LANES, totals};
use crate::error::{Error, Result};
use crate::kernel::arch::Eight;
use core::ops::Range;

/// Elements that are decoded together: a block of every type.
pub(super) const PART: usize = 32;

/// Vectors of a part.
pub(super) const VECTORS: usize = PART / LANES;

/// Most heads at once: 16 vectors of sums are what fits in registers.
pub(super) const MOST: usize = if cfg!(target_arch = "x86_64") { 4 } else { 1 };

/// Where a score lies: that of head `h` with the `t`-th visible position at `h * head + t * position`.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    pub head: usize,
    pub position: usize,
}

const ZERO: [f32; PART] = [0.0; PART];

/// Two positions with `H` heads.
#[inline(always)]
fn dots<E: Eight, K: Kept, const H: usize>(
    e: E,
    q: &[&[[f32; PART]]; H],
    first: &[K::Part],
    second: &[K::Part],
) -> [[[f32; LANES]; H]; 2] {
    let mut sums = [[e.zero(); H]; 2];
    for (part, (first, second)) in first.iter().zip(second).enumerate() {
        let (first, second) = (K::vectors(e, first), K::vectors(e, second));
        for (h, q) in q.iter().enumerate() {
            let q = q.get(part).unwrap_or(&ZERO).as_chunks::<LANES>().0;
            for ((q, first), second) in q.iter().zip(&first).zip(&second) {
                let q = e.load(q);
                sums[0][h] = e.add(sums[0][h], e.mul(q, *first));
                sums[1][h] = e.add(sums[1][h], e.mul(q, *second));
            }
        }
    }
    let mut out = [[[0.0; LANES]; H]; 2];
    for (out, sums) in out.iter_mut().zip(&sums) {
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = e.store(*sum);
        }
    }
    out
}

/// The scaled products of `H` query heads with the visible keys. `q` is `H` x `head_dim`, of whole parts.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "two inputs, a place in them, an output and its order")]
pub(super) fn score<E: Eight, K: Kept, const H: usize>(
    e: E,
    attention: &Attention,
    kv_head: usize,
    q: &[f32],
    keys: &[K],
    visible: &Range<usize>,
    scores: &mut [f32],
    steps: Steps,
) -> Result<()> {
    let head_dim = attention.head_dim;
    let mut heads: [&[[f32; PART]]; H] = [&[]; H];
    for (head, q) in heads.iter_mut().zip(q.chunks_exact(head_dim)) {
        *head = q.as_chunks().0;
    }
    let mut rows = attention.heads(kv_head, keys, visible)?;
    let mut at = 0;
    while let Some(first) = rows.next() {
        let second = rows.next();
        let sums = dots::<E, K, H>(e, &heads, K::parts(first), K::parts(second.unwrap_or(first)));
        for (sums, t) in sums.iter().zip(at..visible.len()) {
            for (h, total) in totals(sums).into_iter().enumerate() {
                if let Some(score) = scores.get_mut(h * steps.head + t * steps.position) {
                    *score = attention.scale * total;
                }
            }
        }
        at += 2;
    }
    Ok(())
}

/// The sums of elements `32 * part..` of the visible values, each times its share: `H` x 32. `shares` is `H` x `visible`.
#[inline(always)]
pub(super) fn mix<E: Eight, V: Kept, const H: usize>(
    e: E,
    attention: &Attention,
    kv_head: usize,
    part: usize,
    shares: &[f32],
    values: &[V],
    visible: &Range<usize>,
) -> Result<[[f32; PART]; H]> {
    let mut heads: [&[f32]; H] = [&[]; H];
    for (head, shares) in heads.iter_mut().zip(shares.chunks_exact(visible.len().max(1))) {
        *head = shares;
    }
    let mut sums = [[e.zero(); VECTORS]; H];
    for (t, row) in attention.heads(kv_head, values, visible)?.enumerate() {
        let row = V::parts(row).get(part).ok_or(Error::buffer_too_small(part, row.len()))?;
        let row = V::vectors(e, row);
        for (sums, shares) in sums.iter_mut().zip(&heads) {
            let share = e.load(&[shares.get(t).copied().unwrap_or_default(); LANES]);
            for (sum, value) in sums.iter_mut().zip(&row) {
                *sum = e.add(*sum, e.mul(share, *value));
            }
        }
    }
    let mut out = [ZERO; H];
    for (out, sums) in out.iter_mut().zip(&sums) {
        for (out, sum) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
            *out = e.store(*sum);
        }
    }
    Ok(out)
}
