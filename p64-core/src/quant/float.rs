//! Plain floats: F32, F16 and BF16, little-endian, one value an element, and the f16 fields of the block formats.
//!
//! ```text
//! F32    4 bytes   IEEE binary32
//! F16    2 bytes   IEEE binary16
//! BF16   2 bytes   the upper half of a binary32
//! ```
#![forbid(unsafe_code)]

/// The value of a little-endian F32.
#[inline]
#[must_use]
pub const fn from_f32(bytes: &[u8; 4]) -> f32 {
    f32::from_le_bytes(*bytes)
}

/// The value of a little-endian BF16; every bit pattern is kept.
#[inline]
#[must_use]
pub const fn from_bf16(bytes: &[u8; 2]) -> f32 {
    let [low, high] = *bytes;
    f32::from_le_bytes([0, 0, low, high])
}

/// The value of a little-endian F16, exact; NaN stays NaN, its payload is not promised.
#[inline]
#[must_use]
pub fn from_f16(bytes: &[u8; 2]) -> f32 {
    half_to_f32(u16::from_le_bytes(*bytes))
}

/// The two bytes of the F16 nearest to `value`, ties to even.
#[inline]
#[must_use]
pub fn to_f16(value: f32) -> [u8; 2] {
    half::f16::from_f32_const(value).to_le_bytes()
}

/// Without a branch on the usual path, so that the loops over blocks stay straight. Equal to `half`'s conversion for
/// every finite value and infinity (tested over all bit patterns).
#[inline]
fn half_to_f32(bits: u16) -> f32 {
    // Shifted into place, the exponent is too small by 127 - 15; multiplying by 2^112 corrects normal and subnormal
    // numbers alike. Infinity and NaN come out as 2^16 and above, which no finite half is.
    let magnitude = f32::from_bits(u32::from(bits & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    let special = if magnitude >= 65536.0 { 0x7f80_0000 } else { 0 };
    f32::from_bits(magnitude.to_bits() | special | u32::from(bits & 0x8000) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_converts_as_the_half_crate_does() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (from_f16(&bits.to_le_bytes()), half::f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan()), "{bits:#x}");
        }
    }

    #[test]
    fn every_bf16_keeps_its_bits() {
        for bits in 0..=u16::MAX {
            assert_eq!(from_bf16(&bits.to_le_bytes()).to_bits(), u32::from(bits) << 16);
        }
    }

    #[test]
    fn f16_rounds_to_even() {
        assert_eq!(to_f16(1.0 + 1.0 / 2048.0), [0x00, 0x3c]);
        assert_eq!(to_f16(1.0 + 3.0 / 2048.0), [0x02, 0x3c]);
        assert_eq!(to_f16(65520.0), [0x00, 0x7c]);
    }
}
