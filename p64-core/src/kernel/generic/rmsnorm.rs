//! Root-mean-square normalisation.
#![forbid(unsafe_code)]

use super::mean::mean;

/// `out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i]`. All three have the same length.
pub fn rmsnorm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    debug_assert!(x.len() == weight.len() && x.len() == out.len());
    let scale = scale(x, eps);
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        *out = x * scale * weight;
    }
}

/// [`rmsnorm`] in place.
pub fn rmsnorm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    debug_assert!(x.len() == weight.len());
    let scale = scale(x, eps);
    for (x, weight) in x.iter_mut().zip(weight) {
        *x = *x * scale * weight;
    }
}

/// Normalises each head of `x` (heads x `weight.len()`) by itself, in place, with the same weights.
pub fn rmsnorm_heads(x: &mut [f32], weight: &[f32], eps: f32) {
    debug_assert!(weight.is_empty() || x.len().is_multiple_of(weight.len()));
    for head in x.chunks_exact_mut(weight.len().max(1)) {
        rmsnorm_in_place(head, weight, eps);
    }
}

/// `1 / sqrt(mean(x^2) + eps)`.
fn scale(x: &[f32], eps: f32) -> f32 {
    1.0 / libm::sqrtf(mean(x, |x| x * x) + eps)
}
