//! IQ2_S: a codebook of 8-element magnitudes and 8-bit signs, 256 values, a 4-bit scale for each 16 (GGML type 22).
//!
//! ```text
//! 0..2     f16       d
//! 2..34    u8 x 32   lower 8 bits of the codebook entries, of 8 elements each
//! 34..66   u8 x 32   their signs
//! 66..74   u8 x 8    upper 2 bits of four entries each, from bit 0 up
//! 74..82   u8 x 8    scales; low nibble: first 16 of 32 elements, high nibble: last 16
//! value = (d * (scale + 1/2) / 4) * (+-magnitude)
//! ```
#![forbid(unsafe_code)]

use super::codebook::{entry, iq2_magnitudes, iq2_s::CODEBOOK, with_signs};
use super::float::from_f16;
use super::group::Group;
use super::scales::half_steps;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 82, scales per group: 2);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    d: [u8; 2],
    lower: [[u8; 4]; 8],
    signs: [[u8; 4]; 8],
    upper: [u8; 8],
    scales: [u8; 8],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<2>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let d = from_f16(&raw.d);
    let mut groups = [Group::ZERO; 8];
    let parts = raw.lower.iter().zip(&raw.signs).zip(raw.upper).zip(raw.scales);
    for (group, (((lower, signs), upper), scales)) in groups.iter_mut().zip(parts) {
        let quants = group.quants.as_chunks_mut::<8>().0.iter_mut();
        for (((quants, lower), signs), l) in quants.zip(lower).zip(signs).zip(0..4) {
            let index = usize::from(*lower) | usize::from(upper >> (2 * l) & 3) << 8;
            *quants = with_signs(iq2_magnitudes(entry(&CODEBOOK, index)), *signs);
        }
        group.scales = half_steps(d, scales);
    }
    groups
}
