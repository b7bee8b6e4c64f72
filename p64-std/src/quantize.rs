//! Encoders: rows of `f32` values to the element types that weights are kept in.
//!
//! ```text
//! Rules, Profile   which type a tensor is to have                      quantize/{rules,profile,mix}.rs
//! Imatrix          how much each column of it counts                   quantize/imatrix.rs
//! encode_rows      values + importance -> blocks                       quantize/{linear,affine,k_*,iq4,trits}.rs
//! TensorError      how far the blocks are from the values
//! ```
//!
//! Every encoder chooses scales and integers by the squared error of what a reader will compute: integers are chosen
//! against the scale as it is stored, rounded to F16 and to the bits of its group, never against the ideal one. Q8_0,
//! and Q4_0 without importance, are the exceptions: there the bytes are those of GGML's reference code.
#![forbid(unsafe_code)]

mod affine;
mod error;
mod float;
mod imatrix;
mod iq4;
mod k_affine;
mod k_symmetric;
mod lanes;
mod linear;
mod measure;
mod mix;
mod pack;
mod profile;
mod rules;
mod symmetric;
mod trits;
mod weights;

pub use error::QuantizeError;
pub use imatrix::{Imatrix, Importance};
pub use measure::TensorError;
pub use profile::Profile;
pub use rules::{ModelFacts, Rule, Rules, Target, TensorFacts, is_weight};
pub use trits::{TernaryScale, encode_ternary};

use p64_core::{DType, Shape};

/// Encodes one row: values, importance of each column (scaled to at most 1), blocks.
type EncodeRow = fn(values: &[f32], importance: Option<&[f32]>, out: &mut [u8]);

/// Whether [`encode_rows`] writes the type.
#[must_use]
pub fn supports(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16 | DType::Ternary) || encoder(dtype).is_some()
}

/// Encodes rows of `row_len` values each, `values.len() / row_len` of them, into `out`.
///
/// `importance` weighs the squared error of each column, the same for every row: the mean squared activation that an
/// importance matrix records. It changes the choice of scales and integers, never the format. Types without a choice
/// (the floats, Q8_0, ternary) ignore it.
///
/// [`DType::Ternary`] has one scale for a whole tensor, so that `values` are the whole tensor there; a caller that has it in
/// parts takes [`TernaryScale`] and [`encode_ternary`].
///
/// # Errors
/// [`QuantizeError`]: a type that is not written, lengths that do not fit each other, a value that is no finite number or
/// that the type's scales cannot reach, an importance below zero or not finite. `out` is unspecified then.
pub fn encode_rows(
    dtype: DType,
    values: &[f32],
    row_len: usize,
    importance: Option<&[f32]>,
    out: &mut [u8],
) -> Result<(), QuantizeError> {
    let need = encoded_len(dtype, values.len(), row_len)?;
    if out.len() != need {
        return Err(QuantizeError::Output { expected: need, found: out.len() });
    }
    check_values(dtype, values)?;
    let importance = importance.map(|columns| weights::normalized(columns, row_len)).transpose()?;
    match dtype {
        DType::F32 => float::f32(values, out),
        DType::F16 => float::f16(values, out),
        DType::BF16 => float::bf16(values, out),
        DType::Ternary => trits::encode_tensor(values, out),
        _ => {
            let encode = encoder(dtype).ok_or(QuantizeError::Unsupported(dtype))?;
            let row_bytes = encoded_len(dtype, row_len, row_len)?;
            if row_bytes > 0 {
                for (row, out) in values.chunks_exact(row_len).zip(out.chunks_exact_mut(row_bytes)) {
                    encode(row, importance.as_deref(), out);
                }
            }
        }
    }
    Ok(())
}

/// Bytes of `len` values in rows of `row_len`.
fn encoded_len(dtype: DType, len: usize, row_len: usize) -> Result<usize, QuantizeError> {
    if !supports(dtype) {
        return Err(QuantizeError::Unsupported(dtype));
    }
    let whole = len == 0 || (row_len > 0 && len.is_multiple_of(row_len));
    let refuse = || QuantizeError::Rows { dtype, len, row_len };
    if !whole {
        return Err(refuse());
    }
    if dtype == DType::Ternary {
        return p64_core::quant::ternary::byte_len(len).ok_or_else(refuse);
    }
    let row = u32::try_from(row_len).ok().and_then(|row| Shape::new(&[row])).ok_or_else(refuse)?;
    let bytes = dtype.byte_len(&row).ok().flatten().and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(refuse)?;
    len.checked_div(row_len).unwrap_or(0).checked_mul(bytes).ok_or_else(refuse)
}

/// Refuses what is no number, and what is larger than the type's scales reach.
fn check_values(dtype: DType, values: &[f32]) -> Result<(), QuantizeError> {
    let limit = largest(dtype);
    // A fold without a branch, which compilers turn into vector code; NaN fails the comparison.
    let fine = values.iter().fold(true, |fine, value| fine & (value.abs() <= limit));
    if fine {
        return Ok(());
    }
    let found = values.iter().enumerate().find(|(_, value)| value.is_nan() || value.abs() > limit);
    let (index, value) = found.map_or((0, f32::NAN), |(index, value)| (index, *value));
    if value.is_finite() {
        Err(QuantizeError::TooLarge { dtype, index, value, limit })
    } else {
        Err(QuantizeError::NotFinite { index, value })
    }
}

/// Largest magnitude that every block of the type can hold: what its smallest integer range makes of an F16 scale.
fn largest(dtype: DType) -> f32 {
    const F16: f32 = 65504.0;
    match dtype {
        DType::F16 | DType::Q4_1 | DType::Q5_1 | DType::TQ1_0 | DType::TQ2_0 => F16,
        DType::BF16 => f32::from_bits(0x7f7f_0000),
        DType::Q4_0 => F16 * 7.0,
        DType::Q5_0 | DType::Q2_K => F16 * 15.0,
        DType::Q8_0 => F16 * 127.0,
        DType::Q3_K => F16 * 31.0 * 3.0,
        DType::Q4_K | DType::Q5_K => F16 * 63.0,
        DType::Q6_K => F16 * 127.0 * 31.0,
        DType::IQ4_NL => F16 * 113.0,
        DType::IQ4_XS => F16 * 31.0 * 113.0,
        _ => f32::MAX,
    }
}

fn encoder(dtype: DType) -> Option<EncodeRow> {
    Some(match dtype {
        DType::Q4_0 => linear::q4_0,
        DType::Q4_1 => linear::q4_1,
        DType::Q5_0 => linear::q5_0,
        DType::Q5_1 => linear::q5_1,
        DType::Q8_0 => linear::q8_0,
        DType::Q2_K => k_affine::q2_k,
        DType::Q3_K => k_symmetric::q3_k,
        DType::Q4_K => k_affine::q4_k,
        DType::Q5_K => k_affine::q5_k,
        DType::Q6_K => k_symmetric::q6_k,
        DType::IQ4_NL => iq4::iq4_nl,
        DType::IQ4_XS => iq4::iq4_xs,
        DType::TQ1_0 => trits::tq1_0,
        DType::TQ2_0 => trits::tq2_0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
