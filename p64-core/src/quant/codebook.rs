//! What the codebook formats (IQ1 to IQ3) share: entries of a codebook and signs, spread to integers.
//!
//! ```text
//! entry   u16   IQ1, IQ2: eight indices of 2 bits; IQ3: four of 3 bits; the first element lowest
//! signs   u8    bit i set: element i is negative
//! ```
//!
//! The codebooks lie packed: together they take 9 KiB, where one byte an element would take 36. Spreading an entry is a
//! multiplication and a shift in 16-bit lanes, which every vector unit has.
#![forbid(unsafe_code)]

pub(super) mod iq1;
pub(super) mod iq2_s;
pub(super) mod iq2_xs;
pub(super) mod iq2_xxs;
pub(super) mod iq3_s;
pub(super) mod iq3_xxs;

use super::scales::two_bits;

/// Moves each 3-bit index of an entry to the top of 16 bits.
const THREE: [u16; 4] = [1 << 13, 1 << 10, 1 << 7, 1 << 4];

/// The eight elements of an IQ1 entry, -1 to 1.
#[inline(always)]
pub(super) fn trits(entry: u16) -> [i16; 8] {
    two_bits(entry).map(|index| index - 1)
}

/// The eight magnitudes of an IQ2 entry: 8, 25 or 43.
#[inline(always)]
pub(super) fn iq2_magnitudes(entry: u16) -> [i16; 8] {
    two_bits(entry).map(|index| 8 + 17 * index + (index >> 1))
}

/// The eight magnitudes of two IQ3_XXS entries: 4, 12, 20, .. 52, 62.
#[inline(always)]
pub(super) fn iq3_xxs_magnitudes(first: u16, last: u16) -> [i16; 8] {
    three_bits(first, last).map(|index| 4 + 8 * index + 2 * ((index + 1) >> 3))
}

/// The eight magnitudes of two IQ3_S entries: 1, 3, .. 15.
#[inline(always)]
pub(super) fn iq3_s_magnitudes(first: u16, last: u16) -> [i16; 8] {
    three_bits(first, last).map(|index| 1 + 2 * index)
}

#[inline(always)]
fn three_bits(first: u16, last: u16) -> [i16; 8] {
    let index = |entry: u16, factor: u16| (entry.wrapping_mul(factor) >> 13).cast_signed();
    let [a, b, c, d] = THREE.map(|factor| index(first, factor));
    let [e, f, g, h] = THREE.map(|factor| index(last, factor));
    [a, b, c, d, e, f, g, h]
}

/// Eight integers, negated where a bit of `signs` is set.
#[inline(always)]
pub(super) fn with_signs(magnitudes: [i16; 8], signs: u8) -> [i16; 8] {
    const BITS: [i16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
    let mut quants = magnitudes;
    for (quant, bit) in quants.iter_mut().zip(BITS) {
        let negative = if i16::from(signs) & bit == 0 { 0 } else { -1 };
        *quant = (*quant ^ negative) - negative;
    }
    quants
}

/// The four 7-bit numbers in the low 28 bits of `packed`, the lowest first.
#[inline(always)]
pub(super) fn seven_bits(packed: u32) -> [u8; 4] {
    (packed & 0x7f | packed << 1 & 0x7f00 | packed << 2 & 0x7f_0000 | packed << 3 & 0x7f00_0000).to_le_bytes()
}

/// The signs that four 7-bit numbers stand for: an eighth one makes the number of negative elements even.
#[inline(always)]
pub(super) fn even_signs(sevens: [u8; 4]) -> [u8; 4] {
    // All four at once: what comes over from the byte above never reaches the lowest bit.
    let packed = u32::from_le_bytes(sevens);
    let mut odd = packed ^ packed >> 4;
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    (packed | (odd & 0x0101_0101) << 7).to_le_bytes()
}

/// The entry of an index; every format's indices are as long as its codebook, so that none is past it.
#[inline(always)]
pub(super) fn entry<const N: usize>(codebook: &[u16; N], index: usize) -> u16 {
    const { assert!(N.is_power_of_two()) };
    codebook[index & (N - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_its_indices() {
        assert_eq!(trits(0b10_01_00_10_01_00_10_01), [0, 1, -1, 0, 1, -1, 0, 1]);
        assert_eq!(iq2_magnitudes(0b10_01_00_10_01_00_10_01), [25, 43, 8, 25, 43, 8, 25, 43]);
        assert_eq!(iq3_xxs_magnitudes(0o3210, 0o7654), [4, 12, 20, 28, 36, 44, 52, 62]);
        assert_eq!(iq3_s_magnitudes(0o3210, 0o7654), [1, 3, 5, 7, 9, 11, 13, 15]);
    }

    #[test]
    fn signs_are_bits_and_even() {
        assert_eq!(with_signs([1, 2, 3, 4, 5, 6, 7, 8], 0b1010_0001), [-1, 2, 3, 4, 5, -6, 7, -8]);
        for seven in 0..128u8 {
            let packed = u32::from(seven) * 0x20_4081;
            assert_eq!(seven_bits(packed | 0xf000_0000), [seven; 4]);
            assert_eq!(seven_bits(u32::from(seven) << 14), [0, 0, seven, 0]);
            for signs in [even_signs([seven; 4]), even_signs([seven, 127 - seven, 127, seven])] {
                assert!(signs.iter().all(|signs| signs.count_ones() % 2 == 0));
                assert_eq!([signs[0] & 127, signs[3] & 127], [seven; 2]);
            }
        }
    }
}
