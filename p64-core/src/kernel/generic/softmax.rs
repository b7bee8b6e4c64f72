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
        let (chunks, rest) = chunks(x);
        for chunk in chunks {
            for (x, sum) in chunk.iter_mut().zip(&mut sums) {
                *x = exp(*x - largest);
                *sum += f64::from(*x);
            }
        }
        for (i, x) in rest.iter_mut().enumerate() {
            *x = exp(*x - largest);
            sums[i % LANES] += f64::from(*x);
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

/// Whole vectors and the rest; where there are no vectors, all of it is the rest, and the code there once.
#[inline(always)]
fn chunks(x: &mut [f32]) -> (&mut [[f32; LANES]], &mut [f32]) {
    if cfg!(target_arch = "x86_64") { x.as_chunks_mut() } else { (&mut [], x) }
}

#[inline(always)]
fn largest(x: &mut [f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = chunks(x);
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = if *x > *lane { *x } else { *lane };
        }
    }
    let lanes = lanes.into_iter().fold(f32::NEG_INFINITY, f32::max);
    rest.iter().copied().fold(lanes, f32::max)
}
