//! Formats with 256 values in a block, in eight groups.

use super::super::tall::Tall;
use super::quads::steps;
use super::{Factors, Mins, Tiles};
use crate::quant::{iq4_xs, q2_k, q3_k, q4_k, q5_k, q6_k};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// A word of each of sixteen rows.
type Words = [u8; 64];

/// A half of each of sixteen rows.
type Halves = [u8; 32];

/// The words of a block, each of sixteen rows.
macro_rules! words {
    ($($format:ident { $($field:ident: $type:ty),* })*) => {
        $(
            #[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
            #[repr(C)]
            pub(in super::super) struct $format {
                $($field: $type,)*
            }
        )*
    };
}

words! {
    Q2K { scales: [Words; 4], quants: [[Words; 8]; 2] }
    Q3K { third: [Words; 8], quants: [[Words; 8]; 2], scales: [Words; 3] }
    Q4K { scales: [Words; 3], quants: [[Words; 8]; 4] }
    Q5K { scales: [Words; 3], fifth: [Words; 8], quants: [[Words; 8]; 4] }
    Q6K { scales: [Words; 4], halves: [Q6KHalf; 2] }
    Q6KHalf { upper: [Words; 8], lower: [[Words; 8]; 2] }
    Iq4Xs { lower: Words, quants: [[Words; 4]; 8] }
}

impl Tiles<{ q4_k::BYTES }, 8, 1> for q4_k::Format {
    type Halves = [Halves; 2];
    type Words = Q4K;

    const OFFSET: i32 = 0;
    const MINS: Mins = Mins::Subtracted;

    #[inline(always)]
    fn quads<T: Tall>(t: T, words: &Q4K, group: usize) -> [T::Ints; 8] {
        fields(t, &words.quants[group / 2], nibble(group % 2), 0x0f0f_0f0f)
    }

    #[inline(always)]
    fn factors<T: Tall>(t: T, halves: &[Halves; 2], words: &Q4K) -> Factors<T::Floats, 8, 1> {
        six_bit_pairs(t, &words.scales, halves)
    }
}

impl Tiles<{ q5_k::BYTES }, 8, 1> for q5_k::Format {
    type Halves = [Halves; 2];
    type Words = Q5K;

    const OFFSET: i32 = 0;
    const MINS: Mins = Mins::Subtracted;

    #[inline(always)]
    fn quads<T: Tall>(t: T, words: &Q5K, group: usize) -> [T::Ints; 8] {
        let quads = fields(t, &words.quants[group / 2], nibble(group % 2), 0x0f0f_0f0f);
        // Bit `group` becomes bit 4.
        or_fields(t, quads, &words.fifth, shift(group) - 4, 0x1010_1010)
    }

    #[inline(always)]
    fn factors<T: Tall>(t: T, halves: &[Halves; 2], words: &Q5K) -> Factors<T::Floats, 8, 1> {
        six_bit_pairs(t, &words.scales, halves)
    }
}

impl Tiles<{ q6_k::BYTES }, 8, 2> for q6_k::Format {
    type Halves = [Halves; 1];
    type Words = Q6K;

    const OFFSET: i32 = 32;
    const MINS: Mins = Mins::None;

    #[inline(always)]
    fn quads<T: Tall>(t: T, words: &Q6K, group: usize) -> [T::Ints; 8] {
        let (run, part) = (group / 4, group % 4);
        let quads = fields(t, &words.halves[run].lower[part % 2], nibble(part / 2), 0x0f0f_0f0f);
        // Bits `2 * part` and up become bits 4 and 5.
        or_fields(t, quads, &words.halves[run].upper, shift(part * 2) - 4, 0x3030_3030)
    }

    #[inline(always)]
    fn factors<T: Tall>(t: T, halves: &[Halves; 1], words: &Q6K) -> Factors<T::Floats, 8, 2> {
        let d = t.halves(&halves[0]);
        let mut scales = [[d; 2]; 8];
        for (four, packed) in scales.as_chunks_mut::<2>().0.iter_mut().zip(&words.scales) {
            let packed = t.words(packed);
            for (i, scale) in four.as_flattened_mut().iter_mut().enumerate() {
                let number = t.signed_right(t.left(packed, 24 - shift(i * 8)), 24);
                *scale = t.mul_floats(d, t.to_floats(number));
            }
        }
        Factors { scales, mins: scales }
    }
}

impl Tiles<{ q3_k::BYTES }, 8, 2> for q3_k::Format {
    type Halves = [Halves; 1];
    type Words = Q3K;

    const OFFSET: i32 = 4;
    const MINS: Mins = Mins::None;

    #[inline(always)]
    fn quads<T: Tall>(t: T, words: &Q3K, group: usize) -> [T::Ints; 8] {
        let (run, part) = (group / 4, group % 4);
        let quads = fields(t, &words.quants[run], shift(part * 2), 0x0303_0303);
        // Bit `group` becomes bit 2.
        or_fields(t, quads, &words.third, shift(group) - 2, 0x0404_0404)
    }

    #[inline(always)]
    fn factors<T: Tall>(t: T, halves: &[Halves; 1], words: &Q3K) -> Factors<T::Floats, 8, 2> {
        let d = t.halves(&halves[0]);
        let [low, high, upper] = &words.scales;
        let (low, high, upper) = (t.words(low), t.words(high), t.words(upper));
        let packed = [
            joined(t, low, t.left(upper, 4)),
            joined(t, high, t.left(upper, 2)),
            joined(t, t.right(low, 4), upper),
            joined(t, t.right(high, 4), t.right(upper, 2)),
        ];
        let (byte, offset) = (t.splat_int(0xff), t.splat_int(32));
        let mut scales = [[d; 2]; 8];
        for (four, packed) in scales.as_chunks_mut::<2>().0.iter_mut().zip(packed) {
            for (i, scale) in four.as_flattened_mut().iter_mut().enumerate() {
                let number = t.sub_ints(t.and_bits(t.right(packed, shift(i * 8)), byte), offset);
                *scale = t.mul_floats(d, t.to_floats(number));
            }
        }
        Factors { scales, mins: scales }
    }
}

impl Tiles<{ q2_k::BYTES }, 8, 2> for q2_k::Format {
    type Halves = [Halves; 2];
    type Words = Q2K;

    const OFFSET: i32 = 0;
    const MINS: Mins = Mins::Subtracted;

    #[inline(always)]
    fn quads<T: Tall>(t: T, words: &Q2K, group: usize) -> [T::Ints; 8] {
        fields(t, &words.quants[group / 4], shift(group % 4 * 2), 0x0303_0303)
    }

    #[inline(always)]
    fn factors<T: Tall>(t: T, halves: &[Halves; 2], words: &Q2K) -> Factors<T::Floats, 8, 2> {
        let (d, dmin) = (t.halves(&halves[0]), t.halves(&halves[1]));
        let (mut scales, mut mins) = ([[d; 2]; 8], [[d; 2]; 8]);
        let nibble = t.splat_int(15);
        let fours = scales.as_chunks_mut::<2>().0.iter_mut().zip(mins.as_chunks_mut::<2>().0);
        for ((scales, mins), packed) in fours.zip(&words.scales) {
            let packed = t.words(packed);
            for (i, (scale, min)) in scales.as_flattened_mut().iter_mut().zip(mins.as_flattened_mut()).enumerate() {
                let (low, high) = (t.right(packed, shift(i * 8)), t.right(packed, shift(i * 8) + 4));
                *scale = t.mul_floats(d, t.to_floats(t.and_bits(low, nibble)));
                *min = t.mul_floats(dmin, t.to_floats(t.and_bits(high, nibble)));
            }
        }
        Factors { scales, mins }
    }
}

impl Tiles<{ iq4_xs::BYTES }, 8, 1> for iq4_xs::Format {
    type Halves = [Halves; 2];
    type Words = Iq4Xs;

    const OFFSET: i32 = 128;
    const MINS: Mins = Mins::None;

    #[inline(always)]
    fn quads<T: Tall>(t: T, words: &Iq4Xs, group: usize) -> [T::Ints; 8] {
        steps(t, &words.quants[group])
    }

    #[inline(always)]
    fn factors<T: Tall>(t: T, halves: &[Halves; 2], words: &Iq4Xs) -> Factors<T::Floats, 8, 1> {
        let d = t.halves(&halves[0]);
        let (lower, upper) = (t.words(&words.lower), t.left(t.short_words(&halves[1]), 4));
        let (nibble, pair, offset) = (t.splat_int(0x0f), t.splat_int(0x30), t.splat_int(32));
        let mut scales = [[d]; 8];
        for (g, scale) in scales.iter_mut().enumerate() {
            let low = t.and_bits(t.right(lower, shift(g * 4)), nibble);
            let number = t.or_bits(low, t.and_bits(t.right(upper, shift(g * 2)), pair));
            *scale = [t.mul_floats(d, t.to_floats(t.sub_ints(number, offset)))];
        }
        Factors { scales, mins: scales }
    }
}

/// A number of bits as instructions take it.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::as_conversions, reason = "below 32")]
const fn shift(bits: usize) -> i32 {
    bits as i32
}

/// Where the low or the high nibbles begin.
#[inline(always)]
const fn nibble(high: usize) -> i32 {
    shift(high * 4)
}

/// The bits of each byte that `mask` has once they are shifted to the right by `first`, which is below 0 for bits that go up.
#[inline(always)]
fn fields<T: Tall>(t: T, packed: &[Words; 8], first: i32, mask: i32) -> [T::Ints; 8] {
    let mask = t.splat_int(mask);
    let [a, b, c, d, e, f, g, h] = packed;
    [
        field(t, a, first, mask),
        field(t, b, first, mask),
        field(t, c, first, mask),
        field(t, d, first, mask),
        field(t, e, first, mask),
        field(t, f, first, mask),
        field(t, g, first, mask),
        field(t, h, first, mask),
    ]
}

/// [`fields`] of four columns.
#[inline(always)]
fn field<T: Tall>(t: T, packed: &Words, first: i32, mask: T::Ints) -> T::Ints {
    let words = t.words(packed);
    t.and_bits(if first < 0 { t.halves_left(words, -first) } else { t.halves_right(words, first) }, mask)
}

/// The same joined to others.
#[inline(always)]
fn or_fields<T: Tall>(t: T, quads: [T::Ints; 8], packed: &[Words; 8], first: i32, mask: i32) -> [T::Ints; 8] {
    let other = fields(t, packed, first, mask);
    [
        t.or_bits(quads[0], other[0]),
        t.or_bits(quads[1], other[1]),
        t.or_bits(quads[2], other[2]),
        t.or_bits(quads[3], other[3]),
        t.or_bits(quads[4], other[4]),
        t.or_bits(quads[5], other[5]),
        t.or_bits(quads[6], other[6]),
        t.or_bits(quads[7], other[7]),
    ]
}

/// The scales and the minima of a block's eight groups, multiplied.
#[inline(always)]
fn six_bit_pairs<T: Tall>(t: T, packed: &[Words; 3], [d, dmin]: &[Halves; 2]) -> Factors<T::Floats, 8, 1> {
    let [scales, mins, upper] = packed;
    let (scales, mins, upper) = (t.words(scales), t.words(mins), t.words(upper));
    Factors {
        scales: six_bits(t, scales, upper, t.halves(d)),
        mins: six_bits(t, mins, t.right(upper, 4), t.halves(dmin)),
    }
}

/// Eight 6-bit numbers times `d`: the low six bits of the bytes of `low`, then nibbles of `upper` below their upper two.
#[inline(always)]
fn six_bits<T: Tall>(t: T, low: T::Ints, upper: T::Ints, d: T::Floats) -> [[T::Floats; 1]; 8] {
    let later = joined(t, upper, t.right(low, 2));
    let byte = t.splat_int(0x3f);
    let mut factors = [[d]; 8];
    for (four, packed) in factors.as_chunks_mut::<4>().0.iter_mut().zip([low, later]) {
        for (i, factor) in four.iter_mut().enumerate() {
            *factor = [t.mul_floats(d, t.to_floats(t.and_bits(t.right(packed, shift(i * 8)), byte)))];
        }
    }
    factors
}

/// The lower four bits of bytes, and the next two of others.
#[inline(always)]
fn joined<T: Tall>(t: T, nibbles: T::Ints, pairs: T::Ints) -> T::Ints {
    let (nibbles, pairs) = (t.and_bits(nibbles, t.splat_int(0x0f0f_0f0f)), t.and_bits(pairs, t.splat_int(0x3030_3030)));
    t.or_bits(nibbles, pairs)
}
