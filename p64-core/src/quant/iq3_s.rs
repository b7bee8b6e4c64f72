//! IQ3_S: a codebook of 4-element magnitudes and 8-bit signs, 256 values, a 4-bit scale for each 32 (GGML type 21).
//!
//! ```text
//! 0..2       f16       d
//! 2..66      u8 x 64   lower 8 bits of the codebook entries, of 4 elements each
//! 66..74     u8 x 8    one for each 32 elements; bit k: the ninth bit of their entry k
//! 74..106    u8 x 32   signs of 8 elements each
//! 106..110   u8 x 4    scales of 32 elements; low nibble: the even ones, high nibble: the odd ones
//! value = (d * (2 * scale + 1)) * (+-magnitude)
//! ```
#![forbid(unsafe_code)]

use super::codebook::{entry, iq3_s::CODEBOOK, iq3_s_magnitudes, with_signs};
use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 110, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    d: [u8; 2],
    lower: [[[u8; 2]; 4]; 8],
    ninth: [u8; 8],
    signs: [[u8; 4]; 8],
    scales: [u8; 4],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let d = from_f16(&raw.d);
    let mut groups = [Group::ZERO; 8];
    let parts = raw.lower.iter().zip(raw.ninth).zip(&raw.signs);
    for (group, ((lower, ninth), signs)) in groups.iter_mut().zip(parts) {
        let quants = group.quants.as_chunks_mut::<8>().0.iter_mut();
        for (((quants, [first, last]), signs), l) in quants.zip(lower).zip(signs).zip(0..4) {
            let index = |lower: u8, bit: u8| usize::from(lower) | usize::from(ninth >> bit & 1) << 8;
            let (first, last) = (index(*first, 2 * l), index(*last, 2 * l + 1));
            *quants = with_signs(iq3_s_magnitudes(entry(&CODEBOOK, first), entry(&CODEBOOK, last)), *signs);
        }
    }
    for (pair, packed) in groups.as_chunks_mut::<2>().0.iter_mut().zip(raw.scales) {
        for (group, scale) in pair.iter_mut().zip([packed & 0x0f, packed >> 4]) {
            group.scales = [d * f32::from(1 + 2 * scale)];
        }
    }
    groups
}
