//! The float types: each value by itself, nearest, ties to even.

use p64_core::quant::float::to_f16;

/// F32, little-endian.
pub(super) fn f32(values: &[f32], out: &mut [u8]) {
    for (value, out) in values.iter().zip(out.as_chunks_mut::<4>().0) {
        *out = value.to_le_bytes();
    }
}

/// F16, little-endian.
pub(super) fn f16(values: &[f32], out: &mut [u8]) {
    for (value, out) in values.iter().zip(out.as_chunks_mut::<2>().0) {
        *out = to_f16(*value);
    }
}

/// BF16, little-endian: the upper half of the F32, rounded. The caller has refused what is not finite or rounds up to
/// infinity.
pub(super) fn bf16(values: &[f32], out: &mut [u8]) {
    for (value, out) in values.iter().zip(out.as_chunks_mut::<2>().0) {
        let bits = value.to_bits();
        let [_, _, low, high] = bits.wrapping_add(0x7fff + (bits >> 16 & 1)).to_le_bytes();
        *out = [low, high];
    }
}
