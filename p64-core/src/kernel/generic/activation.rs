//! The non-linear functions of feed-forward networks, and their products with the up projection.
#![forbid(unsafe_code)]

use super::exp::exp;
use crate::kernel::arch::{Eight, Task, dispatch};

/// `x / (1 + exp(-x))`.
#[cfg_attr(target_arch = "x86_64", inline(always))]
#[must_use]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, the usual approximation of `x * normal_cdf(x)`.
#[cfg_attr(target_arch = "x86_64", inline(always))]
#[must_use]
pub fn gelu(x: f32) -> f32 {
    const SQRT_2_OVER_PI: f32 = 0.797_884_6;
    const CUBIC: f32 = 0.044_715;
    0.5 * x * (1.0 + tanh(SQRT_2_OVER_PI * x * (1.0 + CUBIC * x * x)))
}

/// `tanh(x)` with an error of some 2^-23: enough where 1 is added to it.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn tanh(x: f32) -> f32 {
    let t = exp(-2.0 * x.abs());
    ((1.0 - t) / (1.0 + t)).copysign(x)
}

/// [`gelu`] as GGML's CPU code evaluates it in gated networks, through a table indexed by f16: argument and result are
/// rounded to f16. Arguments that f16 does not hold, which GGML turns to infinity, are not rounded.
#[cfg_attr(target_arch = "x86_64", inline(always))]
#[must_use]
pub fn gelu_f16(x: f32) -> f32 {
    /// The smallest magnitude that rounds to infinity.
    const BEYOND: f32 = 65_520.0;
    let beyond = x.abs() >= BEYOND;
    let value = gelu(if beyond { x } else { nearest_f16(x) });
    if beyond { value } else { nearest_f16(value) }
}

/// The nearest f16, as `f32`, of a number below 65520 in magnitude; ties to even. As operations that vectors have.
#[cfg_attr(target_arch = "x86_64", inline(always))]
fn nearest_f16(x: f32) -> f32 {
    /// Smallest normal number.
    const NORMAL: f32 = 6.103_515_6e-5;
    let bits = x.to_bits();
    let normal = f32::from_bits(bits.wrapping_add(0xfff).wrapping_add(bits >> 13 & 1) & !0x1fff);
    // Numbers between 1/2 and 1 lie 2^-24 apart, as the subnormal ones of f16 do.
    let subnormal = ((x.abs() + 0.5) - 0.5).copysign(x);
    let nearest = if x.abs() < NORMAL { subnormal } else { normal };
    if x.is_nan() { x } else { nearest }
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
    dispatch(Silu(gate, up));
}

/// `gate[i] = gelu(gate[i]) * up[i]`.
pub fn gelu_gate(gate: &mut [f32], up: &[f32]) {
    dispatch(Gelu(gate, up));
}

/// `gate[i] = gelu_f16(gate[i]) * up[i]`.
pub fn gelu_f16_gate(gate: &mut [f32], up: &[f32]) {
    dispatch(GeluF16(gate, up));
}

/// A gated activation to come.
macro_rules! gated {
    ($name:ident, $function:ident) => {
        struct $name<'a>(&'a mut [f32], &'a [f32]);

        impl Task for $name<'_> {
            type Output = ();

            #[inline(always)]
            fn run<E: Eight>(self, _: E) {
                debug_assert!(self.0.len() == self.1.len());
                for (gate, up) in self.0.iter_mut().zip(self.1) {
                    *gate = $function(*gate) * up;
                }
            }
        }
    };
}

gated!(Silu, silu);
gated!(Gelu, gelu);
gated!(GeluF16, gelu_f16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quant::float::{from_f16, to_f16};

    #[test]
    fn halves_are_the_nearest() {
        for bits in 0..=u16::MAX {
            let half = from_f16(&bits.to_le_bytes());
            if !half.is_finite() {
                continue;
            }
            // The number itself, those beside it, and around the middle between it and the next.
            let next = from_f16(&(bits & 0x7fff).saturating_add(1).to_le_bytes()).copysign(half);
            let middle = if next.is_finite() { (half + next) / 2.0 } else { half };
            for value in [half, middle] {
                for value in [value, value.next_up(), value.next_down()].into_iter().filter(|v| v.abs() < 65_520.0) {
                    let expected = from_f16(&to_f16(value));
                    assert_eq!(nearest_f16(value).to_bits(), expected.to_bits(), "{value:e}");
                }
            }
        }
        assert!(nearest_f16(f32::NAN).is_nan());
    }
}
