//! IQ4_NL: 4-bit indices of sixteen unequal steps, one f16 scale for 32 values (GGML type 20).
//!
//! ```text
//! 0..2    f16       d
//! 2..18   u8 x 16   low nibble: elements 0..16, high nibble: elements 16..32
//! value = d * STEPS[nibble]
//! ```
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 32, bytes: 18, scales per group: 1);

/// The steps, closer together around zero.
pub(crate) static STEPS: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

#[derive(FromBytes, Immutable)]
#[repr(C)]
pub(crate) struct Raw {
    pub(crate) d: [u8; 2],
    pub(crate) quants: [u8; 16],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 1] {
    let raw: &Raw = transmute_ref!(block);
    [Group { quants: steps(&raw.quants), scales: [from_f16(&raw.d)], mins: [0.0] }]
}

/// The steps of 32 nibbles.
#[inline(always)]
pub(super) fn steps(packed: &[u8; 16]) -> [i16; 32] {
    let mut quants = [0i16; 32];
    let (low, high) = quants.split_at_mut(16);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(packed) {
        *low = i16::from(STEPS[usize::from(byte & 0x0f)]);
        *high = i16::from(STEPS[usize::from(byte >> 4)]);
    }
    quants
}
