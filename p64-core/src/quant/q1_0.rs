//! Q1_0: a sign for each value, one f16 scale for 128 values (GGML type 41).
//!
//! ```text
//! 0..2    f16       d
//! 2..18   u8 x 16   bit i of byte m: element 8m + i; set: d, clear: -d
//! ```
#![forbid(unsafe_code)]

use super::codebook::with_signs;
use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 128, bytes: 18, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    d: [u8; 2],
    signs: [[u8; 4]; 4],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 4] {
    let raw: &Raw = transmute_ref!(block);
    let d = from_f16(&raw.d);
    let mut groups = [Group { quants: [0; 32], scales: [d], mins: [0.0] }; 4];
    for (group, signs) in groups.iter_mut().zip(&raw.signs) {
        for (quants, signs) in group.quants.as_chunks_mut::<8>().0.iter_mut().zip(signs) {
            *quants = with_signs([-1; 8], *signs);
        }
    }
    groups
}
