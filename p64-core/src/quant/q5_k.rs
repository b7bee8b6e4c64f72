//! Q5_K: 5-bit integers above minima, 256 values, 6-bit scale and minimum for each 32 (GGML type 13).
//!
//! ```text
//! 0..2      f16         d
//! 2..4      f16         dmin
//! 4..16     u8 x 12     eight 6-bit scales and minima (see `scales`)
//! 16..48    u8 x 32     bit g of byte l: fifth bit of element 32g + l
//! 48..176   u8 x 128    four runs of 32 bytes; run n, low nibbles: elements 64n .., high nibbles: 64n + 32 ..
//! value = (d * scale) * (nibble | fifth bit << 4) - (dmin * minimum)
//! ```
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 176, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
pub(crate) struct Raw {
    pub(crate) d: [u8; 2],
    pub(crate) dmin: [u8; 2],
    pub(crate) scales: [u8; 12],
    pub(crate) fifth: [u8; 32],
    pub(crate) quants: [[u8; 32]; 4],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let (d, dmin) = (from_f16(&raw.d), from_f16(&raw.dmin));
    let (scales, mins) = super::scales::six_bit_pairs(&raw.scales);
    let mut groups = [Group::ZERO; 8];
    for ((pair, packed), shift) in groups.as_chunks_mut::<2>().0.iter_mut().zip(&raw.quants).zip([0, 2, 4, 6]) {
        let [low, high] = pair;
        for ((low, high), (byte, fifth)) in
            low.quants.iter_mut().zip(&mut high.quants).zip(packed.iter().zip(&raw.fifth))
        {
            *low = i16::from(byte & 0x0f | (fifth >> shift & 1) << 4);
            *high = i16::from(byte >> 4 | (fifth >> shift & 2) << 3);
        }
    }
    for (group, (scale, min)) in groups.iter_mut().zip(scales.iter().zip(&mins)) {
        group.scales = [d * f32::from(*scale)];
        group.mins = [dmin * f32::from(*min)];
    }
    groups
}
