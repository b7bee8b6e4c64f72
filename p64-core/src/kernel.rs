//! Arithmetic on matrices and vectors: what the forward pass is made of.
//!
//! ```text
//! Matrix   dtype x rows x cols, proven to fit its bytes      kernel/matrix.rs
//! matmul   y[p][r] = sum over c of W[r][c] * x[p][c]         kernel/matmul.rs, with one of the tables below
//! generic  rmsnorm, layernorm, rope, softmax, silu, gelu, attention   kernel/generic/*.rs
//! ```
//!
//! Which code multiplies is a [`Kernels`] table: [`EXACT`] multiplies dequantised weights with `f32` activations,
//! [`SCALAR`] multiplies integers with 16-bit activations. A result never depends on how many positions are computed
//! together or how rows are spread over [`Workers`]: every output is summed in the same order.

mod arch;
mod exact;
pub mod experts;
pub mod generic;
pub mod level;
pub mod matmul;
pub mod matrix;
mod quantized;
pub mod tolerance;
pub mod workers;

pub use level::Level;
pub use matmul::{MatmulScratch, gemv, matmul};
pub use matrix::{Matrix, dequantize, is_supported};
pub use workers::{Serial, Workers};

use crate::layout::dtype::DType;
use crate::quant::ActivationBlock;

/// What the activations are rounded to before they meet the weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Activations {
    /// Not at all: the exact path, with which the other is compared.
    F32,
    /// To 16 bits in blocks of 32 where the weights are integers: the production path. Float and ternary weights use
    /// `f32` activations here too.
    #[default]
    Quantized,
}

/// Computes rows `first..` of a product into `out`, which holds `n` positions for each row.
///
/// `x` holds `n` runs of `cols` activations.
pub(crate) type ExactRows = fn(w: &Matrix<'_>, first: usize, x: &[f32], n: usize, out: &mut [f32]);

/// The same over quantised activations: `x` holds `n` runs of `cols / 32` blocks.
pub(crate) type QuantizedRows = fn(w: &Matrix<'_>, first: usize, x: &[ActivationBlock], n: usize, out: &mut [f32]);

/// The code for one element type, and with it the activations it wants.
#[derive(Clone, Copy)]
pub(crate) enum Rows {
    Exact(ExactRows),
    Quantized(QuantizedRows),
}

/// A set of row kernels: one table for exact arithmetic, one for each instruction set level of the quantised kind.
pub struct Kernels {
    name: &'static str,
    rows: fn(DType) -> Option<Rows>,
}

/// `f32` activations, weights dequantised on the fly.
pub static EXACT: Kernels = Kernels { name: "exact", rows: exact::rows };

/// 16-bit activations and integer sums, in portable code.
pub static SCALAR: Kernels = Kernels { name: "scalar", rows: quantized::rows };

#[cfg(target_arch = "x86_64")]
static AVX2: Kernels = Kernels { name: "avx2", rows: arch::x86_64::avx2::rows };

#[cfg(target_arch = "x86_64")]
static AVX512: Kernels = Kernels { name: "avx512", rows: arch::x86_64::avx512::rows };

impl Kernels {
    /// The table for a kind of activations.
    #[must_use]
    pub fn best(activations: Activations) -> &'static Self {
        match activations {
            Activations::F32 => &EXACT,
            Activations::Quantized => Self::of(Level::current()),
        }
    }

    /// The table of quantised activations for a level, or the best one that this processor has.
    #[must_use]
    pub fn of(level: Level) -> &'static Self {
        #[cfg(target_arch = "x86_64")]
        match level.min(Level::detect()) {
            Level::Scalar => &SCALAR,
            Level::Avx2 => &AVX2,
            Level::Avx512 => &AVX512,
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = level;
            &SCALAR
        }
    }

    /// What people call the table.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn rows(&self, dtype: DType) -> Option<Rows> {
        (self.rows)(dtype)
    }
}

impl core::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Kernels").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests;
