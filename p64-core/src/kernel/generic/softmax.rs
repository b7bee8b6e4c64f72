//! Softmax.
#![forbid(unsafe_code)]

/// `x[i] = exp(x[i] - max) / sum`, in place; the sum is taken in `f64`. An empty slice stays empty.
///
/// Where every value is minus infinity there is no distribution: the result is NaN.
pub fn softmax(x: &mut [f32]) {
    let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0f64;
    for x in x.iter_mut() {
        *x = libm::expf(*x - largest);
        sum += f64::from(*x);
    }
    #[expect(clippy::cast_possible_truncation, reason = "one rounding")]
    let inverse = (1.0 / sum) as f32;
    for x in x {
        *x *= inverse;
    }
}
