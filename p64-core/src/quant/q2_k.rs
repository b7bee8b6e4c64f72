//! Q2_K: 2-bit integers above minima, 256 values, 4-bit scale and minimum for each 16 (GGML type 10).
//!
//! ```text
//! 0..16    u8 x 16   low nibble: scale, high nibble: minimum of 16 values
//! 16..80   u8 x 64   two runs of 32 bytes; bits 2j and up of run n: elements 128n + 32j ..
//! 80..82   f16       d
//! 82..84   f16       dmin
//! value = (d * scale) * bits - (dmin * minimum)
//! ```
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 84, scales per group: 2);

#[derive(FromBytes, Immutable)]
#[repr(C)]
pub(crate) struct Raw {
    pub(crate) scales: [[u8; 2]; 8],
    pub(crate) quants: [[u8; 32]; 2],
    pub(crate) d: [u8; 2],
    pub(crate) dmin: [u8; 2],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<2>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let (d, dmin) = (from_f16(&raw.d), from_f16(&raw.dmin));
    let mut groups = [Group::ZERO; 8];
    let (runs, _) = groups.as_chunks_mut::<4>();
    for (run, packed) in runs.iter_mut().zip(&raw.quants) {
        for (group, shift) in run.iter_mut().zip([0, 2, 4, 6]) {
            group.quants = packed.map(|byte| i16::from(byte >> shift & 3));
        }
    }
    for (group, packed) in groups.iter_mut().zip(&raw.scales) {
        group.scales = packed.map(|byte| d * f32::from(byte & 0x0f));
        group.mins = packed.map(|byte| dmin * f32::from(byte >> 4));
    }
    groups
}
