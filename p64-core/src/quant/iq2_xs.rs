//! IQ2_XS: a codebook of 8-element magnitudes and 7-bit signs, 256 values, a 4-bit scale for each 16 (GGML type 17).
//!
//! ```text
//! 0..2     f16        d
//! 2..66    u16 x 32   bits 0..9: codebook entry of 8 elements, bits 9..16: their signs, the eighth made even
//! 66..74   u8 x 8     scales; low nibble: first 16 of 32 elements, high nibble: last 16
//! value = (d * (scale + 1/2) / 4) * (+-magnitude)
//! ```
#![forbid(unsafe_code)]

use super::codebook::{entry, even_signs, iq2_magnitudes, iq2_xs::CODEBOOK, with_signs};
use super::float::from_f16;
use super::group::Group;
use super::scales::half_steps;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 74, scales per group: 2);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    d: [u8; 2],
    entries: [[[u8; 2]; 4]; 8],
    scales: [u8; 8],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<2>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let d = from_f16(&raw.d);
    let mut groups = [Group::ZERO; 8];
    for (group, (entries, scales)) in groups.iter_mut().zip(raw.entries.iter().zip(raw.scales)) {
        for (quants, packed) in group.quants.as_chunks_mut::<8>().0.iter_mut().zip(entries) {
            let [_, high] = *packed;
            let [signs, ..] = even_signs([high >> 1, 0, 0, 0]);
            let index = usize::from(u16::from_le_bytes(*packed) & 511);
            *quants = with_signs(iq2_magnitudes(entry(&CODEBOOK, index)), signs);
        }
        group.scales = half_steps(d, scales);
    }
    groups
}
