//! Reproducible weights and activations.

use crate::layout::dtype::DType;
use crate::quant::float::to_f16;
use crate::quant::ternary;
use std::vec::Vec;

/// A small generator (xorshift64*), so that the data depends on nothing but the seed.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Uniform in -1..1.
    pub fn value(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }

    /// Roughly normal, with an outlier now and then as activations have them.
    pub fn activations(&mut self, len: usize) -> Vec<f32> {
        let mut one = || {
            let sum: f32 = (0..6).map(|_| self.value()).sum();
            if self.bits().is_multiple_of(200) { sum * 30.0 } else { sum }
        };
        (0..len).map(|_| one()).collect()
    }

    /// A payload of `elements` weights: random bits with scales of the size that models have.
    pub fn weights(&mut self, dtype: DType, elements: usize) -> Vec<u8> {
        let halves: &[usize] = match dtype {
            DType::F32 => return (0..elements).flat_map(|_| self.value().to_le_bytes()).collect(),
            DType::F16 => return (0..elements).flat_map(|_| to_f16(self.value())).collect(),
            DType::BF16 => {
                return (0..elements).flat_map(|_| self.value().to_le_bytes().into_iter().skip(2)).collect();
            }
            DType::Ternary => {
                let packed = (0..elements.div_ceil(ternary::PER_BYTE)).map(|_| (self.bits() >> 40) % 243);
                return 0.04f32.to_le_bytes().into_iter().chain(packed.map(|byte| byte as u8)).collect();
            }
            DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => &[0, 2],
            DType::Q2_K => &[80, 82],
            DType::Q3_K => &[108],
            DType::Q6_K => &[208],
            DType::TQ1_0 => &[52],
            DType::TQ2_0 => &[64],
            // The scale is in the upper nibbles of the last four words, or no f16 at all.
            DType::IQ1_M | DType::MXFP4 | DType::NVFP4 => &[],
            DType::Q4KSoa => &[128, 130, 132, 134, 136, 138, 140, 142, 144, 146, 148, 150, 152, 154, 156, 158],
            _ => &[0],
        };
        let block = dtype.block().expect("a block type");
        let (per_block, size) = (block.elements as usize, block.bytes as usize);
        let mut bytes: Vec<u8> = (0..elements / per_block * size).map(|_| (self.bits() >> 56) as u8).collect();
        for block in bytes.chunks_exact_mut(size) {
            for offset in halves {
                block[*offset..offset + 2].copy_from_slice(&to_f16(self.value() * 0.02));
            }
            match dtype {
                DType::IQ1_M => {
                    let [low, high] = to_f16(self.value() * 0.02);
                    for (at, nibble) in [(49, low & 15), (51, low >> 4), (53, high & 15), (55, high >> 4)] {
                        block[at] = block[at] & 15 | nibble << 4;
                    }
                }
                DType::MXFP4 => block[0] = 116 + block[0] % 8,
                _ => {}
            }
        }
        bytes
    }
}
