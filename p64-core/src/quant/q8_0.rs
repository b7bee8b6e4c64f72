//! Q8_0: 8-bit integers, one f16 scale for 32 values (GGML type 8).
//!
//! ```text
//! 0..2    f16       d
//! 2..34   i8 x 32   the integers; -128 is legal, GGML's quantiser never writes it
//! value = d * integer
//! ```
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 32, bytes: 34, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
pub(crate) struct Raw {
    pub(crate) d: [u8; 2],
    pub(crate) quants: [i8; 32],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 1] {
    let raw: &Raw = transmute_ref!(block);
    let mut quants = [0; 32];
    for (quant, byte) in quants.iter_mut().zip(&raw.quants) {
        *quant = i16::from(*byte);
    }
    [Group { quants, scales: [from_f16(&raw.d)], mins: [0.0] }]
}
