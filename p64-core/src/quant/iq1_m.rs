//! IQ1_M: a codebook of 8-element trits, each with a shift, 256 values, a 3-bit scale for each 16 (GGML type 29).
//!
//! ```text
//! 0..32    u8 x 32   lower 8 bits of the codebook entries, of 8 elements each
//! 32..48   u8 x 16   a nibble for each entry, low one first; bits 0..3: its upper 3 bits; bit 3: the shift is -1/8
//! 48..56   u16 x 4   each: bits 3s and up, s < 4: scale of 16 elements; bits 12..16: a nibble of d, lowest first
//! value = (d * (2 * scale + 1)) * (trit + shift)
//! ```
//!
//! `d` is an f16 in four parts. Trits and shift are kept as eighths, as in IQ1_S.
#![forbid(unsafe_code)]

use super::codebook::{entry, iq1::CODEBOOK, trits};
use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 56, scales per group: 2);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    lower: [[[u8; 2]; 2]; 8],
    upper: [[u8; 2]; 8],
    scales: [[u8; 2]; 4],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<2>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let mut groups = [Group::ZERO; 8];
    for (group, (lower, upper)) in groups.iter_mut().zip(raw.lower.iter().zip(&raw.upper)) {
        let halves = group.quants.as_chunks_mut::<16>().0.iter_mut();
        for ((half, lower), upper) in halves.zip(lower).zip(upper) {
            let quants = half.as_chunks_mut::<8>().0.iter_mut();
            for ((quants, lower), upper) in quants.zip(lower).zip([upper & 0x0f, upper >> 4]) {
                let index = usize::from(*lower) | usize::from(upper & 7) << 8;
                let shift = if upper & 8 == 0 { 1 } else { -1 };
                *quants = trits(entry(&CODEBOOK, index)).map(|trit| 8 * trit + shift);
            }
        }
    }
    let words = raw.scales.map(u16::from_le_bytes);
    let [a, b, c, e] = words;
    let d = from_f16(&((a >> 12) | (b >> 12 << 4) | (c >> 12 << 8) | (e >> 12 << 12)).to_le_bytes());
    for (pair, word) in groups.as_chunks_mut::<2>().0.iter_mut().zip(words) {
        for (group, s) in pair.iter_mut().zip([0, 6]) {
            group.scales = [s, s + 3].map(|bit| d * f32::from(2 * (word >> bit & 7) + 1) * 0.125);
        }
    }
    groups
}
