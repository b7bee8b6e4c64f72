//! The non-linear functions of feed-forward networks, and their products with the up projection.
#![forbid(unsafe_code)]

use crate::quant::float::{from_f16, to_f16};

/// `x / (1 + exp(-x))`.
#[inline]
#[must_use]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + libm::expf(-x))
}

/// `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, the usual approximation of `x * normal_cdf(x)`.
#[inline]
#[must_use]
pub fn gelu(x: f32) -> f32 {
    const SQRT_2_OVER_PI: f32 = 0.797_884_6;
    const CUBIC: f32 = 0.044_715;
    0.5 * x * (1.0 + libm::tanhf(SQRT_2_OVER_PI * x * (1.0 + CUBIC * x * x)))
}

/// [`gelu`] as GGML's CPU code evaluates it in gated networks, through a table indexed by f16: argument and result are
/// rounded to f16. Arguments that f16 does not hold, which GGML turns to infinity, are not rounded.
#[inline]
#[must_use]
pub fn gelu_f16(x: f32) -> f32 {
    /// The smallest magnitude that rounds to infinity.
    const BEYOND: f32 = 65_520.0;
    if x.abs() >= BEYOND {
        return gelu(x);
    }
    from_f16(&to_f16(gelu(from_f16(&to_f16(x)))))
}

/// `x[i] = cap * tanh(x[i] / cap)`, which keeps every value between `-cap` and `cap`.
pub fn softcap(x: &mut [f32], cap: f32) {
    let inverse = 1.0 / cap;
    for x in x {
        *x = cap * libm::tanhf(*x * inverse);
    }
}

/// `gate[i] = silu(gate[i]) * up[i]`.
pub fn silu_gate(gate: &mut [f32], up: &[f32]) {
    gated(gate, up, silu);
}

/// `gate[i] = gelu(gate[i]) * up[i]`.
pub fn gelu_gate(gate: &mut [f32], up: &[f32]) {
    gated(gate, up, gelu);
}

/// `gate[i] = gelu_f16(gate[i]) * up[i]`.
pub fn gelu_f16_gate(gate: &mut [f32], up: &[f32]) {
    gated(gate, up, gelu_f16);
}

#[inline]
fn gated(gate: &mut [f32], up: &[f32], function: impl Fn(f32) -> f32) {
    debug_assert!(gate.len() == up.len());
    for (gate, up) in gate.iter_mut().zip(up) {
        *gate = function(*gate) * up;
    }
}
