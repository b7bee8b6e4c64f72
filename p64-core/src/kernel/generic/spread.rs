//! Attention of one query position over a long cache, spread over threads.
//!
//! ```text
//! scores   [visible][n_head]              threads take positions, and read the keys as they lie in memory
//! shares   [n_head][visible]              threads take heads
//! mixed    [n_kv_head][part][group][32]   threads take parts of heads: a sum goes through all positions in one thread
//! ```
//!
//! No sum is cut, so that the bits are those of [`Attention::attend`], whatever the number of threads.
#![forbid(unsafe_code)]

use super::attention::Attention;
use super::cache::Rows;
use super::grouped::{MOST, PART, Steps};
use crate::error::{Error, Result};
use crate::kernel::Workers;
use core::ops::Range;

/// Positions whose keys are read for one group of heads after the other: their scores stay in the first cache meanwhile.
const POSITIONS: usize = 256;

/// Values that [`attend`] works in.
pub(crate) const fn buffer_len(n_head: usize, head_dim: usize, visible: usize) -> usize {
    n_head.saturating_mul(head_dim.saturating_add(visible.saturating_mul(2)))
}

/// [`Attention::attend`] with at least [`buffer_len`] values of scratch, for heads that are done by parts.
///
/// # Errors
/// As [`Attention::attend`]. What cannot be read from the cache makes the result NaN.
#[allow(clippy::too_many_arguments, reason = "three inputs, a place in them, scratch, output and threads")]
pub(crate) fn attend(
    attention: &Attention,
    q: &[f32],
    keys: Rows<'_>,
    values: Rows<'_>,
    visible: Range<usize>,
    buffer: &mut [f32],
    out: &mut [f32],
    workers: &dyn Workers,
) -> Result<()> {
    let Attention { n_head, n_kv_head, head_dim, .. } = *attention;
    let (len, group_len) = (visible.len(), attention.group_len()?);
    let (group, parts) = (group_len / head_dim, head_dim / PART);
    let (need, have) = (buffer_len(n_head, head_dim, len), buffer.len());
    let buffer = buffer.get_mut(..need).ok_or(Error::buffer_too_small(need, have))?;
    let (scores, rest) = buffer.split_at_mut(len * n_head);
    let (shares, mixed) = rest.split_at_mut(len * n_head);

    workers.for_each_chunk(scores, n_head, &|first, chunk| {
        let starts = (visible.start + first..).step_by(POSITIONS);
        for (start, scores) in starts.zip(chunk.chunks_mut(POSITIONS * n_head)) {
            let range = start..start + scores.len() / n_head;
            for (q, head) in heads(q, group, head_dim) {
                let scores = &mut scores[head..];
                let steps = Steps { head: 1, position: n_head };
                if keys.score(attention, head / group, q, &range, scores, steps).is_err() {
                    scores.fill(f32::NAN);
                }
            }
        }
    });
    let scores = &*scores;
    workers.for_each_unit(shares, len, &|first, chunk| {
        for (head, shares) in (first..).zip(chunk.chunks_exact_mut(len)) {
            for (share, scores) in shares.iter_mut().zip(scores.chunks_exact(n_head)) {
                *share = scores[head];
            }
            attention.share(shares);
        }
    });
    let shares = &*shares;
    workers.for_each_unit(mixed, group * PART, &|first, chunk| {
        for (unit, out) in (first..).zip(chunk.chunks_exact_mut(group * PART)) {
            let (kv_head, part) = (unit / parts, unit % parts);
            let shares = shares[kv_head * group * len..][..group * len].chunks(MOST * len);
            for (shares, out) in shares.zip(out.chunks_mut(MOST * PART)) {
                if values.mix_part(attention, kv_head, part, shares, &visible, out).is_err() {
                    out.fill(f32::NAN);
                }
            }
        }
    });
    for (mixed, out) in mixed.chunks_exact(parts * group * PART).zip(out.chunks_exact_mut(group_len)) {
        for (part, mixed) in mixed.chunks_exact(group * PART).enumerate() {
            attention.place(part, mixed, out);
        }
    }
    debug_assert_eq!(out.len(), n_kv_head * group_len);
    Ok(())
}

/// The query heads, as many of a group together as are computed at once, and the number of the first of them.
fn heads(q: &[f32], group: usize, head_dim: usize) -> impl Iterator<Item = (&[f32], usize)> {
    let groups = (0..).step_by(group).zip(q.chunks_exact(group * head_dim));
    groups.flat_map(move |(first, q)| (first..).step_by(MOST).zip(q.chunks(MOST * head_dim)).map(|(head, q)| (q, head)))
}
