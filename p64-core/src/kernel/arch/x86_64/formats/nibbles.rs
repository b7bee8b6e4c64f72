//! Formats with 32 values in a block.

use super::super::super::Eight;
use super::super::lanes::Lanes;
use super::{Factors, Vectors, nibbles, pairs};
use crate::quant::{iq4_nl, q4_0, q4_1, q5_0, q5_1, q8_0};
use core::arch::x86_64::__m256i;
use zerocopy::transmute_ref;

/// [`Vectors`] of a format: its offset, whether it has minima, its factors, and the integers of a block.
macro_rules! vectors {
    ($($format:ident: $offset:literal, $mins:literal, $factors:ident, |$l:ident, $raw:ident| $quants:expr;)*) => {
        $(
            impl Vectors<{ $format::BYTES }, 1, 1> for $format::Format {
                const OFFSET: i32 = $offset;
                const MINS: bool = $mins;

                #[inline(always)]
                fn quants<L: Lanes>($l: L, block: &[u8; $format::BYTES], _group: usize) -> [__m256i; 2] {
                    let $raw: &$format::Raw = transmute_ref!(block);
                    $quants
                }

                #[inline(always)]
                fn factors<L: Lanes>(l: L, blocks: &[&[u8; $format::BYTES]; 8]) -> Factors<1, 1> {
                    $factors(l, blocks)
                }
            }
        )*
    };
}

vectors! {
    q4_0: 8, false, only_scales, |l, raw| nibbles(l, &raw.quants);
    q4_1: 0, true, scales_and_mins, |l, raw| nibbles(l, &raw.quants);
    q5_0: 16, false, only_scales, |l, raw| fifth(l, nibbles(l, &raw.quants), raw.fifth);
    q5_1: 0, true, scales_and_mins, |l, raw| fifth(l, nibbles(l, &raw.quants), raw.fifth);
    q8_0: 0, false, only_scales, |l, raw| bytes(l, &raw.quants);
    iq4_nl: 0, false, only_scales, |l, raw| steps(l, &raw.quants);
}

/// 32 signed bytes.
#[inline(always)]
fn bytes<L: Lanes>(l: L, quants: &[i8; 32]) -> [__m256i; 2] {
    let ([first, last], _) = quants.as_chunks::<16>() else { return [l.zero_i32(); 2] };
    let (first, last) = (first.map(i8::cast_unsigned), last.map(i8::cast_unsigned));
    [l.widen_signed(l.load_128(&first)), l.widen_signed(l.load_128(&last))]
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
    let scales = l.load_f16(&blocks.map(|block| *block.first_chunk().unwrap_or(&[0; 2])));
    Factors { scales: [[scales]], mins: [[scales]] }
}

/// Of blocks that begin with a scale and what is added, in f16; a minimum is subtracted.
#[inline(always)]
fn scales_and_mins<L: Lanes, const BYTES: usize>(l: L, blocks: &[&[u8; BYTES]; 8]) -> Factors<1, 1> {
    let [scales, added] = pairs(l, blocks.map(|block| *block.first_chunk().unwrap_or(&[0; 4])));
    Factors { scales: [[scales]], mins: [[l.xor_f32(added, l.splat_f32(-0.0))]] }
}
