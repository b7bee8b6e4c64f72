//! Formats with 256 values in a block, in eight groups.

use super::super::super::Eight;
use super::super::lanes::Lanes;
use super::nibbles::steps;
use super::{Factors, Vectors, count, words};
use crate::quant::float::from_f16;
use crate::quant::scales::six_bit_sixteen;
use crate::quant::{iq4_xs, q2_k, q3_k, q4_k, q4_k_soa, q5_k, q6_k};
use core::arch::x86_64::{__m128i, __m256, __m256i};
use zerocopy::transmute_ref;

impl Vectors<{ q4_k::BYTES }, 8, 1> for q4_k::Format {
    const OFFSET: i32 = 0;
    const MINS: bool = true;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; q4_k::BYTES], group: usize) -> [__m256i; 2] {
        let raw: &q4_k::Raw = transmute_ref!(block);
        nibble_run(l, &raw.quants, group)
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; q4_k::BYTES]; 8]) -> Factors<8, 1> {
        let (mut first, mut last) = ([l.zero_f32(); 8], [l.zero_f32(); 8]);
        for ((first, last), block) in first.iter_mut().zip(&mut last).zip(blocks) {
            let raw: &q4_k::Raw = transmute_ref!(*block);
            [*first, *last] = six_bit_pairs(l, &raw.scales, raw.d, raw.dmin);
        }
        by_group(l, first, last)
    }
}

impl Vectors<{ q5_k::BYTES }, 8, 1> for q5_k::Format {
    const OFFSET: i32 = 0;
    const MINS: bool = true;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; q5_k::BYTES], group: usize) -> [__m256i; 2] {
        let raw: &q5_k::Raw = transmute_ref!(block);
        let [low, high] = nibble_run(l, &raw.quants, group);
        let bit = l.splat_i16(1 << group);
        let [first, last] = words(l, &raw.fifth);
        [join_fifth(l, low, first, bit), join_fifth(l, high, last, bit)]
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; q5_k::BYTES]; 8]) -> Factors<8, 1> {
        let (mut first, mut last) = ([l.zero_f32(); 8], [l.zero_f32(); 8]);
        for ((first, last), block) in first.iter_mut().zip(&mut last).zip(blocks) {
            let raw: &q5_k::Raw = transmute_ref!(*block);
            [*first, *last] = six_bit_pairs(l, &raw.scales, raw.d, raw.dmin);
        }
        by_group(l, first, last)
    }
}

impl Vectors<{ q4_k_soa::BYTES }, 8, 1> for q4_k_soa::Format {
    const OFFSET: i32 = 0;
    const MINS: bool = true;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; q4_k_soa::BYTES], group: usize) -> [__m256i; 2] {
        let raw: &q4_k_soa::Raw = transmute_ref!(block);
        nibble_run(l, &raw.quants, group)
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; q4_k_soa::BYTES]; 8]) -> Factors<8, 1> {
        let (mut first, mut last) = ([l.zero_f32(); 8], [l.zero_f32(); 8]);
        for ((first, last), block) in first.iter_mut().zip(&mut last).zip(blocks) {
            let raw: &q4_k_soa::Raw = transmute_ref!(*block);
            (*first, *last) = (l.load_f16(&raw.scales), l.load_f16(&raw.mins));
        }
        by_group(l, first, last)
    }
}

impl Vectors<{ q6_k::BYTES }, 8, 2> for q6_k::Format {
    const OFFSET: i32 = 32;
    const MINS: bool = false;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; q6_k::BYTES], group: usize) -> [__m256i; 2] {
        let raw: &q6_k::Raw = transmute_ref!(block);
        let (run, part) = (group / 4, group % 4);
        let lower = words(l, &raw.lower[run][part % 2]);
        let upper = words(l, &raw.upper[run]);
        [join_upper(l, lower[0], upper[0], part), join_upper(l, lower[1], upper[1], part)]
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; q6_k::BYTES]; 8]) -> Factors<8, 2> {
        let (mut first, mut last) = ([l.zero_f32(); 8], [l.zero_f32(); 8]);
        for ((first, last), block) in first.iter_mut().zip(&mut last).zip(blocks) {
            let raw: &q6_k::Raw = transmute_ref!(*block);
            let bytes = raw.scales.as_flattened().first_chunk::<16>().unwrap_or(&[0; 16]).map(i8::cast_unsigned);
            let (scales, d) = (l.load_128(&bytes), l.splat_f32(from_f16(&raw.d)));
            [*first, *last] = sixteen(l, d, scales);
        }
        let scales = by_half(l, first, last);
        Factors { scales, mins: scales }
    }
}

impl Vectors<{ q3_k::BYTES }, 8, 2> for q3_k::Format {
    const OFFSET: i32 = 4;
    const MINS: bool = false;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; q3_k::BYTES], group: usize) -> [__m256i; 2] {
        let raw: &q3_k::Raw = transmute_ref!(block);
        let (run, part) = (group / 4, group % 4);
        let (third, bit) = (words(l, &raw.third), l.splat_i16(1 << group));
        let [first, last] = two_bits(l, &raw.quants[run], part);
        [join_third(l, first, third[0], bit), join_third(l, last, third[1], bit)]
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; q3_k::BYTES]; 8]) -> Factors<8, 2> {
        let (mut first, mut last) = ([l.zero_f32(); 8], [l.zero_f32(); 8]);
        for ((first, last), block) in first.iter_mut().zip(&mut last).zip(blocks) {
            let raw: &q3_k::Raw = transmute_ref!(*block);
            let d = l.splat_f32(from_f16(&raw.d));
            [*first, *last] = sixteen(l, d, l.load_128(&six_bit_sixteen(&raw.scales).map(i8::cast_unsigned)));
        }
        let scales = by_half(l, first, last);
        Factors { scales, mins: scales }
    }
}

impl Vectors<{ iq4_xs::BYTES }, 8, 1> for iq4_xs::Format {
    const OFFSET: i32 = 0;
    const MINS: bool = false;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; iq4_xs::BYTES], group: usize) -> [__m256i; 2] {
        let raw: &iq4_xs::Raw = transmute_ref!(block);
        steps(l, &raw.quants[group])
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; iq4_xs::BYTES]; 8]) -> Factors<8, 1> {
        let (mut first, mut last) = ([l.zero_f32(); 8], [l.zero_f32(); 8]);
        for ((first, last), block) in first.iter_mut().zip(&mut last).zip(blocks) {
            let raw: &iq4_xs::Raw = transmute_ref!(*block);
            *first =
                l.mul_f32(l.splat_f32(from_f16(&raw.d)), l.to_f32(l.load_i32(&iq4_xs::scales(raw).map(i32::from))));
            *last = *first;
        }
        by_group(l, first, last)
    }
}

impl Vectors<{ q2_k::BYTES }, 8, 2> for q2_k::Format {
    const OFFSET: i32 = 0;
    const MINS: bool = true;

    #[inline(always)]
    fn quants<L: Lanes>(l: L, block: &[u8; q2_k::BYTES], group: usize) -> [__m256i; 2] {
        let raw: &q2_k::Raw = transmute_ref!(block);
        two_bits(l, &raw.quants[group / 4], group % 4)
    }

    #[inline(always)]
    fn factors<L: Lanes>(l: L, blocks: &[&[u8; q2_k::BYTES]; 8]) -> Factors<8, 2> {
        let (mut scales, mut mins) = ([[l.zero_f32(); 8]; 2], [[l.zero_f32(); 8]; 2]);
        let nibble = l.low_half(l.splat_i16(0x0f0f));
        for (i, block) in blocks.iter().enumerate() {
            let raw: &q2_k::Raw = transmute_ref!(*block);
            let packed = l.load_128(raw.scales.as_flattened().first_chunk().unwrap_or(&[0; 16]));
            let (d, dmin) = (l.splat_f32(from_f16(&raw.d)), l.splat_f32(from_f16(&raw.dmin)));
            [scales[0][i], scales[1][i]] = sixteen(l, d, l.and_128(packed, nibble));
            [mins[0][i], mins[1][i]] = sixteen(l, dmin, l.and_128(l.shift_right_i16_128::<4>(packed), nibble));
        }
        Factors { scales: by_half(l, scales[0], scales[1]), mins: by_half(l, mins[0], mins[1]) }
    }
}

/// The nibbles of a group of Q4_K: low ones for even groups, high ones for odd groups, 32 bytes for two of them.
#[inline(always)]
fn nibble_run<L: Lanes>(l: L, runs: &[[u8; 32]; 4], group: usize) -> [__m256i; 2] {
    let (count, mask) = (count(l, group % 2 * 4), l.splat_i16(0x0f));
    let [first, last] = words(l, &runs[group / 2]);
    [l.and(l.shift_right_by(first, count), mask), l.and(l.shift_right_by(last, count), mask)]
}

/// Nibbles and a fifth bit, which is set where `bit` is in `words`.
#[inline(always)]
fn join_fifth<L: Lanes>(l: L, nibbles: __m256i, words: __m256i, bit: __m256i) -> __m256i {
    l.or(nibbles, l.and(l.equal_i16(l.and(words, bit), bit), l.splat_i16(16)))
}

/// The six bits of part `part` of four: a nibble of `lower`, two bits of `upper`.
#[inline(always)]
fn join_upper<L: Lanes>(l: L, lower: __m256i, upper: __m256i, part: usize) -> __m256i {
    let lower = l.and(l.shift_right_by(lower, count(l, part / 2 * 4)), l.splat_i16(0x0f));
    let upper = l.shift_right_by(l.shift_left_i16::<4>(upper), count(l, part * 2));
    l.or(lower, l.and(upper, l.splat_i16(0x30)))
}

/// The scales and the minima of a block's eight groups, multiplied.
#[inline(always)]
fn six_bit_pairs<L: Lanes>(l: L, packed: &[u8; 12], d: [u8; 2], dmin: [u8; 2]) -> [__m256; 2] {
    let (words, _) = packed.as_chunks::<4>();
    let [scales, mins, upper] = *words else { return [l.zero_f32(); 2] };
    let (scales, mins, upper) = (u32::from_le_bytes(scales), u32::from_le_bytes(mins), u32::from_le_bytes(upper));
    [factors(l, scales, upper, d), factors(l, mins, upper >> 4, dmin)]
}

/// Eight 6-bit numbers times `d`: the low six bits of the bytes of `low`, then nibbles of `upper` below their upper two.
#[inline(always)]
fn factors<L: Lanes>(l: L, low: u32, upper: u32, d: [u8; 2]) -> __m256 {
    let later = upper & 0x0f0f_0f0f | low >> 2 & 0x3030_3030;
    let bytes = u64::from(low & 0x3f3f_3f3f) | u64::from(later) << 32;
    let numbers = l.to_f32(l.widen_unsigned_i32(l.low_half(l.splat_i64(bytes.cast_signed()))));
    l.mul_f32(l.splat_f32(from_f16(&d)), numbers)
}

/// The 2-bit numbers of part `part` of four.
#[inline(always)]
fn two_bits<L: Lanes>(l: L, packed: &[u8; 32], part: usize) -> [__m256i; 2] {
    let (count, mask) = (count(l, part * 2), l.splat_i16(3));
    let [first, last] = words(l, packed);
    [l.and(l.shift_right_by(first, count), mask), l.and(l.shift_right_by(last, count), mask)]
}

/// Two bits and a third one, which is set where `bit` is in `words`.
#[inline(always)]
fn join_third<L: Lanes>(l: L, two: __m256i, words: __m256i, bit: __m256i) -> __m256i {
    l.or(two, l.and(l.equal_i16(l.and(words, bit), bit), l.splat_i16(4)))
}

/// Sixteen signed bytes times `d`: four groups in each vector, both halves of a group side by side.
#[inline(always)]
fn sixteen<L: Lanes>(l: L, d: __m256, bytes: __m128i) -> [__m256; 2] {
    let later = l.shift_right_bytes_128::<8>(bytes);
    [l.mul_f32(d, l.to_f32(l.widen_signed_i32(bytes))), l.mul_f32(d, l.to_f32(l.widen_signed_i32(later)))]
}

/// Factors of eight rows by group and half, from what [`sixteen`] gives for each row.
#[inline(always)]
fn by_half<L: Lanes>(l: L, first: [__m256; 8], last: [__m256; 8]) -> [[__m256; 2]; 8] {
    let (first, last) = (l.transpose(first), l.transpose(last));
    let mut halves = [[l.zero_f32(); 2]; 8];
    for (halves, pair) in halves.iter_mut().zip(first.as_chunks::<2>().0.iter().chain(last.as_chunks::<2>().0)) {
        *halves = *pair;
    }
    halves
}

/// Factors of eight rows by group, from vectors by row.
#[inline(always)]
fn by_group<L: Lanes>(l: L, scales: [__m256; 8], mins: [__m256; 8]) -> Factors<8, 1> {
    let (by_scale, by_min) = (l.transpose(scales), l.transpose(mins));
    let (mut scales, mut mins) = ([[l.zero_f32()]; 8], [[l.zero_f32()]; 8]);
    for (g, (scale, min)) in by_scale.iter().zip(&by_min).enumerate() {
        (scales[g], mins[g]) = ([*scale], [*min]);
    }
    Factors { scales, mins }
}
