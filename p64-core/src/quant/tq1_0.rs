//! TQ1_0: -1, 0 or +1 times one f16 scale, five digits to a byte, 256 values (GGML type 34).
//!
//! ```text
//! 0..32    u8 x 32   digit n of byte m: element 32n + m, n < 5
//! 32..48   u8 x 16   digit n of byte m: element 160 + 16n + m, n < 5
//! 48..52   u8 x 4    digit n of byte m: element 240 + 4n + m, n < 4
//! 52..54   f16       d
//! value = (digit - 1) * d
//! ```
//!
//! A byte is a fraction of 256 in base 3, first digit first: digit n is the integer part of 3 * (byte * 3^n mod 256) / 256.
#![forbid(unsafe_code)]

use super::float::from_f16;
use super::group::Group;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 256, bytes: 54, scales per group: 1);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    first: [u8; 32],
    middle: [u8; 16],
    last: [u8; 4],
    d: [u8; 2],
}

/// What brings each digit to the front.
const POWERS: [u16; 5] = [1, 3, 9, 27, 81];

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<1>; 8] {
    let raw: &Raw = transmute_ref!(block);
    let mut quants = [[0i16; 32]; 8];
    let (first, rest) = quants.as_flattened_mut().split_at_mut(160);
    let (middle, last) = rest.split_at_mut(80);
    spread(&raw.first, first);
    spread(&raw.middle, middle);
    spread(&raw.last, last);
    let d = from_f16(&raw.d);
    quants.map(|quants| Group { quants, scales: [d], mins: [0.0] })
}

/// As many digits of each byte as `quants` takes: of all bytes the first ones, then the second ones, and so on.
#[inline(always)]
fn spread<const N: usize>(packed: &[u8; N], quants: &mut [i16]) {
    for (quants, power) in quants.as_chunks_mut::<N>().0.iter_mut().zip(POWERS) {
        for (quant, byte) in quants.iter_mut().zip(packed) {
            let fraction = (u16::from(*byte) * power) & 0xff;
            *quant = ((fraction * 3) >> 8).cast_signed() - 1;
        }
    }
}
