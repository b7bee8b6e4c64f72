//! Q4_K: 4-bit integers above minima, 256 values, 6-bit scale and minimum for each 32 (GGML type 12).
//!
//! ```text
//! 0..2      f16         d
//! 2..4      f16         dmin
//! 4..16     u8 x 12     eight 6-bit scales and minima (see `scales`)
//! 16..144   u8 x 128    four runs of 32 bytes; run n, low nibbles: elements 64n .., high nibbles: 64n + 32 ..
//! value = (d * scale) * nibble - (dmin * minimum)
//! ```
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 144, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
pub(crate) struct Raw {
    pub(crate) d: [u8; 2],
    pub(crate) dmin: [u8; 2],
    pub(crate) scales: [u8; 12],
    pub(crate) quants: [[u8; 32]; 4],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let (scales, mins) = factors(raw);
    let mut groups = [Group::ZERO; 8];
    unpack_nibbles(&raw.quants, &mut groups);
    for (group, (scale, min)) in groups.iter_mut().zip(scales.into_iter().zip(mins)) {
        group.scales = [scale];
        group.mins = [min];
    }
    groups
}

/// `d * scale` and `dmin * minimum` of the eight groups of a block, each rounded once to `f32`.
#[must_use]
pub fn group_factors(block: &[u8; BYTES]) -> ([f32; 8], [f32; 8]) {
    factors(transmute_ref!(block))
}

/// The nibbles of a block as stored.
pub(super) fn packed_quants(block: &[u8; BYTES]) -> &[[u8; 32]; 4] {
    let raw: &Raw = transmute_ref!(block);
    &raw.quants
}

#[inline(always)]
fn factors(raw: &Raw) -> ([f32; 8], [f32; 8]) {
    let (d, dmin) = (from_f16(&raw.d), from_f16(&raw.dmin));
    let (scales, mins) = super::scales::six_bit_pairs(&raw.scales);
    (scales.map(|scale| d * f32::from(scale)), mins.map(|min| dmin * f32::from(min)))
}

/// Four runs of 32 bytes to eight groups: low nibbles of a run, then its high ones.
#[inline(always)]
pub(super) fn unpack_nibbles(runs: &[[u8; 32]; 4], groups: &mut [Group<1>; 8]) {
    for (pair, packed) in groups.as_chunks_mut::<2>().0.iter_mut().zip(runs) {
        let [low, high] = pair;
        low.quants = packed.map(|byte| i16::from(byte & 0x0f));
        high.quants = packed.map(|byte| i16::from(byte >> 4));
    }
}
