//! IQ2_XXS: a codebook of 8-element magnitudes and 7-bit signs, 256 values, a 4-bit scale for each 32 (GGML type 16).
//!
//! ```text
//! 0..2     f16      d
//! 2..66    8 x      one for each 32 elements:
//!          u8 x 4     codebook entries of 8 elements each
//!          u32        bits 7l and up: signs of entry l, the eighth made even; bits 28..32: scale
//! value = (d * (scale + 1/2) / 4) * (+-magnitude)
//! ```
#![forbid(unsafe_code)]

use super::codebook::{entry, even_signs, iq2_magnitudes, iq2_xxs::CODEBOOK, seven_bits, with_signs};
use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 66, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    d: [u8; 2],
    groups: [Part; 8],
}

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Part {
    entries: [u8; 4],
    signs_and_scale: [u8; 4],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let d = from_f16(&raw.d);
    let mut groups = [Group::ZERO; 8];
    for (group, part) in groups.iter_mut().zip(&raw.groups) {
        let signs = even_signs(seven_bits(u32::from_le_bytes(part.signs_and_scale)));
        let quants = group.quants.as_chunks_mut::<8>().0.iter_mut();
        for ((quants, index), signs) in quants.zip(part.entries).zip(signs) {
            *quants = with_signs(iq2_magnitudes(entry(&CODEBOOK, usize::from(index))), signs);
        }
        let [.., top] = part.signs_and_scale;
        group.scales = [d * (0.5 + f32::from(top >> 4)) * 0.25];
    }
    groups
}
