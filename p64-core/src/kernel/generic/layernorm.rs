//! Layer normalisation.
#![forbid(unsafe_code)]

/// `x[i] = (x[i] - mean(x)) / sqrt(variance(x) + eps) * weight[i]`, in place. A bias is the caller's to add.
///
/// The sums are taken in `f64`, mean and variance rounded to `f32`.
pub fn layernorm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    debug_assert!(x.len() == weight.len());
    let mean = mean(x, |x| x);
    let scale = 1.0 / libm::sqrtf(self::mean(x, |x| (x - mean) * (x - mean)) + eps);
    for (x, weight) in x.iter_mut().zip(weight) {
        *x = (*x - mean) * scale * weight;
    }
}

/// The mean of `f` over `x`.
#[inline]
fn mean(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0f64; 4];
    let (chunks, rest) = x.as_chunks::<4>();
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += f64::from(f(*x));
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum += f64::from(f(*x));
    }
    let [a, b, c, d] = sums;
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "one rounding, as documented")]
    let mean = (((a + b) + (c + d)) / x.len() as f64) as f32;
    mean
}
