//! How far two sets of logits are from each other.

/// The largest difference; NaN counts as infinite.
pub fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |max, d| if d.is_nan() { f32::INFINITY } else { d.max(max) })
}

/// Root of the mean squared difference.
pub fn rms(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let squares = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
    (squares.sum::<f64>() / a.len() as f64).sqrt()
}

/// Kullback-Leibler divergence of the distribution that `found` stands for from the one that `reference` does.
pub fn divergence(reference: &[f32], found: &[f32]) -> f64 {
    assert_eq!(reference.len(), found.len());
    let (p_total, q_total) = (log_sum_exp(reference), log_sum_exp(found));
    let terms = reference.iter().zip(found).map(|(p, q)| {
        let (p, q) = (f64::from(*p) - p_total, f64::from(*q) - q_total);
        p.exp() * (p - q)
    });
    terms.sum()
}

fn log_sum_exp(logits: &[f32]) -> f64 {
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    largest + logits.iter().map(|logit| (f64::from(*logit) - largest).exp()).sum::<f64>().ln()
}
