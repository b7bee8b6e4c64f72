//! Grouped-query attention of one query position over a key-value cache.
#![forbid(unsafe_code)]

use super::softmax::softmax;
use crate::error::{Code, Error, Place, Result};
use core::ops::Range;

/// How many heads there are and how scores are scaled.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Attention {
    /// Query heads: a multiple of `n_kv_head`.
    pub n_head: usize,
    /// Key and value heads; each serves `n_head / n_kv_head` consecutive query heads.
    pub n_kv_head: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Factor of every score, usually `1 / sqrt(head_dim)`.
    pub scale: f32,
}

impl Attention {
    /// Attends from one position to the `visible` ones.
    ///
    /// `q` and `out` are `n_head` x `head_dim`; `keys` and `values` are positions x `n_kv_head` x `head_dim`. A sliding
    /// window is a range that does not begin at 0. `scores` is scratch for at least `visible.len()` values.
    ///
    /// # Errors
    /// [`Code::LengthMismatch`] when `q` or `out` has not `n_head * head_dim` elements or the heads do not divide,
    /// [`Code::BufferTooSmall`] when the cache ends before `visible` does or `scores` is too short.
    pub fn attend(
        &self,
        q: &[f32],
        keys: &[f32],
        values: &[f32],
        visible: Range<usize>,
        scores: &mut [f32],
        out: &mut [f32],
    ) -> Result<()> {
        let Self { n_head, n_kv_head, head_dim, scale } = *self;
        let width = n_head.saturating_mul(head_dim);
        for have in [q.len(), out.len()] {
            if have != width {
                return Err(Error::new(Code::LengthMismatch, Place::File).values(width as u64, have as u64));
            }
        }
        if n_kv_head == 0 || head_dim == 0 || !n_head.is_multiple_of(n_kv_head) {
            return Err(Error::new(Code::LengthMismatch, Place::File).values(n_kv_head as u64, n_head as u64));
        }
        let stride = n_kv_head.saturating_mul(head_dim);
        let (from, to) = (visible.start.saturating_mul(stride), visible.end.saturating_mul(stride));
        let keys = keys.get(from..to).ok_or(Error::buffer_too_small(to, keys.len()))?;
        let values = values.get(from..to).ok_or(Error::buffer_too_small(to, values.len()))?;
        let have = scores.len();
        let scores = scores.get_mut(..visible.len()).ok_or(Error::buffer_too_small(visible.len(), have))?;

        let group = (n_head / n_kv_head).saturating_mul(head_dim);
        for (kv, (q, out)) in q.chunks_exact(group).zip(out.chunks_exact_mut(group)).enumerate() {
            let offset = kv * head_dim;
            for (q, out) in q.chunks_exact(head_dim).zip(out.chunks_exact_mut(head_dim)) {
                for (score, key) in scores.iter_mut().zip(heads(keys, stride, offset, head_dim)) {
                    *score = scale * dot(q, key);
                }
                softmax(scores);
                out.fill(0.0);
                for (score, value) in scores.iter().zip(heads(values, stride, offset, head_dim)) {
                    for (out, value) in out.iter_mut().zip(value) {
                        *out += score * value;
                    }
                }
            }
        }
        Ok(())
    }
}

/// One head of every position.
fn heads(cache: &[f32], stride: usize, offset: usize, head_dim: usize) -> impl Iterator<Item = &[f32]> {
    cache.chunks_exact(stride).map(move |position| position.get(offset..offset + head_dim).unwrap_or_default())
}

/// A sum of products in eight independent lanes.
#[inline]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    for ((sum, a), b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
        *sum += a * b;
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}
