//! Fits of `scale * integer - minimum` to the values of a group, integers from 0 up.
//!
//! Given the integers, scale and minimum are those of a weighted line through (q, x); given the line, the integers are the
//! nearest. [`Group::fit`] tries sixteen ranges a little wider or narrower than that of the values at either end, and takes
//! the best line for the integers that they lead to.

use super::lanes::{LANES, Lanes, clamp, largest, range, round, sums, total};
use super::symmetric::{NOTHING, inverse};

/// A line: `value = scale * q - minimum`.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Line {
    pub(super) scale: f32,
    pub(super) minimum: f32,
}

impl Line {
    /// The nearest integers, 0 to `high`.
    #[inline(always)]
    pub(super) fn quantize<const N: usize>(self, values: &[f32; N], high: f32) -> [f32; N] {
        let inverse = inverse(self.scale);
        let offset = self.minimum * inverse;
        values.map(|value| round(clamp(value * inverse + offset, 0.0, high)))
    }
}

/// Eight lines.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    pub(super) scale: Lanes,
    pub(super) minimum: Lanes,
}

impl Lines {
    pub(super) const ZERO: Self = Self { scale: [0.0; LANES], minimum: [0.0; LANES] };

    /// One of them.
    #[inline(always)]
    pub(super) fn get(&self, lane: usize) -> Line {
        Line { scale: self.scale[lane], minimum: self.minimum[lane] }
    }

    /// Factors and offsets that make integers of values, not yet rounded.
    #[inline(always)]
    fn to_integers(self) -> (Lanes, Lanes) {
        let inverse = self.scale.map(inverse);
        let mut offset = self.minimum;
        for (offset, inverse) in offset.iter_mut().zip(inverse) {
            *offset *= inverse;
        }
        (inverse, offset)
    }
}

/// Which minima a format can store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Minimum {
    /// Any: the value of integer 0 may be positive.
    Free,
    /// Not below zero: the value of integer 0 is zero or negative.
    NotNegative,
}

/// How far the lower and the upper end of the values' range are moved inwards, in steps: two times eight tries.
pub(super) type Inwards = [[Lanes; 2]; 2];

/// The values of a group and their weights.
pub(super) struct Group<'a, const N: usize> {
    values: &'a [f32; N],
    weights: &'a [f32; N],
    weighted: [f32; N],
    w: f32,
    wx: f32,
}

impl<'a, const N: usize> Group<'a, N> {
    /// The group of some values.
    #[inline(always)]
    pub(super) fn new(values: &'a [f32; N], weights: &'a [f32; N]) -> Self {
        let mut weighted = [0.0; N];
        for (weighted, (value, weight)) in weighted.iter_mut().zip(values.iter().zip(weights)) {
            *weighted = value * weight;
        }
        let [w, wx] = total::<N, 2>(|i| [weights[i], weighted[i]]);
        Self { values, weights, weighted, w, wx }
    }

    /// The weighted mean.
    #[inline(always)]
    pub(super) fn mean(&self) -> f32 {
        if self.w > 0.0 { self.wx / self.w } else { 0.0 }
    }

    /// The weighted squared errors of the integers nearest to eight lines.
    #[inline(always)]
    pub(super) fn errors(&self, lines: &Lines, high: f32) -> Lanes {
        let (inverse, offset) = lines.to_integers();
        let [errors] = sums::<N, 1>(|i, lane| {
            let q = round(clamp(self.values[i] * inverse[lane] + offset[lane], 0.0, high));
            let off = self.values[i] + lines.minimum[lane] - lines.scale[lane] * q;
            [self.weights[i] * off * off]
        });
        errors
    }

    /// The best lines through the integers nearest to eight lines, and what each takes away from `sum(w x^2)`.
    #[inline(always)]
    fn turn(&self, lines: &Lines, high: f32, minimum: Minimum) -> (Lines, Lanes) {
        let (inverse, offset) = lines.to_integers();
        let [q, qq, xq] = sums::<N, 3>(|i, lane| {
            let q = round(clamp(self.values[i] * inverse[lane] + offset[lane], 0.0, high));
            let wq = self.weights[i] * q;
            [wq, wq * q, self.weighted[i] * q]
        });
        let (mut found, mut explained) = (Lines::ZERO, [0.0; LANES]);
        for lane in 0..LANES {
            let (q, qq, xq) = (q[lane], qq[lane], xq[lane]);
            let determinant = self.w * qq - q * q;
            let scale = (self.w * xq - self.wx * q) / determinant;
            let at_zero = (qq * self.wx - q * xq) / determinant;
            // Where all integers are one number, the determinant is zero but for rounding, and any slope would do. The
            // constant keeps the quotient finite where that number is zero.
            let through_zero = xq / (qq + f32::MIN_POSITIVE);
            let flat = determinant <= FLAT * self.w * qq;
            let limited = flat || (minimum == Minimum::NotNegative && at_zero > 0.0);
            let (scale, at_zero) = if limited { (through_zero, 0.0) } else { (scale, at_zero) };
            found.scale[lane] = scale;
            found.minimum[lane] = -at_zero;
            explained[lane] = if scale > 0.0 { scale * xq + at_zero * self.wx } else { f32::MIN };
        }
        (found, explained)
    }

    /// Scale and minimum that fit best among those tried; the scale is not negative.
    #[inline(always)]
    pub(super) fn fit(&self, high: f32, tries: &Inwards, minimum: Minimum) -> Line {
        let (mut low, mut top) = range(self.values);
        if minimum == Minimum::NotNegative {
            (low, top) = (low.min(0.0), top.max(0.0));
        }
        let step = (top - low) / high;
        let (mut best, mut most) = (Line { scale: step, minimum: -low }, f32::MIN);
        if top - low < NOTHING {
            return Line { scale: 0.0, minimum: if minimum == Minimum::Free { -low } else { 0.0 } };
        }
        for [below, above] in tries {
            let mut lines = Lines::ZERO;
            for lane in 0..LANES {
                let start = low + below[lane] * step;
                lines.scale[lane] = (top - above[lane] * step - start) / high;
                lines.minimum[lane] = -start;
            }
            let (found, explained) = self.turn(&lines, high, minimum);
            let (lane, found_most) = largest(&explained);
            if found_most > most {
                (best, most) = (found.get(lane), found_most);
            }
        }
        best
    }
}

/// Spread of the integers, over their mean square, that is lost in rounding.
const FLAT: f32 = 2e-6;
