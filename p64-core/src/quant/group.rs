//! The common form of all block formats: 32 weights as integers, with one or two pairs of scale and minimum.
//!
//! ```text
//! weight i = scales[h] * quants[i] - mins[h]      h = i / (32 / S)
//! ```
//!
//! With `a` for an [`ActivationBlock`] the 32 products sum to
//! `a.scale * sum over h of (scales[h] * dot(quants, a.quants) - mins[h] * a.sums)`, where `dot` and `sums` are exact
//! integers: the largest weight magnitude of any format is 128 (`Q8_0`), so a dot is at most 32 * 128 * 32639 < 2^28.
#![forbid(unsafe_code)]

use super::activation::ActivationBlock;

/// 32 consecutive weights. `S` is 1 where one scale serves all of them and 2 where each half has its own.
#[derive(Clone, Copy, Debug)]
pub struct Group<const S: usize> {
    /// The integers, in element order.
    pub quants: [i16; 32],
    /// Factor of the integers.
    pub scales: [f32; S],
    /// What is subtracted after scaling; `+0.0` in formats without a minimum, which leaves every value as it is.
    pub mins: [f32; S],
}

impl<const S: usize> Group<S> {
    /// All zero.
    pub const ZERO: Self = Self { quants: [0; 32], scales: [0.0; S], mins: [0.0; S] };
}

/// The values of `groups`, in order. `out` holds 32 for each group; what it has beyond that stays untouched.
#[inline]
pub fn dequantize<const S: usize>(groups: &[Group<S>], out: &mut [f32]) {
    for (group, out) in groups.iter().zip(out.as_chunks_mut::<32>().0) {
        let parts = group.quants.chunks_exact(32 / S).zip(out.chunks_exact_mut(32 / S));
        for ((quants, out), (scale, min)) in parts.zip(group.scales.iter().zip(&group.mins)) {
            for (out, quant) in out.iter_mut().zip(quants) {
                *out = scale * f32::from(*quant) - min;
            }
        }
    }
}

/// `sum` plus the products of `groups` with as many activation blocks, added in the order of the groups.
#[inline]
#[must_use]
pub fn dot<const S: usize>(groups: &[Group<S>], activations: &[ActivationBlock], sum: f32) -> f32 {
    groups.iter().zip(activations).fold(sum, |sum, (group, block)| sum + dot_group(group, block))
}

#[inline]
fn dot_group<const S: usize>(group: &Group<S>, block: &ActivationBlock) -> f32 {
    if S == 1 {
        let product = integer_dot(&group.quants, &block.quants);
        let [low, high] = block.sums;
        block.scale * (group.scales[0] * to_f32(product) - group.mins[0] * to_f32(low + high))
    } else {
        let halves = group.quants.as_chunks::<16>().0.iter().zip(block.quants.as_chunks::<16>().0);
        let factors = group.scales.iter().zip(&group.mins).zip(&block.sums);
        let sum = halves.zip(factors).fold(0.0, |sum, ((weights, quants), ((scale, min), total))| {
            sum + (scale * to_f32(integer_dot(weights, quants)) - min * to_f32(*total))
        });
        block.scale * sum
    }
}

/// A sum of 16-bit products: the shape that compilers turn into multiply-and-add-pairs instructions.
#[inline]
fn integer_dot<const N: usize>(a: &[i16; N], b: &[i16; N]) -> i32 {
    a.iter().zip(b).fold(0, |sum, (a, b)| sum + i32::from(*a) * i32::from(*b))
}

/// The nearest `f32`; sums above 2^24 are rounded, by at most one part in 2^24.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "one rounding, as documented")]
fn to_f32(sum: i32) -> f32 {
    sum as f32
}
