//! Blocks as vectors: the integers of one row's group in two vectors, the factors of eight rows in one.

mod nibbles;
mod super_blocks;

use super::lanes::Lanes;
use crate::quant::Packed;
use core::arch::x86_64::{__m128i, __m256, __m256i};

/// A block format that vectors can read.
pub(super) trait Vectors<const BYTES: usize, const GROUPS: usize, const S: usize>:
    Packed<BYTES, GROUPS, S>
{
    /// What the integers of [`Vectors::quants`] are above those of `unpack`.
    const OFFSET: i32;

    /// Whether the format has minima.
    const MINS: bool;

    /// The integers of a group, the first 16 and the last 16.
    fn quants<L: Lanes>(l: L, block: &[u8; BYTES], group: usize) -> [__m256i; 2];

    /// The factors of eight blocks.
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; BYTES]; 8]) -> Factors<GROUPS, S>;
}

/// What the integers of eight blocks are multiplied with, and what is subtracted, by group and half; a lane is a block.
pub(super) struct Factors<const GROUPS: usize, const S: usize> {
    pub scales: [[__m256; S]; GROUPS],
    /// Of a format without minima: anything.
    pub mins: [[__m256; S]; GROUPS],
}

/// Two f16 numbers of each of eight blocks.
#[inline(always)]
fn pairs<L: Lanes>(l: L, pairs: [[u8; 4]; 8]) -> [__m256; 2] {
    // In each half of the vector: the first numbers of four blocks, then the second ones.
    const ORDER: [i16; 16] = {
        let four = [0x0100, 0x0504, 0x0908, 0x0d0c, 0x0302, 0x0706, 0x0b0a, 0x0f0e];
        let [a, b, c, d, e, f, g, h] = four;
        [a, b, c, d, e, f, g, h, a, b, c, d, e, f, g, h]
    };
    let ordered = l.shuffle_bytes(l.load_i32(&pairs.map(i32::from_le_bytes)), l.load_i16(&ORDER));
    let ordered = l.order_quarters::<0b11_01_10_00>(ordered);
    [l.halves_to_f32(l.low_half(ordered)), l.halves_to_f32(l.upper_half::<1>(ordered))]
}

/// The nibbles of 16 bytes: the low ones, the high ones.
#[inline(always)]
fn nibbles<L: Lanes>(l: L, packed: &[u8; 16]) -> [__m256i; 2] {
    let words = l.widen_unsigned(l.load_128(packed));
    [l.and(words, l.splat_i16(0x0f)), l.shift_right_i16::<4>(words)]
}

/// 32 bytes as two vectors of 16 integers.
#[inline(always)]
fn words<L: Lanes>(l: L, bytes: &[u8; 32]) -> [__m256i; 2] {
    let ([first, last], _) = bytes.as_chunks::<16>() else { return [l.zero_i32(); 2] };
    [l.widen_unsigned(l.load_128(first)), l.widen_unsigned(l.load_128(last))]
}

/// The number `shift` as instructions take it that shift all lanes by as much.
#[inline(always)]
fn count<L: Lanes>(l: L, shift: usize) -> __m128i {
    l.low_half(l.splat_i64(i64::try_from(shift).unwrap_or(0)))
}
