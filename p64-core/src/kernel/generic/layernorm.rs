//! Layer normalisation.
#![forbid(unsafe_code)]

use super::mean::mean;

/// `x[i] = (x[i] - mean(x)) / sqrt(variance(x) + eps) * weight[i]`, in place. A bias is the caller's to add.
///
/// The sums are taken in `f64`, mean and variance rounded to `f32`.
pub fn layernorm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    debug_assert!(x.len() == weight.len());
    let centre = mean(x, |x| x);
    let scale = 1.0 / libm::sqrtf(mean(x, |x| (x - centre) * (x - centre)) + eps);
    for (x, weight) in x.iter_mut().zip(weight) {
        *x = (*x - centre) * scale * weight;
    }
}
