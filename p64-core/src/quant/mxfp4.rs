//! MXFP4: 4-bit floats with an 8-bit power of two for 32 values (GGML type 39, the Open Compute MX format).
//!
//! ```text
//! 0       u8        e, the exponent of the scale: 2^(e - 127)
//! 1..17   u8 x 16   low nibble: elements 0..16, high nibble: elements 16..32; a nibble is sign, 2-bit exponent, 1-bit
//!                   fraction: 0, 1/2, 1, 3/2, 2, 3, 4, 6
//! value = 2^(e - 128) * (twice the float)
//! ```
//!
//! The standard's NaN (e = 255) is no NaN in GGML but 2^127, and so it is here.
#![forbid(unsafe_code)]

use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 32, bytes: 17, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    exponent: u8,
    quants: [u8; 16],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 1] {
    let raw: &Raw = transmute_ref!(block);
    let exponent = u32::from(raw.exponent);
    // Half of the scale: for the lowest two exponents a subnormal.
    let bits = if exponent < 2 { 0x0020_0000 << exponent } else { (exponent - 1) << 23 };
    [Group {
        quants: super::scales::nibbles(&raw.quants).map(doubled_fp4),
        scales: [f32::from_bits(bits)],
        mins: [0.0],
    }]
}

/// Twice the 4-bit float of a nibble: 0, 1, 2, 3, 4, 6, 8, 12, and these negated from 8 up.
#[inline(always)]
pub(super) fn doubled_fp4(nibble: i16) -> i16 {
    let low = nibble & 7;
    let magnitude = low + (low - 4).max(0) + 2 * (low - 6).max(0);
    let negative = -(nibble >> 3);
    (magnitude ^ negative) - negative
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nibbles_are_the_floats_of_the_standard_doubled() {
        let expected = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
        for (nibble, expected) in (0..).zip(expected) {
            assert_eq!(doubled_fp4(nibble), expected);
        }
    }
}
