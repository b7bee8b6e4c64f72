//! Fits of `scale * integer` to the values of a group.
//!
//! ```text
//! given integers q     scale = sum(w x q) / sum(w q^2), and the squared error is sum(w x^2) - sum(w x q)^2 / sum(w q^2)
//! given a scale        q = nearest level to x / scale
//! ```
//!
//! The error has many local minima over the scale. [`fit`] tries sixteen scales that map the extreme value near the end of
//! the levels, eight on either side, and takes the best scale for the integers that they lead to. More turns between the two
//! lines above were tried: they win less than a thousandth of the error and double the time.

use super::lanes::{LANES, Lanes, clamp, largest, range, round, sums};

/// The integers that a format has for a value.
pub(super) trait Levels {
    /// The lowest.
    const LOW: f32;
    /// The highest.
    const HIGH: f32;
    /// How far beyond the last level on either side the extreme value is mapped, in levels.
    const BEYOND: Lanes;
    /// The nearest one.
    fn nearest(v: f32) -> f32;
}

/// `LOW..=HIGH`, all of them.
pub(super) struct Integers<const LOW: i16, const HIGH: i16>;

impl<const LOW: i16, const HIGH: i16> Levels for Integers<LOW, HIGH> {
    const LOW: f32 = small(LOW);
    const HIGH: f32 = small(HIGH);
    const BEYOND: Lanes = [0.0, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0, 1.25];

    #[inline(always)]
    fn nearest(v: f32) -> f32 {
        round(clamp(v, Self::LOW, Self::HIGH))
    }
}

/// Exact; `From` is not const.
const fn small(integer: i16) -> f32 {
    integer as f32
}

/// Below this magnitude every F16 scale of a group is zero: it is far below the smallest F16 over the largest range of
/// integers times scales.
pub(super) const NOTHING: f32 = 1e-13;

/// The scale that fits best among those tried; zero for values that are as good as zero.
#[inline(always)]
pub(super) fn fit<L: Levels, const N: usize>(values: &[f32; N], weights: &[f32; N]) -> f32 {
    let (low, high) = range(values);
    let extreme = if -low > high { low } else { high };
    if extreme.abs() < NOTHING {
        return 0.0;
    }
    let mut weighted = [0.0; N];
    for (weighted, (value, weight)) in weighted.iter_mut().zip(values.iter().zip(weights)) {
        *weighted = value * weight;
    }
    let (mut most, mut best) = (0.0, 0.0);
    for end in [L::LOW, L::HIGH] {
        let inverse = L::BEYOND.map(|beyond| (end + end.signum() * beyond) / extreme);
        let [xq, qq] = sums::<N, 2>(|i, lane| {
            let q = L::nearest(values[i] * inverse[lane]);
            [weighted[i] * q, weights[i] * q * q]
        });
        let mut explained = [0.0; LANES];
        for ((explained, xq), qq) in explained.iter_mut().zip(xq).zip(qq) {
            // Where no value has a level but zero, both sums are zero; the constant keeps the quotient finite.
            *explained = xq * xq / (qq + f32::MIN_POSITIVE);
        }
        let (lane, found) = largest(&explained);
        if found > most {
            (most, best) = (found, xq[lane] / qq[lane]);
        }
    }
    best
}

/// The nearest levels to `values / scale`; all zero (or what is nearest to it) where the scale is.
#[inline(always)]
pub(super) fn quantize<L: Levels, const N: usize>(values: &[f32; N], scale: f32) -> [f32; N] {
    let inverse = inverse(scale);
    values.map(|value| L::nearest(value * inverse))
}

/// The weighted squared errors of the nearest levels to `values / scale`, for eight scales.
#[inline(always)]
pub(super) fn errors<L: Levels, const N: usize>(values: &[f32; N], weights: &[f32; N], scales: &Lanes) -> Lanes {
    let inverses = scales.map(inverse);
    let [errors] = sums::<N, 1>(|i, lane| {
        let off = values[i] - scales[lane] * L::nearest(values[i] * inverses[lane]);
        [weights[i] * off * off]
    });
    errors
}

/// `1 / scale`, zero where the scale is.
#[inline(always)]
pub(super) fn inverse(scale: f32) -> f32 {
    if scale == 0.0 { 0.0 } else { 1.0 / scale }
}
