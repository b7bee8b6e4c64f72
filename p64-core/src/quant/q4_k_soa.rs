//! Q4_K_SOA: Q4_K with its scales multiplied out at conversion, 256 values (P64 type 112, spec §7.2.1).
//!
//! ```text
//! 0..128     u8 x 128   nibbles, as in Q4_K
//! 128..144   f16 x 8    d * scale of the eight groups of 32
//! 144..160   f16 x 8    dmin * minimum of the eight groups
//! value = scale * nibble - minimum
//! ```
//!
//! The products are rounded to f16 (ties to even), so a value may differ from the Q4_K value it came from in the last
//! bits of that f16.
#![forbid(unsafe_code)]

use super::float::{from_f16, to_f16};
use super::group::Group;
use super::q4_k;
use zerocopy::{FromBytes, Immutable, IntoBytes, transmute, transmute_ref};

block_format!(elements: 256, bytes: 160, scales per group: 1);

#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Raw {
    pub(crate) quants: [[u8; 32]; 4],
    pub(crate) scales: [[u8; 2]; 8],
    pub(crate) mins: [[u8; 2]; 8],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let mut groups = [Group::ZERO; 8];
    q4_k::unpack_nibbles(&raw.quants, &mut groups);
    for (group, (scale, min)) in groups.iter_mut().zip(raw.scales.iter().zip(&raw.mins)) {
        group.scales = [from_f16(scale)];
        group.mins = [from_f16(min)];
    }
    groups
}

/// The block that a Q4_K block becomes: nibbles copied, factors multiplied in `f32` and rounded to f16.
#[must_use]
pub fn from_q4_k(block: &[u8; q4_k::BYTES]) -> [u8; BYTES] {
    let (scales, mins) = q4_k::group_factors(block);
    transmute!(Raw { quants: *q4_k::packed_quants(block), scales: scales.map(to_f16), mins: mins.map(to_f16) })
}
