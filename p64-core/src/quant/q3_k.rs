//! Q3_K: 3-bit integers around zero, 256 values, a 6-bit scale for each 16 (GGML type 11).
//!
//! ```text
//! 0..32     u8 x 32   bit g of byte l: third bit of element 32g + l; a clear bit subtracts 4
//! 32..96    u8 x 64   two runs of 32 bytes; bits 2j and up of run n: elements 128n + 32j ..
//! 96..108   u8 x 12   sixteen 6-bit scales, offset 32 (see `scales`)
//! 108..110  f16       d
//! value = (d * (scale - 32)) * (bits - (third bit ? 0 : 4))
//! ```
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 110, scales per group: 2);

#[derive(FromBytes, Immutable)]
#[repr(C)]
pub(crate) struct Raw {
    pub(crate) third: [u8; 32],
    pub(crate) quants: [[u8; 32]; 2],
    pub(crate) scales: [u8; 12],
    pub(crate) d: [u8; 2],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<2>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let d = from_f16(&raw.d);
    let mut groups = [Group::ZERO; 8];
    let (runs, _) = groups.as_chunks_mut::<4>();
    for ((run, packed), third) in runs.iter_mut().zip(&raw.quants).zip([0, 4]) {
        for (group, j) in run.iter_mut().zip(0..4) {
            for (quant, (byte, bits)) in group.quants.iter_mut().zip(packed.iter().zip(&raw.third)) {
                let joined = byte >> (2 * j) & 3 | (bits >> (third + j) & 1) << 2;
                *quant = i16::from(joined.cast_signed() - 4);
            }
        }
    }
    let scales = super::scales::six_bit_sixteen(&raw.scales);
    for (group, scales) in groups.iter_mut().zip(scales.as_chunks::<2>().0) {
        group.scales = scales.map(|scale| d * f32::from(scale));
    }
    groups
}
