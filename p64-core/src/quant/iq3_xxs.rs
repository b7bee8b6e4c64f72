//! IQ3_XXS: a codebook of 4-element magnitudes and 7-bit signs, 256 values, a 4-bit scale for each 32 (GGML type 18).
//!
//! ```text
//! 0..2     f16       d
//! 2..66    u8 x 64   codebook entries of 4 elements each
//! 66..98   u32 x 8   one for each 32 elements; bits 7l and up: signs of elements 8l .., the eighth made even;
//!                    bits 28..32: scale
//! value = (d * (scale + 1/2) / 2) * (+-magnitude)
//! ```
#![forbid(unsafe_code)]

use super::codebook::{entry, even_signs, iq3_xxs::CODEBOOK, iq3_xxs_magnitudes, seven_bits, with_signs};
use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 98, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    d: [u8; 2],
    entries: [[[u8; 2]; 4]; 8],
    signs_and_scales: [[u8; 4]; 8],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let d = from_f16(&raw.d);
    let mut groups = [Group::ZERO; 8];
    for (group, (entries, packed)) in groups.iter_mut().zip(raw.entries.iter().zip(&raw.signs_and_scales)) {
        let signs = even_signs(seven_bits(u32::from_le_bytes(*packed)));
        let quants = group.quants.as_chunks_mut::<8>().0.iter_mut();
        for ((quants, pair), signs) in quants.zip(entries).zip(signs) {
            let [first, last] = pair.map(|index| entry(&CODEBOOK, usize::from(index)));
            *quants = with_signs(iq3_xxs_magnitudes(first, last), signs);
        }
        let [.., top] = *packed;
        group.scales = [d * (0.5 + f32::from(top >> 4)) * 0.5];
    }
    groups
}
