//! The formats of 256 values with signed integer scales: Q3_K, Q6_K; and what IQ4_XS has in common with them.
//!
//! ```text
//! value = (d * scale) * q      d: F16; scale: 6 or 8 bits for each group
//! ```
//!
//! 1. Each group gets its own best scale (`symmetric::fit`).
//! 2. `d` makes integers of the scales. Each group tries the integers around its ideal one; that of least error stays.
//! 3. With all integers given, the best `d` follows from one division. It is rounded to F16, and 2 is done again with it,
//!    as long as the error falls.

use super::k_affine::groups;
use super::lanes::{Lanes, byte, clamp, largest, round, total};
use super::pack::{bit_planes, six_bit_sixteen, stored, two_bit_runs};
use super::symmetric::{Integers, Levels, errors, fit, inverse, quantize};
use super::weights::Weights;

/// Q6_K.
pub(super) fn q6_k(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    for_blocks::<Integers<-32, 31>, 16, 16, 210>(row, importance, out, (-128.0, 127.0), |block, out| {
        let quants = block.quants(32.0);
        let (lower, rest) = out.split_at_mut(128);
        let (upper, rest) = rest.split_at_mut(64);
        let (scales, d) = rest.split_at_mut(16);
        for (lower, quants) in lower.as_chunks_mut::<64>().0.iter_mut().zip(quants.as_chunks::<4>().0) {
            let [a, b, c, d] = quants;
            for (packed, (low, high)) in lower.iter_mut().zip(a.iter().chain(b).zip(c.iter().chain(d))) {
                *packed = low & 0x0f | high << 4;
            }
        }
        upper.copy_from_slice(two_bit_runs::<4>(&quants).as_flattened());
        scales.copy_from_slice(&block.scales.map(byte));
        d.copy_from_slice(&stored(block.d).0);
    });
}

/// Q3_K.
pub(super) fn q3_k(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    for_blocks::<Integers<-4, 3>, 16, 16, 110>(row, importance, out, (-32.0, 31.0), |block, out| {
        let quants = block.quants(4.0);
        let (third, rest) = out.split_at_mut(32);
        let (low, rest) = rest.split_at_mut(64);
        let (scales, d) = rest.split_at_mut(12);
        third.copy_from_slice(&bit_planes::<2>(&quants));
        low.copy_from_slice(two_bit_runs::<0>(&quants).as_flattened());
        scales.copy_from_slice(&six_bit_sixteen(&block.scales.map(|scale| byte(scale + 32.0))));
        d.copy_from_slice(&stored(block.d).0);
    });
}

/// A block's numbers, before they are packed.
#[derive(Clone)]
pub(super) struct Block<const G: usize, const N: usize> {
    /// As stored.
    pub(super) d: f32,
    pub(super) scales: [f32; G],
    pub(super) levels: [[f32; N]; G],
    error: f32,
}

impl<const G: usize, const N: usize> Block<G, N> {
    /// The levels plus an offset in runs of 32, as packings want them.
    fn quants(&self, offset: f32) -> [[u8; 32]; 8] {
        let mut quants = [[0; 32]; 8];
        for (quant, level) in quants.as_flattened_mut().iter_mut().zip(self.levels.as_flattened()) {
            *quant = byte(*level + offset);
        }
        quants
    }
}

/// Encodes every block of a row; `range` is that of the integer scales.
#[inline(always)]
pub(super) fn for_blocks<L: Levels, const G: usize, const N: usize, const BYTES: usize>(
    row: &[f32],
    importance: Option<&[f32]>,
    out: &mut [u8],
    range: (f32, f32),
    pack: impl Fn(&Block<G, N>, &mut [u8; BYTES]),
) {
    let weights = Weights::new(row, importance);
    let blocks = row.as_chunks::<256>().0.iter().zip(out.as_chunks_mut::<BYTES>().0);
    for ((values, out), start) in blocks.zip((0..).step_by(256)) {
        let weights = weights.block(start, values);
        if let (Some(values), Some(weights)) = (groups::<G, N>(values), groups::<G, N>(&weights)) {
            pack(&encode::<L, G, N>(values, weights, range), out);
        }
    }
}

#[inline(always)]
fn encode<L: Levels, const G: usize, const N: usize>(
    values: &[[f32; N]; G],
    weights: &[[f32; N]; G],
    (low, high): (f32, f32),
) -> Block<G, N> {
    let mut ideal = [0.0; G];
    for (scale, (values, weights)) in ideal.iter_mut().zip(values.iter().zip(weights)) {
        *scale = fit::<L, N>(values, weights);
    }
    // The scale of largest magnitude goes to the longer end of the range.
    let extreme = ideal.iter().fold(0.0f32, |most, scale| if scale.abs() > most.abs() { *scale } else { most });
    let mut d = stored(extreme / low).1;
    let mut best = round_to::<L, G, N>(values, weights, &ideal, d, (low, high));
    for _ in 1..ROUNDS {
        let next = solve(values, weights, &best);
        if next == d {
            break;
        }
        d = next;
        let found = round_to::<L, G, N>(values, weights, &ideal, d, (low, high));
        if found.error >= best.error {
            break;
        }
        best = found;
    }
    best
}

/// Times that integers are chosen.
const ROUNDS: usize = 2;

/// Step 2: the integers of every group for a stored `d`.
#[inline(always)]
fn round_to<L: Levels, const G: usize, const N: usize>(
    values: &[[f32; N]; G],
    weights: &[[f32; N]; G],
    ideal: &[f32; G],
    d: f32,
    (low, high): (f32, f32),
) -> Block<G, N> {
    let mut block = Block { d, scales: [0.0; G], levels: [[0.0; N]; G], error: 0.0 };
    let inverse = inverse(d);
    let groups = values.iter().zip(weights).zip(ideal);
    for (((values, weights), ideal), (scale, levels)) in groups.zip(block.scales.iter_mut().zip(&mut block.levels)) {
        let nearest = round(clamp(ideal * inverse, low, high));
        let candidates = NEAR.map(|offset| clamp(nearest + offset, low, high));
        let errors = errors::<L, N>(values, weights, &candidates.map(|candidate| d * candidate));
        let (lane, error) = largest(&errors.map(|error| -error));
        *scale = candidates[lane];
        *levels = quantize::<L, N>(values, d * *scale);
        block.error -= error;
    }
    block
}

/// The integers that are tried, from the nearest one.
const NEAR: Lanes = [0.0, -1.0, 1.0, -2.0, 2.0, 3.0, -3.0, 4.0];

/// Step 3: the best stored `d` for given integers.
#[inline(always)]
fn solve<const G: usize, const N: usize>(values: &[[f32; N]; G], weights: &[[f32; N]; G], block: &Block<G, N>) -> f32 {
    let (mut xq, mut qq) = (0.0, 0.0);
    for ((scale, levels), (values, weights)) in block.scales.iter().zip(&block.levels).zip(values.iter().zip(weights)) {
        let [x, q] = total::<N, 2>(|i| {
            let wq = weights[i] * levels[i];
            [wq * values[i], wq * levels[i]]
        });
        xq += scale * x;
        qq += scale * scale * q;
    }
    if qq > 0.0 { stored(xq / qq).1 } else { block.d }
}
