//! Q5_1: 5-bit integers above a minimum, f16 scale and minimum for 32 values (GGML type 7).
//!
//! ```text
//! 0..2    f16       d
//! 2..4    f16       m
//! 4..8    u32       bit i: the fifth bit of element i
//! 8..24   u8 x 16   low nibble: elements 0..16, high nibble: elements 16..32
//! value = d * (nibble | fifth bit << 4) + m
//! ```
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 32, bytes: 24, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
pub(crate) struct Raw {
    pub(crate) d: [u8; 2],
    pub(crate) m: [u8; 2],
    pub(crate) fifth: [u8; 4],
    pub(crate) quants: [u8; 16],
}

/// The integers of one block and their factors. The minimum is stored negated: `a - (-m)` is `a + m` in every bit.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 1] {
    let raw: &Raw = transmute_ref!(block);
    let mut quants = super::scales::nibbles(&raw.quants);
    for (quant, fifth) in quants.iter_mut().zip(super::scales::fifth_bits(raw.fifth)) {
        *quant |= fifth;
    }
    [Group { quants, scales: [from_f16(&raw.d)], mins: [-from_f16(&raw.m)] }]
}
