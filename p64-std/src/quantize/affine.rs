//! Fits of `scale * integer - minimum` to the values of a group, integers from 0 up.
//!
//! Given the integers, scale and minimum are those of a weighted line through (q, x); given the line, the integers are the
//! nearest. [`fit`] starts from ranges a little wider or narrower than that of the values at either end, and takes turns
//! between the two from the best of them.

use super::lanes::{clamp, range, round, sums};
use super::symmetric::{NOTHING, inverse};

/// A line: `value = scale * q - minimum`.
#[derive(Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) scale: f32,
    pub(super) minimum: f32,
}

impl Line {
    /// The nearest integers, 0 to `high`.
    #[inline(always)]
    pub(super) fn quantize<const N: usize>(self, values: &[f32; N], high: f32) -> [f32; N] {
        let (inverse, offset) = self.to_integers();
        values.map(|value| round(clamp(value * inverse + offset, 0.0, high)))
    }

    /// The weighted squared error of the nearest integers.
    #[inline(always)]
    pub(super) fn error<const N: usize>(self, values: &[f32; N], weights: &[f32; N], high: f32) -> f32 {
        let (inverse, offset) = self.to_integers();
        let [error] = sums::<N, 1>(|i| {
            let q = round(clamp(values[i] * inverse + offset, 0.0, high));
            let off = values[i] - (self.scale * q - self.minimum);
            [weights[i] * off * off]
        });
        error
    }

    /// Factor and offset that make integers of values, not yet rounded.
    #[inline(always)]
    fn to_integers(self) -> (f32, f32) {
        let inverse = inverse(self.scale);
        (inverse, self.minimum * inverse)
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

/// What the values of a group say about every line.
pub(super) struct Group<'a, const N: usize> {
    values: &'a [f32; N],
    weights: &'a [f32; N],
    weighted: [f32; N],
    w: f32,
    wx: f32,
}

/// Sums over the integers of a line: of `w q`, `w q^2` and `w x q`.
type Sums = [f32; 3];

impl<'a, const N: usize> Group<'a, N> {
    /// The group of some values.
    #[inline(always)]
    pub(super) fn new(values: &'a [f32; N], weights: &'a [f32; N]) -> Self {
        let mut weighted = [0.0; N];
        for (weighted, (value, weight)) in weighted.iter_mut().zip(values.iter().zip(weights)) {
            *weighted = value * weight;
        }
        let [w, wx] = sums::<N, 2>(|i| [weights[i], weighted[i]]);
        Self { values, weights, weighted, w, wx }
    }

    #[inline(always)]
    fn sums(&self, line: Line, high: f32) -> Sums {
        let (inverse, offset) = line.to_integers();
        sums::<N, 3>(|i| {
            let q = round(clamp(self.values[i] * inverse + offset, 0.0, high));
            let wq = self.weights[i] * q;
            [wq, wq * q, self.weighted[i] * q]
        })
    }

    /// The best line through integers with these sums, and what it takes away from `sum(w x^2)`.
    #[inline(always)]
    fn line(&self, [q, qq, xq]: Sums, minimum: Minimum) -> (Line, f32) {
        let determinant = self.w * qq - q * q;
        if determinant > 0.0 {
            let scale = (self.w * xq - self.wx * q) / determinant;
            let at_zero = (qq * self.wx - q * xq) / determinant;
            if minimum == Minimum::Free || at_zero <= 0.0 {
                return (Line { scale, minimum: -at_zero }, scale * xq + at_zero * self.wx);
            }
        }
        if qq > 0.0 {
            let scale = xq / qq;
            return (Line { scale, minimum: 0.0 }, scale * xq);
        }
        (Line::default(), 0.0)
    }

    /// The best minimum for the integers nearest to a line, its scale given.
    #[inline(always)]
    pub(super) fn minimum(&self, line: Line, high: f32) -> f32 {
        let [q, ..] = self.sums(line, high);
        if self.w > 0.0 { (line.scale * q - self.wx) / self.w } else { 0.0 }
    }

    /// Scale and minimum that fit best among those tried; the scale is not negative.
    #[inline(always)]
    pub(super) fn fit<const GRID: usize>(&self, high: f32, grid: &[f32; GRID], minimum: Minimum) -> Line {
        let (mut low, mut top) = range(self.values);
        if minimum == Minimum::NotNegative {
            (low, top) = (low.min(0.0), top.max(0.0));
        }
        if top - low < NOTHING {
            return Line { scale: 0.0, minimum: if minimum == Minimum::Free { -low } else { (-low).max(0.0) } };
        }
        let step = (top - low) / high;
        let mut best = (Line { scale: step, minimum: -low }, 0.0);
        for below in grid {
            for above in grid {
                let start = low + below * step;
                let line = Line { scale: (top - above * step - start) / high, minimum: -start };
                let found = self.line(self.sums(line, high), minimum);
                if found.1 > best.1 && found.0.scale > 0.0 {
                    best = found;
                }
            }
        }
        for _ in 0..REFITS {
            let found = self.line(self.sums(best.0, high), minimum);
            if found.1 <= best.1 || found.0.scale <= 0.0 {
                break;
            }
            best = found;
        }
        best.0
    }
}

/// Turns between line and integers at the end.
const REFITS: usize = 4;
