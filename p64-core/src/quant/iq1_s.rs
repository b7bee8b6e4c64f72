//! IQ1_S: a codebook of 8-element trits with a shift, 256 values, a 3-bit scale for each 32 (GGML type 19).
//!
//! ```text
//! 0..2     f16       d
//! 2..34    u8 x 32   lower 8 bits of the codebook entries, of 8 elements each
//! 34..50   u16 x 8   one for each 32 elements; bits 3l and up: upper 3 bits of entry l; bits 12..15: scale;
//!                    bit 15: the shift is -1/8, not 1/8
//! value = (d * (2 * scale + 1)) * (trit + shift)
//! ```
//!
//! Trits and shift are kept as eighths, integers from -9 to 9; dividing the scale by 8 is exact.
#![forbid(unsafe_code)]

use super::codebook::{entry, iq1::CODEBOOK, trits};
use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 50, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    d: [u8; 2],
    lower: [[u8; 4]; 8],
    upper: [[u8; 2]; 8],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let d = from_f16(&raw.d);
    let mut groups = [Group::ZERO; 8];
    for (group, (lower, upper)) in groups.iter_mut().zip(raw.lower.iter().zip(&raw.upper)) {
        let packed = u16::from_le_bytes(*upper);
        let shift = if packed & 0x8000 == 0 { 1 } else { -1 };
        let quants = group.quants.as_chunks_mut::<8>().0.iter_mut();
        for ((quants, lower), l) in quants.zip(lower).zip(0..4) {
            let index = usize::from(*lower) | usize::from(packed >> (3 * l) & 7) << 8;
            *quants = trits(entry(&CODEBOOK, index)).map(|trit| 8 * trit + shift);
        }
        group.scales = [d * f32::from(2 * (packed >> 12 & 7) + 1) * 0.125];
    }
    groups
}
