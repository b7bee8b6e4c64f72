//! The arithmetic that kernels are compared with: one obvious loop in `f64`.

use std::vec::Vec;

/// The dot product, and the product of the norms that tolerances are relative to.
pub fn dot(w: &[f32], x: &[f32]) -> (f64, f64) {
    assert_eq!(w.len(), x.len());
    let products = w.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x));
    let norm = |v: &[f32]| v.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    (products.sum(), norm(w) * norm(x))
}

pub fn softmax(x: &[f32]) -> Vec<f64> {
    let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = x.iter().map(|x| (f64::from(*x) - f64::from(largest)).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

#[track_caller]
pub fn assert_close(ours: &[f32], exact: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), exact.len());
    for (i, (ours, exact)) in ours.iter().zip(exact).enumerate() {
        let error = (f64::from(*ours) - exact).abs();
        assert!(error <= tolerance * exact.abs().max(1.0), "{i}: {ours} is {error:e} from {exact}");
    }
}
