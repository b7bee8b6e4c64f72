//! Grouped-query attention of one query position over a key-value cache.
#![forbid(unsafe_code)]

use super::activation::softcap;
use super::cache::{Kept, LANES, Rows, totals};
use super::grouped::{self, MOST, Steps};
use super::softmax::softmax;
use crate::error::{Code, Error, Place, Result};
use crate::kernel::arch::Eight;
use core::ops::Range;
use core::slice::ChunksExact;

/// Keys that are multiplied together.
const KEYS: usize = if cfg!(target_arch = "x86_64") { 4 } else { 1 };

/// Elements of a head's output that are summed together where a head is no whole number of 32.
const PART: usize = 64;

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
    /// Where there is one, a scaled score `s` becomes `softcap * tanh(s / softcap)`.
    pub softcap: Option<f32>,
}

/// Of a group of so many query heads, those that are computed at once.
pub(crate) const fn at_once(group: usize) -> usize {
    if group < MOST { group } else { MOST }
}

impl Attention {
    /// Attends from one position to the `visible` ones.
    ///
    /// `q` and `out` are `n_head` x `head_dim`; `keys` and `values` are `n_kv_head` x positions x `head_dim`, a head
    /// being whole blocks. A sliding window is a range that does not begin at 0. `scores` is scratch for at least `visible.len()`
    /// values; where it holds that for several heads of a group, what they share is read once for all of them.
    ///
    /// # Errors
    /// [`Code::LengthMismatch`] when `q` or `out` has not `n_head * head_dim` elements or the heads do not divide,
    /// [`Code::BufferTooSmall`] when the cache ends before `visible` does or `scores` is too short.
    pub fn attend(
        &self,
        q: &[f32],
        keys: Rows<'_>,
        values: Rows<'_>,
        visible: Range<usize>,
        scores: &mut [f32],
        out: &mut [f32],
    ) -> Result<()> {
        let width = self.n_head.saturating_mul(self.head_dim);
        for have in [q.len(), out.len()] {
            if have != width {
                return Err(Error::new(Code::LengthMismatch, Place::File).values(width as u64, have as u64));
            }
        }
        let group = self.group_len()?;
        for (kv_head, (q, out)) in q.chunks_exact(group).zip(out.chunks_exact_mut(group)).enumerate() {
            self.attend_group(kv_head, q, keys, values, visible.clone(), scores, out)?;
        }
        Ok(())
    }

    /// [`Attention::attend`] for the query heads that one key and value head serves, so that groups can run side by
    /// side. `q` and `out` are `n_head / n_kv_head` x `head_dim`.
    ///
    /// # Errors
    /// As [`Attention::attend`], `q` and `out` being one group; [`Code::LengthMismatch`] for a head past the last.
    #[allow(clippy::too_many_arguments, reason = "three inputs, a place in them, two outputs")]
    pub fn attend_group(
        &self,
        kv_head: usize,
        q: &[f32],
        keys: Rows<'_>,
        values: Rows<'_>,
        visible: Range<usize>,
        scores: &mut [f32],
        out: &mut [f32],
    ) -> Result<()> {
        let Self { n_kv_head, head_dim, .. } = *self;
        let group = self.group_len()?;
        for (need, have) in
            [(group, q.len()), (group, out.len()), (n_kv_head, kv_head.saturating_add(1).max(n_kv_head))]
        {
            if have != need {
                return Err(Error::new(Code::LengthMismatch, Place::File).values(need as u64, have as u64));
            }
        }
        let have = scores.len();
        let len = visible.len();
        if have < len {
            return Err(Error::buffer_too_small(len, have));
        }
        let heads = (have / len.max(1)).clamp(1, MOST);
        for (q, out) in q.chunks(heads * head_dim).zip(out.chunks_mut(heads * head_dim)) {
            let scores = scores.get_mut(..len * (q.len() / head_dim)).unwrap_or_default();
            keys.score(self, kv_head, q, &visible, scores, Steps { head: len, position: 1 })?;
            for scores in scores.chunks_exact_mut(len.max(1)) {
                self.share(scores);
            }
            values.mix(self, kv_head, scores, &visible, out)?;
        }
        Ok(())
    }

    /// Makes scores shares.
    pub(super) fn share(&self, scores: &mut [f32]) {
        if let Some(cap) = self.softcap {
            softcap(scores, cap);
        }
        softmax(scores);
    }

    /// Whether all that is done with a head is done by parts.
    pub(crate) const fn by_parts(&self) -> bool {
        cfg!(target_arch = "x86_64") && self.head_dim.is_multiple_of(grouped::PART)
    }

    /// The scaled products of up to [`MOST`] query heads with the visible keys.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "two inputs, a place in them, an output and its order")]
    pub(super) fn score<E: Eight, K: Kept>(
        &self,
        e: E,
        kv_head: usize,
        q: &[f32],
        keys: &[K],
        visible: &Range<usize>,
        scores: &mut [f32],
        steps: Steps,
    ) -> Result<()> {
        if self.by_parts() {
            return match q.len() / self.head_dim {
                0 | 1 => grouped::score::<E, K, 1>(e, self, kv_head, q, keys, visible, scores, steps),
                2 => grouped::score::<E, K, 2>(e, self, kv_head, q, keys, visible, scores, steps),
                3 => grouped::score::<E, K, 3>(e, self, kv_head, q, keys, visible, scores, steps),
                _ => grouped::score::<E, K, 4>(e, self, kv_head, q, keys, visible, scores, steps),
            };
        }
        for (q, scores) in q.chunks_exact(self.head_dim).zip(scores.chunks_mut(visible.len().max(1))) {
            self.score_head(e, kv_head, q, keys, visible, scores)?;
        }
        Ok(())
    }

    /// The sums of the visible values, each times its share, for up to [`MOST`] query heads.
    #[inline(always)]
    pub(super) fn mix<E: Eight, V: Kept>(
        &self,
        e: E,
        kv_head: usize,
        shares: &[f32],
        values: &[V],
        visible: &Range<usize>,
        out: &mut [f32],
    ) -> Result<()> {
        let head_dim = self.head_dim;
        if self.by_parts() {
            let mut mixed = [0.0; MOST * grouped::PART];
            let mixed = mixed.get_mut(..out.len() / head_dim * grouped::PART).unwrap_or_default();
            for part in 0..head_dim / grouped::PART {
                self.mix_part(e, kv_head, part, shares, values, visible, mixed)?;
                self.place(part, mixed, out);
            }
            return Ok(());
        }
        for (shares, out) in shares.chunks(visible.len().max(1)).zip(out.chunks_exact_mut(head_dim)) {
            self.mix_head(kv_head, shares, values, visible, out)?;
        }
        Ok(())
    }

    /// Elements `32 * part..` of [`Attention::mix`]: `out` is heads x 32.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "two inputs, a place in them, an output")]
    pub(super) fn mix_part<E: Eight, V: Kept>(
        &self,
        e: E,
        kv_head: usize,
        part: usize,
        shares: &[f32],
        values: &[V],
        visible: &Range<usize>,
        out: &mut [f32],
    ) -> Result<()> {
        let (out, _) = out.as_chunks_mut::<{ grouped::PART }>();
        match out {
            [one] => [*one] = grouped::mix(e, self, kv_head, part, shares, values, visible)?,
            [a, b] => [*a, *b] = grouped::mix(e, self, kv_head, part, shares, values, visible)?,
            [a, b, c] => [*a, *b, *c] = grouped::mix(e, self, kv_head, part, shares, values, visible)?,
            [a, b, c, d] => [*a, *b, *c, *d] = grouped::mix(e, self, kv_head, part, shares, values, visible)?,
            _ => (),
        }
        Ok(())
    }

    /// Puts a part of heads where it belongs.
    #[inline(always)]
    pub(super) fn place(&self, part: usize, mixed: &[f32], out: &mut [f32]) {
        for (out, mixed) in out.chunks_exact_mut(self.head_dim).zip(mixed.as_chunks::<{ grouped::PART }>().0) {
            if let Some(out) = out.as_chunks_mut().0.get_mut(part) {
                *out = *mixed;
            }
        }
    }

    /// The scaled products of a query head with the visible keys.
    #[inline(always)]
    fn score_head<E: Eight, K: Kept>(
        &self,
        e: E,
        kv_head: usize,
        q: &[f32],
        keys: &[K],
        visible: &Range<usize>,
        scores: &mut [f32],
    ) -> Result<()> {
        let mut heads = self.heads(kv_head, keys, visible)?;
        for scores in scores.chunks_mut(KEYS) {
            // Several sums at once: compilers then keep the lanes of each in one vector.
            let mut sums = [[0.0; LANES]; KEYS];
            for (sums, _) in sums.iter_mut().zip(scores.iter()) {
                if let Some(key) = heads.next() {
                    *sums = K::dot(e, q, key);
                }
            }
            for (score, total) in scores.iter_mut().zip(totals(&sums)) {
                *score = self.scale * total;
            }
        }
        Ok(())
    }

    /// The sum of the visible values, each times its share, for one query head.
    #[inline(always)]
    fn mix_head<V: Kept>(
        &self,
        kv_head: usize,
        shares: &[f32],
        values: &[V],
        visible: &Range<usize>,
        out: &mut [f32],
    ) -> Result<()> {
        for (start, out) in (0..).step_by(PART / V::ELEMENTS).zip(out.chunks_mut(PART)) {
            let heads = shares.iter().zip(self.heads(kv_head, values, visible)?);
            // Of a whole part the length is known, so that its sums stay in registers.
            if let Some(out) = out.as_mut_array::<PART>().filter(|_| cfg!(target_arch = "x86_64")) {
                let mut sums = [0.0; PART];
                for (share, value) in heads {
                    let value = value.get(start..start + PART / V::ELEMENTS).unwrap_or_default();
                    V::add(*share, value, &mut sums);
                }
                *out = sums;
            } else {
                out.fill(0.0);
                for (share, value) in heads {
                    V::add(*share, value.get(start..).unwrap_or_default(), out);
                }
            }
        }
        Ok(())
    }

    /// One key or value head of every visible position.
    #[inline(always)]
    pub(super) fn heads<'a, T: Kept>(
        &self,
        kv_head: usize,
        rows: &'a [T],
        visible: &Range<usize>,
    ) -> Result<ChunksExact<'a, T>> {
        let len = self.head_dim / T::ELEMENTS;
        if !self.head_dim.is_multiple_of(T::ELEMENTS) {
            return Err(Error::new(Code::PartialBlock, Place::File).values(T::ELEMENTS as u64, self.head_dim as u64));
        }
        let heads = self.n_kv_head.saturating_mul(len);
        let positions = rows.len() / heads.max(1);
        let short = Error::buffer_too_small(visible.end.saturating_mul(heads), rows.len());
        if visible.end > positions {
            return Err(short);
        }
        let head = rows.chunks_exact((positions * len).max(1)).nth(kv_head).ok_or(short)?;
        let rows = head.get(visible.start * len..visible.end * len).ok_or(short)?;
        Ok(rows.chunks_exact(len))
    }

    /// Length of the queries that share a key and value head.
    pub(super) fn group_len(&self) -> Result<usize> {
        let Self { n_head, n_kv_head, head_dim, .. } = *self;
        if n_head == 0 || n_kv_head == 0 || head_dim == 0 || !n_head.is_multiple_of(n_kv_head) {
            return Err(Error::new(Code::LengthMismatch, Place::File).values(n_kv_head as u64, n_head as u64));
        }
        Ok((n_head / n_kv_head).saturating_mul(head_dim))
    }
}
