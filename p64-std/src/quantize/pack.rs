//! Integers to bits: what the block formats share. The inverse of `p64_core::quant::scales`.

use p64_core::quant::float::{from_f16, to_f16};

/// A scale as it is stored: its bytes, and the number that a reader gets. Beyond the largest F16 it is the largest.
pub(super) fn stored(scale: f32) -> ([u8; 2], f32) {
    let bytes = to_f16(scale.clamp(-65504.0, 65504.0));
    (bytes, from_f16(&bytes))
}

/// The low nibbles of 32 integers: element i low, element i + 16 high.
pub(super) fn nibbles(quants: &[u8; 32]) -> [u8; 16] {
    let (low, high) = quants.split_at(16);
    let mut packed = [0; 16];
    for (packed, (low, high)) in packed.iter_mut().zip(low.iter().zip(high)) {
        *packed = low & 0x0f | high << 4;
    }
    packed
}

/// Bit 4 of 32 integers, element i at bit i.
pub(super) fn fifth_bits(quants: &[u8; 32]) -> [u8; 4] {
    let bits = quants.iter().rev().fold(0u32, |bits, quant| bits << 1 | u32::from(quant >> 4 & 1));
    bits.to_le_bytes()
}

/// Eight 6-bit scales and eight 6-bit minima in 12 bytes (Q4_K, Q5_K).
pub(super) fn six_bit_pairs(scales: &[u8; 8], mins: &[u8; 8]) -> [u8; 12] {
    let mut packed = [0; 12];
    let (head, fours) = packed.split_at_mut(8);
    let (low_scales, low_mins) = head.split_at_mut(4);
    for (side, values) in [(low_scales, scales), (low_mins, mins)] {
        let (low, high) = values.split_at(4);
        for (packed, (low, high)) in side.iter_mut().zip(low.iter().zip(high)) {
            *packed = low & 0x3f | high >> 4 << 6;
        }
    }
    for (packed, (scale, min)) in fours.iter_mut().zip(scales.iter().zip(mins).skip(4)) {
        *packed = scale & 0x0f | min << 4;
    }
    packed
}

/// Sixteen 6-bit scales, their offset of 32 added, in 12 bytes (Q3_K).
pub(super) fn six_bit_sixteen(scales: &[u8; 16]) -> [u8; 12] {
    let mut packed = [0; 12];
    let (nibbles, uppers) = packed.split_at_mut(8);
    for (packed, (low, high)) in nibbles.iter_mut().zip(scales.iter().zip(scales.iter().skip(8))) {
        *packed = low & 0x0f | high << 4;
    }
    for (i, packed) in uppers.iter_mut().enumerate() {
        let column = scales.iter().skip(i).step_by(4).rev();
        *packed = column.fold(0, |bits, scale| bits << 2 | scale >> 4 & 3);
    }
    packed
}

/// 2-bit fields of 256 integers from bit `SHIFT` up, in two runs of 32 bytes: bits 2j and up of run n are of elements
/// 128n + 32j and on.
pub(super) fn two_bit_runs<const SHIFT: u8>(quants: &[[u8; 32]; 8]) -> [[u8; 32]; 2] {
    let mut runs = [[0; 32]; 2];
    for (run, quants) in runs.iter_mut().zip(quants.as_chunks::<4>().0) {
        for (quants, shift) in quants.iter().zip([0, 2, 4, 6]) {
            for (packed, quant) in run.iter_mut().zip(quants) {
                *packed |= (quant >> SHIFT & 3) << shift;
            }
        }
    }
    runs
}

/// The low nibbles of 256 integers in four runs of 32 bytes: low nibbles of run n are elements 64n and on, high ones
/// 64n + 32 and on.
pub(super) fn nibble_runs(quants: &[[u8; 32]; 8]) -> [[u8; 32]; 4] {
    let mut runs = [[0; 32]; 4];
    for (run, [low, high]) in runs.iter_mut().zip(quants.as_chunks::<2>().0) {
        for (packed, (low, high)) in run.iter_mut().zip(low.iter().zip(high)) {
            *packed = low & 0x0f | high << 4;
        }
    }
    runs
}

/// Bit `BIT` of 256 integers in 32 bytes: bit g of byte l is of element 32g + l.
pub(super) fn bit_planes<const BIT: u8>(quants: &[[u8; 32]; 8]) -> [u8; 32] {
    let mut planes = [0; 32];
    for (quants, plane) in quants.iter().zip(0..) {
        for (packed, quant) in planes.iter_mut().zip(quants) {
            *packed |= (quant >> BIT & 1) << plane;
        }
    }
    planes
}

#[cfg(test)]
mod tests {
    use super::*;
    use p64_core::quant::scales;

    #[test]
    fn six_bit_packings_are_read_back() {
        let scales: [u8; 8] = std::array::from_fn(|i| u8::try_from(i * 37 % 64).expect("small"));
        let mins: [u8; 8] = std::array::from_fn(|i| u8::try_from((i * 23 + 41) % 64).expect("small"));
        assert_eq!(scales::six_bit_pairs(&six_bit_pairs(&scales, &mins)), (scales, mins));
        let sixteen: [u8; 16] = std::array::from_fn(|i| u8::try_from((i * 29 + 5) % 64).expect("small"));
        let back = scales::six_bit_sixteen(&six_bit_sixteen(&sixteen)).map(|scale| (scale + 32).cast_unsigned());
        assert_eq!(back, sixteen);
    }

    #[test]
    fn scales_beyond_f16_are_the_largest() {
        assert_eq!(stored(1e9), ([0xff, 0x7b], 65504.0));
        assert_eq!(stored(-1e9).1, -65504.0);
        assert_eq!(stored(1.0 + 1.0 / 4096.0).1, 1.0);
    }
}
