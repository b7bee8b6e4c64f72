//! The mean that the norms take.
#![forbid(unsafe_code)]

/// The mean of `f` over `x`: values summed in `f64`, the mean rounded to `f32`, as GGML does.
#[inline]
pub(super) fn mean(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
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
