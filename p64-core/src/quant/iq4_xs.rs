//! IQ4_XS: 4-bit indices of sixteen unequal steps, 256 values, a 6-bit scale for each 32 (GGML type 23).
//!
//! ```text
//! 0..2     f16        d
//! 2..4     u16        bits 2g and up: upper 2 bits of the scale of group g
//! 4..8     u8 x 4     lower 4 bits of the scales, low nibble first
//! 8..136   16 x 8     groups of 32 elements as in IQ4_NL
//! value = (d * (scale - 32)) * STEPS[nibble]
//! ```
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use super::iq4_nl::steps;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 136, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
pub(crate) struct Raw {
    pub(crate) d: [u8; 2],
    pub(crate) upper: [u8; 2],
    pub(crate) lower: [u8; 4],
    pub(crate) quants: [[u8; 16]; 8],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let d = from_f16(&raw.d);
    let mut groups = [Group::ZERO; 8];
    for ((group, packed), scale) in groups.iter_mut().zip(&raw.quants).zip(scales(raw)) {
        group.quants = steps(packed);
        group.scales = [d * f32::from(scale)];
    }
    groups
}

/// The 6-bit scales of the groups, less their offset of 32.
#[inline(always)]
pub(crate) fn scales(raw: &Raw) -> [i8; 8] {
    let (lower, upper) = (u32::from_le_bytes(raw.lower), u16::from_le_bytes(raw.upper));
    let mut scales = [0; 8];
    for (scale, g) in scales.iter_mut().zip(0u8..) {
        let [lower, ..] = (lower >> (4 * g) & 0x0f).to_le_bytes();
        let [upper, _] = (upper >> (2 * g) & 3).to_le_bytes();
        *scale = (lower | upper << 4).cast_signed() - 32;
    }
    scales
}
