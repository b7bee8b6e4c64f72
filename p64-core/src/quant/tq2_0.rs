//! TQ2_0: -1, 0 or +1 (or +2) times one f16 scale, four to a byte, 256 values (GGML type 35).
//!
//! ```text
//! 0..64    u8 x 64   two runs of 32 bytes; bits 2j and up of run n: elements 128n + 32j ..
//! 64..66   f16       d
//! value = (bits - 1) * d
//! ```
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 66, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    quants: [[u8; 32]; 2],
    d: [u8; 2],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let d = from_f16(&raw.d);
    let mut groups = [Group { quants: [0; 32], scales: [d], mins: [0.0] }; 8];
    for (run, packed) in groups.as_chunks_mut::<4>().0.iter_mut().zip(&raw.quants) {
        for (group, j) in run.iter_mut().zip(0..4) {
            group.quants = packed.map(|byte| i16::from((byte >> (2 * j) & 3).cast_signed() - 1));
        }
    }
    groups
}
