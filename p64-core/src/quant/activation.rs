//! Quantised activations: what the weights' integers are multiplied with on the production path.
//!
//! GGML rounds activations to 8 bits. Sixteen bits cost the same multiply-and-add-pairs instruction and leave an error
//! of at most 1/65278 of the block's largest value, so that logits stay close to those of `f32` activations. The format
//! lives in memory only.
//!
//! ```text
//! scale   f32        largest magnitude / 32639
//! sums    i32 x 2    sums of the first and of the last 16 quants, for formats with a minimum
//! quants  i16 x 32   nearest integers of x / scale
//! ```
#![forbid(unsafe_code)]

/// 32 activations, quantised together. `x[i]` is about `scale * quants[i]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActivationBlock {
    /// Value of one step.
    pub scale: f32,
    /// Sums of each half of the quants.
    pub sums: [i32; 2],
    /// The integers, -32639 to 32639: `256 * high + low` with both from -128 to 127, for instructions that multiply bytes.
    pub quants: [i16; 32],
}

/// The largest quant.
const LARGEST: f32 = 32639.0;

impl ActivationBlock {
    /// 32 zeros.
    pub const ZERO: Self = Self { scale: 0.0, sums: [0; 2], quants: [0; 32] };

    /// Quantises 32 values.
    ///
    /// Values that are all zero, or so small (below about 1e-34) that the step has no reciprocal, become zero. A value
    /// that is not finite makes the scale not finite, so that whatever is computed with the block is not finite either.
    // For vectors; where there are none, code is what is scarce.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    #[must_use]
    pub fn quantize(values: &[f32; 32]) -> Self {
        // Eight lanes, for vectors. A comparison passes NaN over, a sum of products with zero does not: 0 * inf and 0 * NaN
        // are NaN.
        let (mut poison, mut largest) = ([0.0f32; 8], [0.0f32; 8]);
        for values in values.as_chunks::<8>().0 {
            for ((poison, largest), value) in poison.iter_mut().zip(&mut largest).zip(values) {
                *poison += value * 0.0;
                let magnitude = value.abs();
                *largest = if magnitude > *largest { magnitude } else { *largest };
            }
        }
        if poison.into_iter().sum::<f32>().is_nan() {
            return Self { scale: f32::NAN, ..Self::ZERO };
        }
        let largest = largest.into_iter().fold(0.0f32, f32::max);
        let inverse = LARGEST / largest;
        if !inverse.is_finite() {
            return Self::ZERO;
        }
        let mut block = Self { scale: largest / LARGEST, ..Self::ZERO };
        for (quant, value) in block.quants.iter_mut().zip(values) {
            *quant = nearest(value * inverse);
        }
        for (sum, half) in block.sums.iter_mut().zip(block.quants.as_chunks::<16>().0) {
            *sum = half.iter().map(|quant| i32::from(*quant)).sum();
        }
        block
    }
}

/// The nearest integer of a value within +-32639.5, ties to even.
#[inline(always)]
const fn nearest(value: f32) -> i16 {
    // Adding 1.5 * 2^23 leaves no fraction bits, so the addition itself rounds, and the integer is in the lowest bits.
    const SHIFT: f32 = 12_582_912.0;
    let [low, high, ..] = (value + SHIFT).to_bits().to_le_bytes();
    i16::from_le_bytes([low, high])
}

/// Quantises a row of values, 32 to a block. Of the two, the shorter bounds how many blocks are written.
#[inline(always)]
pub fn quantize(values: &[f32], blocks: &mut [ActivationBlock]) {
    for (values, block) in values.as_chunks::<32>().0.iter().zip(blocks) {
        *block = ActivationBlock::quantize(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quants_are_the_nearest_and_sums_are_theirs() {
        let mut values = [0.0f32; 32];
        for (i, value) in values.iter_mut().enumerate() {
            *value = libm::sinf(i as f32 * 1.7) * 3.0;
        }
        values[20] = -4.0;
        let block = ActivationBlock::quantize(&values);
        assert_eq!(block.quants[20], -32639);
        for (value, quant) in values.iter().zip(block.quants) {
            let exact = f64::from(*value) * 32639.0 / 4.0;
            assert!((exact - f64::from(quant)).abs() <= 0.503, "{exact} became {quant}");
        }
        assert_eq!(block.sums[0], block.quants[..16].iter().map(|q| i32::from(*q)).sum::<i32>());
        assert_eq!(block.sums[1], block.quants[16..].iter().map(|q| i32::from(*q)).sum::<i32>());
    }

    #[test]
    fn zeros_and_values_that_vanish_give_zero() {
        assert_eq!(ActivationBlock::quantize(&[0.0; 32]), ActivationBlock::ZERO);
        assert_eq!(ActivationBlock::quantize(&[-0.0; 32]), ActivationBlock::ZERO);
        assert_eq!(ActivationBlock::quantize(&[1e-40; 32]), ActivationBlock::ZERO);
    }

    #[test]
    fn what_is_not_finite_stays_so() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = [1.0; 32];
            values[7] = bad;
            assert!(ActivationBlock::quantize(&values).scale.is_nan());
        }
    }

    #[test]
    fn the_extremes_do_not_wrap() {
        let block = ActivationBlock::quantize(&[f32::MAX; 32]);
        assert_eq!((block.quants[0], block.sums), (32639, [16 * 32639; 2]));
        let block = ActivationBlock::quantize(&[f32::MIN; 32]);
        assert_eq!((block.quants[0], block.sums), (-32639, [16 * -32639; 2]));
    }
}
