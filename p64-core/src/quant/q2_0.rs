//! Q2_0: -1, 0, +1 or +2 times one f16 scale, four to a byte, 64 values (GGML type 42).
//!
//! ```text
//! 0..2    f16       d
//! 2..18   u8 x 16   bits 2j and up of byte m: element 4m + j
//! value = (bits - 1) * d
//! ```
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 64, bytes: 18, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    d: [u8; 2],
    quants: [[[u8; 2]; 4]; 2],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 2] {
    let raw: &Raw = transmute_ref!(block);
    let d = from_f16(&raw.d);
    let mut groups = [Group { quants: [0; 32], scales: [d], mins: [0.0] }; 2];
    for (group, packed) in groups.iter_mut().zip(&raw.quants) {
        for (quants, packed) in group.quants.as_chunks_mut::<8>().0.iter_mut().zip(packed) {
            *quants = super::scales::two_bits(u16::from_le_bytes(*packed)).map(|bits| bits - 1);
        }
    }
    groups
}
