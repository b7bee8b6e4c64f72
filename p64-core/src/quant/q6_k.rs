//! Q6_K: 6-bit integers around zero, 256 values, a signed 8-bit scale for each 16 (GGML type 14).
//!
//! ```text
//! 0..128    u8 x 128   lower 4 bits, two runs of 64 bytes; run n: low nibbles of its first and last 32 bytes are
//!                      elements 128n .. and 128n + 32 .., high nibbles 128n + 64 .. and 128n + 96 ..
//! 128..192  u8 x 64    upper 2 bits, two runs of 32 bytes; bits 2j and up of run n: elements 128n + 32j ..
//! 192..208  i8 x 16    scales
//! 208..210  f16        d
//! value = (d * scale) * ((lower | upper << 4) - 32)
//! ```
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 210, scales per group: 2);

#[derive(FromBytes, Immutable)]
#[repr(C)]
pub(crate) struct Raw {
    pub(crate) lower: [[[u8; 32]; 2]; 2],
    pub(crate) upper: [[u8; 32]; 2],
    pub(crate) scales: [[i8; 2]; 8],
    pub(crate) d: [u8; 2],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<2>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let d = from_f16(&raw.d);
    let mut groups = [Group::ZERO; 8];
    let runs = raw.lower.iter().zip(&raw.upper);
    for ([a, b, c, d], ([first, last], upper)) in groups.as_chunks_mut::<4>().0.iter_mut().zip(runs) {
        join::<0, 0>(&mut a.quants, first, upper);
        join::<0, 2>(&mut b.quants, last, upper);
        join::<4, 4>(&mut c.quants, first, upper);
        join::<4, 6>(&mut d.quants, last, upper);
    }
    for (group, scales) in groups.iter_mut().zip(&raw.scales) {
        group.scales = scales.map(|scale| d * f32::from(scale));
    }
    groups
}

/// Four bits from `LOW` up of `lower`, two bits from `HIGH` up of `upper`, less the offset.
#[inline(always)]
fn join<const LOW: u8, const HIGH: u8>(quants: &mut [i16; 32], lower: &[u8; 32], upper: &[u8; 32]) {
    for (quant, (lower, upper)) in quants.iter_mut().zip(lower.iter().zip(upper)) {
        *quant = i16::from((lower >> LOW & 0x0f) | (upper >> HIGH & 3) << 4) - 32;
    }
}
