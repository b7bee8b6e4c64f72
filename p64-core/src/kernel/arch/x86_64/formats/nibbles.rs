//! Formats with 32 values in a block.

use super::super::lanes::Lanes;
use super::{Factors, Vectors, halves, nibbles, pairs};
use crate::quant::{iq4_nl, q4_0, q4_1, q5_0, q5_1, q8_0};
use core::arch::x86_64::__m256i;
use zerocopy::transmute_ref;

impl Vectors<{ q4_0::BYTES }, 1, 1> for q4_0::Format {
    const OFFSET: i32 = 8;
    const MINS: bool = false;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; q4_0::BYTES], _group: usize) -> [__m256i; 2] {
        let raw: &q4_0::Raw = transmute_ref!(block);
        nibbles(l, &raw.quants)
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; q4_0::BYTES]; 8]) -> Factors<1, 1> {
        only_scales(l, blocks)
    }
}

impl Vectors<{ q4_1::BYTES }, 1, 1> for q4_1::Format {
    const OFFSET: i32 = 0;
    const MINS: bool = true;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; q4_1::BYTES], _group: usize) -> [__m256i; 2] {
        let raw: &q4_1::Raw = transmute_ref!(block);
        nibbles(l, &raw.quants)
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; q4_1::BYTES]; 8]) -> Factors<1, 1> {
        scales_and_mins(l, blocks)
    }
}

impl Vectors<{ q5_0::BYTES }, 1, 1> for q5_0::Format {
    const OFFSET: i32 = 16;
    const MINS: bool = false;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; q5_0::BYTES], _group: usize) -> [__m256i; 2] {
        let raw: &q5_0::Raw = transmute_ref!(block);
        fifth(l, nibbles(l, &raw.quants), raw.fifth)
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; q5_0::BYTES]; 8]) -> Factors<1, 1> {
        only_scales(l, blocks)
    }
}

impl Vectors<{ q5_1::BYTES }, 1, 1> for q5_1::Format {
    const OFFSET: i32 = 0;
    const MINS: bool = true;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; q5_1::BYTES], _group: usize) -> [__m256i; 2] {
        let raw: &q5_1::Raw = transmute_ref!(block);
        fifth(l, nibbles(l, &raw.quants), raw.fifth)
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; q5_1::BYTES]; 8]) -> Factors<1, 1> {
        scales_and_mins(l, blocks)
    }
}

impl Vectors<{ q8_0::BYTES }, 1, 1> for q8_0::Format {
    const OFFSET: i32 = 0;
    const MINS: bool = false;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; q8_0::BYTES], _group: usize) -> [__m256i; 2] {
        let raw: &q8_0::Raw = transmute_ref!(block);
        let ([first, last], _) = raw.quants.as_chunks::<16>() else { return [l.zero_i32(); 2] };
        let (first, last) = (first.map(i8::cast_unsigned), last.map(i8::cast_unsigned));
        [l.widen_signed(l.load_128(&first)), l.widen_signed(l.load_128(&last))]
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; q8_0::BYTES]; 8]) -> Factors<1, 1> {
        only_scales(l, blocks)
    }
}

impl Vectors<{ iq4_nl::BYTES }, 1, 1> for iq4_nl::Format {
    const OFFSET: i32 = 0;
    const MINS: bool = false;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; iq4_nl::BYTES], _group: usize) -> [__m256i; 2] {
        let raw: &iq4_nl::Raw = transmute_ref!(block);
        steps(l, &raw.quants)
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; iq4_nl::BYTES]; 8]) -> Factors<1, 1> {
        only_scales(l, blocks)
    }
}

/// The steps that 32 nibbles stand for.
#[inline(always)]
pub(super) fn steps<L: Lanes>(l: L, packed: &[u8; 16]) -> [__m256i; 2] {
    let table = l.load_128(&iq4_nl::STEPS.map(i8::cast_unsigned));
    let bytes = l.load_128(packed);
    let mask = l.low_half(l.splat_i16(0x0f0f));
    let low = l.and_128(bytes, mask);
    let high = l.and_128(l.shift_right_i16_128::<4>(bytes), mask);
    [l.widen_signed(l.shuffle_bytes_128(table, low)), l.widen_signed(l.shuffle_bytes_128(table, high))]
}

/// Nibbles with the fifth bit of each.
#[inline(always)]
fn fifth<L: Lanes>(l: L, [low, high]: [__m256i; 2], bits: [u8; 4]) -> [__m256i; 2] {
    let [a, b, c, d] = bits;
    let (first, last) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    [l.or(low, l.spread(first, 16)), l.or(high, l.spread(last, 16))]
}

/// Of blocks that begin with a scale in f16.
#[inline(always)]
fn only_scales<L: Lanes, const BYTES: usize>(l: L, blocks: &[&[u8; BYTES]; 8]) -> Factors<1, 1> {
    let scales = halves(l, blocks.map(|block| *block.first_chunk().unwrap_or(&[0; 2])));
    Factors { scales: [[scales]], mins: [[scales]] }
}

/// Of blocks that begin with a scale and what is added, in f16; a minimum is subtracted.
#[inline(always)]
fn scales_and_mins<L: Lanes, const BYTES: usize>(l: L, blocks: &[&[u8; BYTES]; 8]) -> Factors<1, 1> {
    let [scales, added] = pairs(l, blocks.map(|block| *block.first_chunk().unwrap_or(&[0; 4])));
    Factors { scales: [[scales]], mins: [[l.xor_f32(added, l.splat_f32(-0.0))]] }
}
