//! Formats with 32 values in a block, and the words that others share with them.

use super::super::tall::Tall;
use super::{Factors, Mins, Tiles};
use crate::quant::{iq4_nl, q4_0, q4_1, q5_0, q5_1, q8_0};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The lower halves of bytes.
const NIBBLES: i32 = 0x0f0f_0f0f;

/// [`Tiles`] of a format: its words, the number of its halves, offset and minima, and the integers of a block.
macro_rules! tiles {
    ($($format:ident: $words:ty, $halves:literal, $offset:literal, $mins:ident, |$t:ident, $raw:ident| $quads:expr;)*) => {
        $(
            impl Tiles<{ $format::BYTES }, 1, 1> for $format::Format {
                type Halves = [[u8; 32]; $halves];
                type Words = $words;

                const OFFSET: i32 = $offset;
                const MINS: Mins = Mins::$mins;

                #[inline(always)]
                fn quads<T: Tall>($t: T, $raw: &$words, _group: usize) -> [T::Ints; 8] {
                    $quads
                }

                #[inline(always)]
                fn factors<T: Tall>(t: T, halves: &Self::Halves, _words: &$words) -> Factors<T::Floats, 1, 1> {
                    // The scale comes first, and where there is a minimum, it comes last.
                    let scales = t.halves(&halves[0]);
                    Factors { scales: [[scales]], mins: [[t.halves(&halves[$halves - 1])]] }
                }
            }
        )*
    };
}

tiles! {
    q4_0: Nibbles, 1, 8, None, |t, words| nibbles(t, words);
    q4_1: Nibbles, 2, 0, Added, |t, words| nibbles(t, words);
    q5_0: Fifth, 1, 16, None, |t, words| fifth(t, nibbles(t, &words.quants), &words.fifth);
    q5_1: Fifth, 2, 0, Added, |t, words| fifth(t, nibbles(t, &words.quants), &words.fifth);
    q8_0: [[u8; 64]; 8], 1, 128, None, |t, words| bytes(t, words);
    iq4_nl: Nibbles, 1, 128, None, |t, words| steps(t, words);
}

/// 32 nibbles of each of sixteen rows.
type Nibbles = [[u8; 64]; 4];

/// The same behind a word of fifth bits.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in super::super) struct Fifth {
    fifth: [u8; 64],
    quants: Nibbles,
}

/// The low nibbles of 16 bytes, then the high ones.
#[inline(always)]
fn nibbles<T: Tall>(t: T, packed: &[[u8; 64]; 4]) -> [T::Ints; 8] {
    let mask = t.splat_int(NIBBLES);
    let [a, b, c, d] = [t.words(&packed[0]), t.words(&packed[1]), t.words(&packed[2]), t.words(&packed[3])];
    [
        t.and_bits(a, mask),
        t.and_bits(b, mask),
        t.and_bits(c, mask),
        t.and_bits(d, mask),
        t.and_bits(t.halves_right(a, 4), mask),
        t.and_bits(t.halves_right(b, 4), mask),
        t.and_bits(t.halves_right(c, 4), mask),
        t.and_bits(t.halves_right(d, 4), mask),
    ]
}

/// Nibbles with the fifth bit of each: of each row a word with a bit for each of 32 columns.
#[inline(always)]
fn fifth<T: Tall>(t: T, quads: [T::Ints; 8], bits: &[u8; 64]) -> [T::Ints; 8] {
    let words = t.words(bits);
    // A byte has the bits of two quads.
    let (first, last) = (t.splat_int(0x0804_0201), t.splat_int(0x8040_2010_u32.cast_signed()));
    let value = t.splat_int(0x1010_1010);
    let [a, b] = [t.order_bytes(words, [0; 4]), t.order_bytes(words, [1; 4])];
    let [c, d] = [t.order_bytes(words, [2; 4]), t.order_bytes(words, [3; 4])];
    [
        t.raise(quads[0], a, first, value),
        t.raise(quads[1], a, last, value),
        t.raise(quads[2], b, first, value),
        t.raise(quads[3], b, last, value),
        t.raise(quads[4], c, first, value),
        t.raise(quads[5], c, last, value),
        t.raise(quads[6], d, first, value),
        t.raise(quads[7], d, last, value),
    ]
}

/// 32 signed bytes, 128 added to each.
#[inline(always)]
fn bytes<T: Tall>(t: T, packed: &[[u8; 64]; 8]) -> [T::Ints; 8] {
    let sign = t.splat_int(0x8080_8080_u32.cast_signed());
    [
        t.xor_bits(t.words(&packed[0]), sign),
        t.xor_bits(t.words(&packed[1]), sign),
        t.xor_bits(t.words(&packed[2]), sign),
        t.xor_bits(t.words(&packed[3]), sign),
        t.xor_bits(t.words(&packed[4]), sign),
        t.xor_bits(t.words(&packed[5]), sign),
        t.xor_bits(t.words(&packed[6]), sign),
        t.xor_bits(t.words(&packed[7]), sign),
    ]
}

/// The steps that 32 nibbles stand for, 128 added to each.
#[inline(always)]
pub(super) fn steps<T: Tall>(t: T, packed: &[[u8; 64]; 4]) -> [T::Ints; 8] {
    let table = iq4_nl::STEPS.map(|step| step.cast_unsigned() ^ 0x80);
    let [a, b, c, d, e, f, g, h] = nibbles(t, packed);
    [
        t.look_up(&table, a),
        t.look_up(&table, b),
        t.look_up(&table, c),
        t.look_up(&table, d),
        t.look_up(&table, e),
        t.look_up(&table, f),
        t.look_up(&table, g),
        t.look_up(&table, h),
    ]
}
