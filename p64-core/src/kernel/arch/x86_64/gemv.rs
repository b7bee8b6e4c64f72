//! The product with one position: eight rows at a time, each in a lane of its own.

use super::formats::{Factors, Vectors};
use super::lanes::Lanes;
use crate::kernel::Matrix;
use crate::quant::ActivationBlock;
use core::arch::x86_64::{__m256, __m256i};

/// Rows that are computed together.
const ROWS: usize = 8;

/// Bytes of a cache line.
const LINE: usize = 64;

/// `out[r * n] = sum over c of W[first + r][c] * x[c]`: one of `n` positions.
///
/// The products of a group of 32 are exact integers, summed across a vector for eight rows at once. From there on a lane is a row,
/// which goes through the roundings of the portable kernel in its order.
#[inline(always)]
pub(super) fn gemv<L, F, const BYTES: usize, const GROUPS: usize, const S: usize>(
    l: L,
    w: &Matrix<'_>,
    first: usize,
    x: &[ActivationBlock],
    out: &mut [f32],
    n: usize,
) where
    L: Lanes,
    F: Vectors<BYTES, GROUPS, S>,
{
    let x = x.as_chunks::<GROUPS>().0;
    for (out, first) in out.chunks_mut(ROWS * n).zip((first..).step_by(ROWS)) {
        let in_tile = out.len().div_ceil(n);
        // Where there are fewer rows, the last one stands for those that are missing.
        let rows: [_; ROWS] = core::array::from_fn(|i| w.row(first + i.min(in_tile - 1)).as_chunks::<BYTES>().0);
        let len = rows.iter().fold(x.len(), |len, row| len.min(row.len()));
        let rows = rows.map(|row| &row[..len]);
        // The next eight rows lie behind these. Eight short streams are too many for the processor to see them coming.
        let ahead = rows[0].as_flattened();
        let mut sum = l.zero_f32();
        for (b, x) in x[..len].iter().enumerate() {
            let blocks = rows.map(|row| &row[b]);
            for line in 0..(ROWS * BYTES).div_ceil(LINE) {
                l.prefetch(ahead, (ahead.len() + b * BYTES) * ROWS + line * LINE);
            }
            let factors = F::factors(l, &blocks);
            for (g, x) in x.iter().enumerate() {
                let term = group::<_, F, BYTES, GROUPS, S>(l, &blocks, &factors, g, x);
                sum = l.add_f32(sum, l.mul_f32(l.splat_f32(x.scale), term));
            }
        }
        let sums = l.store_f32(sum);
        for (out, sum) in out.iter_mut().step_by(n).zip(sums) {
            *out = sum;
        }
    }
}

/// The products of a group of each row, but for the scale of the activations.
#[inline(always)]
fn group<L, F, const BYTES: usize, const GROUPS: usize, const S: usize>(
    l: L,
    blocks: &[&[u8; BYTES]; ROWS],
    factors: &Factors<GROUPS, S>,
    g: usize,
    x: &ActivationBlock,
) -> __m256
where
    L: Lanes,
    F: Vectors<BYTES, GROUPS, S>,
{
    let ([first, last], _) = x.quants.as_chunks::<16>() else { return l.zero_f32() };
    let (first, last) = (l.load_i16(first), l.load_i16(last));
    // What a closure does is not compiled for this level: loops instead.
    let (mut low, mut high) = ([l.zero_i32(); ROWS], [l.zero_i32(); ROWS]);
    for ((low, high), block) in low.iter_mut().zip(&mut high).zip(blocks) {
        let quants = F::quants(l, block, g);
        if S == 1 {
            *low = l.dot_add(l.multiply_pairs(quants[0], first), quants[1], last);
        } else {
            (*low, *high) = (l.multiply_pairs(quants[0], first), l.multiply_pairs(quants[1], last));
        }
    }
    let [total, total_last] = x.sums;
    let (scales, mins) = (&factors.scales[g], &factors.mins[g]);
    if S == 1 {
        term::<_, F, BYTES, GROUPS, S>(l, low, total + total_last, scales[0], mins[0])
    } else {
        let first = term::<_, F, BYTES, GROUPS, S>(l, low, total, scales[0], mins[0]);
        let last = term::<_, F, BYTES, GROUPS, S>(l, high, total_last, scales[S - 1], mins[S - 1]);
        l.add_f32(first, last)
    }
}

/// `scale * (sum of products) - min * total`, the activations of the products having the sum `total`.
#[inline(always)]
fn term<L, F, const BYTES: usize, const GROUPS: usize, const S: usize>(
    l: L,
    products: [__m256i; ROWS],
    total: i32,
    scale: __m256,
    min: __m256,
) -> __m256
where
    L: Lanes,
    F: Vectors<BYTES, GROUPS, S>,
{
    let dots = l.sub_i32(l.sums(products), l.splat_i32(F::OFFSET * total));
    let product = l.mul_f32(scale, l.to_f32(dots));
    if F::MINS { l.sub_f32(product, l.mul_f32(min, l.to_f32(l.splat_i32(total)))) } else { product }
}
