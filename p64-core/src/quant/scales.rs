//! Packings that several formats share: nibbles, pairs of bits, fifth bits, the 6-bit scales of the K formats.
#![forbid(unsafe_code)]

/// Scale and minimum of the eight groups of a Q4_K or Q5_K block, 6 bits each, as stored (not yet multiplied).
///
/// ```text
/// byte  0..4    scale 0..4 in the low 6 bits, upper 2 bits of scale 4..8 above them
/// byte  4..8    minimum 0..4 in the low 6 bits, upper 2 bits of minimum 4..8 above them
/// byte  8..12   lower 4 bits: scale 4..8, upper 4 bits: minimum 4..8
/// ```
#[inline(always)]
#[must_use]
pub fn six_bit_pairs(packed: &[u8; 12]) -> ([u8; 8], [u8; 8]) {
    let [s0, s1, s2, s3, m0, m1, m2, m3, h0, h1, h2, h3] = *packed;
    let scale = |low: u8, four: u8| (four & 0x0f) | ((low >> 2) & 0x30);
    let minimum = |low: u8, four: u8| (four >> 4) | ((low >> 2) & 0x30);
    (
        [s0 & 63, s1 & 63, s2 & 63, s3 & 63, scale(s0, h0), scale(s1, h1), scale(s2, h2), scale(s3, h3)],
        [m0 & 63, m1 & 63, m2 & 63, m3 & 63, minimum(m0, h0), minimum(m1, h1), minimum(m2, h2), minimum(m3, h3)],
    )
}

/// The sixteen 6-bit scales of a Q3_K block, less their offset of 32.
///
/// ```text
/// byte  0..8    low nibble: lower 4 bits of scale 0..8, high nibble: of scale 8..16
/// byte  8..12   byte 8+i holds the upper 2 bits of scales i, 4+i, 8+i, 12+i, from bit 0 up
/// ```
#[inline(always)]
#[must_use]
pub fn six_bit_sixteen(packed: &[u8; 12]) -> [i8; 16] {
    let (low, high) = (u64::from_le_bytes(first_eight(packed)), last_four(packed));
    let mut scales = [0i8; 16];
    for (i, scale) in scales.iter_mut().enumerate() {
        let nibble = (low >> (8 * (i % 8) + 4 * (i / 8))) & 0x0f;
        let upper = (u32::from_le_bytes(high) >> (8 * (i % 4) + 2 * (i / 4))) & 0x03;
        let [byte, ..] = (nibble | u64::from(upper) << 4).to_le_bytes();
        // At most 63, so the difference is -32..=31.
        *scale = byte.wrapping_sub(32).cast_signed();
    }
    scales
}

fn first_eight(packed: &[u8; 12]) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = *packed;
    [a, b, c, d, e, f, g, h]
}

fn last_four(packed: &[u8; 12]) -> [u8; 4] {
    let [.., a, b, c, d] = *packed;
    [a, b, c, d]
}

/// The 32 nibbles of 16 bytes: all low ones, then all high ones.
#[inline(always)]
#[must_use]
pub fn nibbles(packed: &[u8; 16]) -> [i16; 32] {
    let mut all = [0i16; 32];
    let (low, high) = all.split_at_mut(16);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(packed) {
        *low = i16::from(byte & 0x0f);
        *high = i16::from(byte >> 4);
    }
    all
}

/// The eight 2-bit numbers of 16 bits, the lowest first. A multiplication moves each to the top, a shift down again: every
/// vector unit has both in 16-bit lanes, few can shift each lane by another number.
#[inline(always)]
#[must_use]
pub fn two_bits(packed: u16) -> [i16; 8] {
    const TOP: [u16; 8] = [1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1 << 4, 1 << 2, 1];
    TOP.map(|factor| (packed.wrapping_mul(factor) >> 14).cast_signed())
}

/// The scales of two halves of a group in IQ2_XS and IQ2_S: `d * (nibble + 1/2) / 4`, low nibble first.
#[inline(always)]
#[must_use]
pub fn half_steps(d: f32, packed: u8) -> [f32; 2] {
    [packed & 0x0f, packed >> 4].map(|nibble| d * (0.5 + f32::from(nibble)) * 0.25)
}

/// 32 bits as integers of 0 or 16: the fifth bits of the Q5 formats, in place to be joined to nibbles.
#[inline(always)]
#[must_use]
pub fn fifth_bits(packed: [u8; 4]) -> [i16; 32] {
    let mut spread = [0i16; 32];
    for (out, byte) in spread.as_chunks_mut::<8>().0.iter_mut().zip(packed) {
        *out = FIFTH[usize::from(byte)];
    }
    spread
}

/// What every byte of fifth bits spreads to.
static FIFTH: [[i16; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte][bit] = if byte >> bit & 1 == 0 { 0 } else { 16 };
            bit += 1;
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_bit_pairs_reach_every_bit() {
        // Scale 5 has its upper bits in byte 1 and its lower ones in byte 9; minimum 7 in bytes 7 and 11.
        let mut packed = [0u8; 12];
        (packed[1], packed[9]) = (0b1000_0000, 0x0d);
        (packed[7], packed[11]) = (0b0100_0011, 0xe0);
        let (scales, mins) = six_bit_pairs(&packed);
        assert_eq!(scales, [0, 0, 0, 0, 0, 0b10_1101, 0, 0]);
        assert_eq!(mins, [0, 0, 0, 3, 0, 0, 0, 0b01_1110]);
        assert_eq!(six_bit_pairs(&[0xff; 12]), ([63; 8], [63; 8]));
    }

    #[test]
    fn six_bit_sixteen_reaches_every_bit() {
        assert_eq!(six_bit_sixteen(&[0; 12]), [-32; 16]);
        assert_eq!(six_bit_sixteen(&[0xff; 12]), [31; 16]);
        let mut packed = [0u8; 12];
        // Scale 13: high nibble of byte 5, bits 6..8 of byte 9.
        (packed[5], packed[9]) = (0x50, 0b1000_0000);
        let mut expected = [-32i8; 16];
        expected[13] = 0b10_0101 - 32;
        assert_eq!(six_bit_sixteen(&packed), expected);
    }

    #[test]
    fn two_bits_are_the_pairs() {
        assert_eq!(two_bits(0b11_10_01_00_00_01_10_11), [3, 2, 1, 0, 0, 1, 2, 3]);
    }

    #[test]
    fn fifth_bits_are_the_bits() {
        for byte in 0..=255u8 {
            let spread = fifth_bits([byte, !byte, 0, 255]);
            for i in 0..8 {
                assert_eq!(spread[i], i16::from(byte >> i & 1) << 4);
                assert_eq!(spread[8 + i], i16::from(!byte >> i & 1) << 4);
                assert_eq!((spread[16 + i], spread[24 + i]), (0, 16));
            }
        }
    }
}
