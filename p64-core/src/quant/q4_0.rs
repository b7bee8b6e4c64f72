//! Q4_0: 4-bit integers around zero, one f16 scale for 32 values (GGML type 2).
//!
//! ```text
//! 0..2    f16       d
//! 2..18   u8 x 16   low nibble: elements 0..16, high nibble: elements 16..32
//! value = d * (nibble - 8)
//! ```
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 32, bytes: 18, scales per group: 1);

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
    // The offset is taken in bytes: compilers then widen with the multiplication, not ahead of it.
    let mut bytes = [0i8; 32];
    let (low, high) = bytes.split_at_mut(16);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(&raw.quants) {
        *low = (byte & 0x0f).cast_signed() - 8;
        *high = (byte >> 4).cast_signed() - 8;
    }
    let mut quants = [0i16; 32];
    for (quant, byte) in quants.iter_mut().zip(bytes) {
        *quant = i16::from(byte);
    }
    [Group { quants, scales: [from_f16(&raw.d)], mins: [0.0] }]
}
