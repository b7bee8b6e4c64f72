//! Softmax.
#![forbid(unsafe_code)]

use super::exp::exp;
use crate::kernel::arch::{Eight, Task, dispatch};

/// Independent maxima and partial sums.
const LANES: usize = 8;

/// `x[i] = exp(x[i] - max) / sum`, in place; the sum is taken in `f64`. An empty slice stays empty.
///
/// Where every value is minus infinity there is no distribution: the result is NaN.
pub fn softmax(x: &mut [f32]) {
    dispatch(Softmax(x));
}

struct Softmax<'a>(&'a mut [f32]);

impl Task for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Eight>(self, _: E) {
        let Self(x) = self;
        let largest = largest(x);
        let mut sums = [0.0f64; LANES];
        let (chunks, rest) = x.as_chunks_mut::<LANES>();
        for chunk in chunks {
            for (x, sum) in chunk.iter_mut().zip(&mut sums) {
                *x = exp(*x - largest);
                *sum += f64::from(*x);
            }
        }
        for (x, sum) in rest.iter_mut().zip(&mut sums) {
            *x = exp(*x - largest);
            *sum += f64::from(*x);
        }
        let [a, b, c, d, e, f, g, h] = sums;
        let sum = ((a + e) + (c + g)) + ((b + f) + (d + h));
        #[expect(clippy::cast_possible_truncation, reason = "one rounding")]
        let inverse = (1.0 / sum) as f32;
        for x in x {
            *x *= inverse;
        }
    }
}

#[inline(always)]
fn largest(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = if *x > *lane { *x } else { *lane };
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = if *x > *lane { *x } else { *lane };
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, f32::max)
}
