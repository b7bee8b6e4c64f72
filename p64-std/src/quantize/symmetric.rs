//! Fits of `scale * integer` to the values of a group.
//!
//! ```text
//! given integers q     scale = sum(w x q) / sum(w q^2), and the squared error is sum(w x^2) - sum(w x q)^2 / sum(w q^2)
//! given a scale        q = nearest level to x / scale
//! ```
//!
//! The error has many local minima over the scale. [`fit`] tries scales that map the extreme value near the end of the
//! levels, on either side, and then takes turns between the two lines above, which can only improve.

use super::lanes::{clamp, round, sums};

/// The integers that a format has for a value.
pub(super) trait Levels {
    /// The lowest.
    const LOW: f32;
    /// The highest.
    const HIGH: f32;
    /// Distance of candidates near the ends, in levels.
    const STEP: f32 = 0.1;
    /// The nearest one.
    fn nearest(v: f32) -> f32;
}

/// `LOW..=HIGH`, all of them.
pub(super) struct Integers<const LOW: i16, const HIGH: i16>;

impl<const LOW: i16, const HIGH: i16> Levels for Integers<LOW, HIGH> {
    const LOW: f32 = small(LOW);
    const HIGH: f32 = small(HIGH);

    #[inline(always)]
    fn nearest(v: f32) -> f32 {
        round(clamp(v, Self::LOW, Self::HIGH))
    }
}

#[expect(clippy::cast_lossless, reason = "`From` is not const")]
const fn small(integer: i16) -> f32 {
    integer as f32
}

/// Below this magnitude every F16 scale of a group is zero: larger than any format's range of integers times scales, it is
/// far below the smallest F16 over that range.
pub(super) const NOTHING: f32 = 1e-13;

/// Sums that tell scale and error: of `w x q` and of `w q^2`.
#[derive(Clone, Copy)]
struct Sums {
    xq: f32,
    qq: f32,
}

impl Sums {
    #[inline(always)]
    fn of<L: Levels, const N: usize>(values: &[f32; N], weighted: &[f32; N], weights: &[f32; N], inverse: f32) -> Self {
        let [xq, qq] = sums::<N, 2>(|i| {
            let q = L::nearest(values[i] * inverse);
            [weighted[i] * q, weights[i] * q * q]
        });
        Self { xq, qq }
    }

    /// What the fit takes away from `sum(w x^2)`.
    fn explained(self) -> f32 {
        if self.qq > 0.0 { self.xq * self.xq / self.qq } else { 0.0 }
    }
}

/// The scale that fits best among those tried; zero for values that are as good as zero.
#[inline(always)]
pub(super) fn fit<L: Levels, const N: usize>(values: &[f32; N], weights: &[f32; N]) -> f32 {
    let (low, high) = super::lanes::range(values);
    let extreme = if -low > high { low } else { high };
    if extreme.abs() < NOTHING {
        return 0.0;
    }
    let mut weighted = [0.0; N];
    for (weighted, (value, weight)) in weighted.iter_mut().zip(values.iter().zip(weights)) {
        *weighted = value * weight;
    }
    let sums = |inverse: f32| Sums::of::<L, N>(values, &weighted, weights, inverse);
    let mut best = Sums { xq: 0.0, qq: 0.0 };
    let mut most = 0.0;
    for step in STEPS {
        for end in [L::LOW - step * L::STEP, L::HIGH + step * L::STEP] {
            let found = sums(end / extreme);
            if found.explained() > most {
                (best, most) = (found, found.explained());
            }
        }
    }
    for _ in 0..REFITS {
        if best.xq == 0.0 {
            break;
        }
        let found = sums(best.qq / best.xq);
        if found.explained() <= most {
            break;
        }
        (best, most) = (found, found.explained());
    }
    if best.qq > 0.0 { best.xq / best.qq } else { 0.0 }
}

/// Where the extreme value is mapped: so many steps beyond the last level.
const STEPS: [f32; 9] = [0.0, 2.0, -2.0, 4.0, -4.0, 6.0, -6.0, 8.0, -8.0];

/// Turns between scale and integers at the end.
const REFITS: usize = 4;

/// The nearest levels to `values / scale`; all zero (or what is nearest to it) where the scale is.
#[inline(always)]
pub(super) fn quantize<L: Levels, const N: usize>(values: &[f32; N], scale: f32) -> [f32; N] {
    let inverse = inverse(scale);
    values.map(|value| L::nearest(value * inverse))
}

/// The weighted squared error of the nearest levels to `values / scale`.
#[inline(always)]
pub(super) fn error<L: Levels, const N: usize>(values: &[f32; N], weights: &[f32; N], scale: f32) -> f32 {
    let inverse = inverse(scale);
    let [error] = sums::<N, 1>(|i| {
        let off = values[i] - scale * L::nearest(values[i] * inverse);
        [weights[i] * off * off]
    });
    error
}

/// `1 / scale`, zero where the scale is.
#[inline(always)]
pub(super) fn inverse(scale: f32) -> f32 {
    if scale == 0.0 { 0.0 } else { 1.0 / scale }
}
