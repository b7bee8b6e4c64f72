//! How far a product may be from the `f64` dot product of the dequantised weights: one table by type, used by the tests
//! of every language and device.
//!
//! A tolerance is relative to `|w| * |x|`, the Euclidean norms of the weight row and of the activations in `f64`: the
//! largest value that the product could have. It covers what a kernel adds (rounding of sums, and of activations on the
//! production path), not what quantising the weights lost.
#![forbid(unsafe_code)]

use super::Activations;
use crate::layout::dtype::DType;

/// What a kernel may be off by for one element type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// The type.
    pub dtype: DType,
    /// With `f32` activations.
    pub exact: f64,
    /// On the production path.
    pub quantized: f64,
}

/// The products of two `f32` vectors in eight lanes: rounding alone.
const EXACT: f64 = 1e-6;

/// Activations rounded to 16 bits in blocks of 32. Each is off by at most half a step, `largest / 65278`, so that a
/// block's products are off by at most `sum |w| * largest / 65534 <= sqrt(32) * |w| * |x| / 65278`, which is 8.67e-5.
/// The rest is rounding of sums.
const SIXTEEN_BITS: f64 = 8.8e-5;

/// Every type with a kernel, in a build that has them all. Types with rows side by side give the results of their stock types.
pub const TABLE: [Tolerance; 30] = [
    row(DType::F32, EXACT),
    row(DType::F16, EXACT),
    row(DType::BF16, EXACT),
    row(DType::Q4_0, SIXTEEN_BITS),
    row(DType::Q4_1, SIXTEEN_BITS),
    row(DType::Q5_0, SIXTEEN_BITS),
    row(DType::Q5_1, SIXTEEN_BITS),
    row(DType::Q8_0, SIXTEEN_BITS),
    row(DType::Q2_K, SIXTEEN_BITS),
    row(DType::Q3_K, SIXTEEN_BITS),
    row(DType::Q4_K, SIXTEEN_BITS),
    row(DType::Q5_K, SIXTEEN_BITS),
    row(DType::Q6_K, SIXTEEN_BITS),
    row(DType::IQ2_XXS, SIXTEEN_BITS),
    row(DType::IQ2_XS, SIXTEEN_BITS),
    row(DType::IQ3_XXS, SIXTEEN_BITS),
    row(DType::IQ1_S, SIXTEEN_BITS),
    row(DType::IQ4_NL, SIXTEEN_BITS),
    row(DType::IQ3_S, SIXTEEN_BITS),
    row(DType::IQ2_S, SIXTEEN_BITS),
    row(DType::IQ4_XS, SIXTEEN_BITS),
    row(DType::IQ1_M, SIXTEEN_BITS),
    row(DType::TQ1_0, SIXTEEN_BITS),
    row(DType::TQ2_0, SIXTEEN_BITS),
    row(DType::MXFP4, SIXTEEN_BITS),
    row(DType::NVFP4, SIXTEEN_BITS),
    row(DType::Q1_0, SIXTEEN_BITS),
    row(DType::Q2_0, SIXTEEN_BITS),
    row(DType::Q4KSoa, SIXTEEN_BITS),
    row(DType::Ternary, EXACT),
];

const fn row(dtype: DType, quantized: f64) -> Tolerance {
    Tolerance { dtype, exact: EXACT, quantized }
}

/// The tolerance for a type and a kind of activations; `None` for a type without a kernel.
#[must_use]
pub fn tolerance(dtype: DType, activations: Activations) -> Option<f64> {
    let row = TABLE.iter().find(|row| row.dtype == dtype.stock())?;
    Some(match activations {
        Activations::F32 => row.exact,
        Activations::Quantized => row.quantized,
    })
}

#[cfg(test)]
mod tests {
    use super::super::is_supported;
    use super::*;

    /// Loosening a tolerance means changing this test too, with a reason.
    #[test]
    fn no_tolerance_is_slacker_than_agreed() {
        for row in TABLE {
            let float = matches!(row.dtype, DType::F32 | DType::F16 | DType::BF16 | DType::Ternary);
            assert!(row.exact <= 1e-6, "{}", row.dtype);
            assert!(row.quantized <= if float { 1e-6 } else { 8.8e-5 }, "{}", row.dtype);
        }
    }

    #[test]
    fn every_type_with_a_kernel_has_a_tolerance() {
        for dtype in DType::ALL {
            let tolerated = tolerance(*dtype, Activations::F32).is_some();
            // A build without `all-types` keeps the whole table.
            assert!(tolerated == is_supported(*dtype) || (tolerated && cfg!(not(feature = "all-types"))), "{dtype}");
        }
    }
}
