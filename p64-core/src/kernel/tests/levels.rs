//! Every level of instructions against portable code: the same bits.

use super::seeds::Rng;
use crate::kernel::generic::activation::{gelu_f16_gate, gelu_gate, silu_gate};
use crate::kernel::generic::attention::Attention;
use crate::kernel::generic::cache::{BLOCK_BYTES, Rows as Cached, write_f16, write_q8_0};
use crate::kernel::generic::softmax::softmax;
use crate::kernel::matmul::activations_len;
use crate::kernel::{Kernels, Level, Matrix, Rows, is_supported};
use crate::layout::dtype::DType;
use crate::quant::{ActivationBlock, activation};
use std::vec::Vec;

/// Rows `first..` of a product by the kernels of a level.
pub(super) fn rows(level: Level, w: &Matrix<'_>, first: usize, x: &[f32], n: usize, len: usize) -> Vec<u32> {
    let mut out = std::vec![f32::NAN; len * n];
    match Kernels::of(level).rows(w.dtype()).expect("a kernel") {
        Rows::Exact(rows) => rows(w, first, x, n, &mut out),
        Rows::Quantized(rows) => {
            let mut blocks = std::vec![ActivationBlock::ZERO; activations_len(w.cols(), n)];
            activation::quantize(x, &mut blocks);
            rows(w, first, &blocks, n, &mut out);
        }
    }
    out.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn every_level_gives_the_bits_of_portable_code() {
    for dtype in DType::ALL.iter().copied().filter(|dtype| is_supported(*dtype) && !dtype.is_tiled()) {
        let block = dtype.block().map_or(32, |block| block.elements as usize);
        let lengths = if block == 1 { [5, 32, 1027] } else { [block, 3 * block, 2304 / block * block] };
        for cols in lengths {
            for (first, len) in [(0, 1), (0, 8), (3, 7), (1, 19)] {
                let mut rng = Rng::new((cols + first * 31 + len) as u64);
                let bytes = rng.weights(dtype, (first + len) * cols);
                let w = Matrix::new(dtype, first + len, cols, &bytes).expect("lengths fit");
                // One position, some, a whole vector, more than a panel and a part of one.
                for n in [1, 3, 11, 12, 32, 33, 130] {
                    let x = rng.activations(n * cols);
                    let expected = rows(Level::Scalar, &w, first, &x, n, len);
                    for level in Level::ALL {
                        let found = rows(level, &w, first, &x, n, len);
                        assert!(found == expected, "{dtype} {len}x{cols} from row {first}, n={n}, {}", level.name());
                    }
                }
            }
        }
    }
}

/// What is no number stays none, and spoils no other position.
#[test]
fn a_poisoned_position_is_alone() {
    for dtype in [DType::Q4_1, DType::Q6_K, DType::F16] {
        let (len, cols, n) = (9, 512, 40);
        let mut rng = Rng::new(5);
        let bytes = rng.weights(dtype, len * cols);
        let w = Matrix::new(dtype, len, cols, &bytes).expect("lengths fit");
        let mut x = rng.activations(n * cols);
        x[17 * cols + 300] = f32::INFINITY;
        x[18 * cols + 3] = f32::NAN;
        for level in Level::ALL {
            for (i, bits) in rows(level, &w, 0, &x, n, len).into_iter().enumerate() {
                let poisoned = (17..=18).contains(&(i % n));
                assert_eq!(!f32::from_bits(bits).is_finite(), poisoned, "{dtype} {} at {i}", level.name());
            }
        }
    }
}

/// Everything that is compiled for each level without being a product of a matrix, one after the other.
fn steps() -> Vec<f32> {
    let mut rng = Rng::new(11);
    let mut all = Vec::new();
    // Around the vectors' lengths, and a head of more than one part and a half.
    for (head_dim, positions) in [(64, 1), (96, 7), (32, 40), (160, 9)] {
        let heads = Attention { n_head: 4, n_kv_head: 2, head_dim, scale: 0.17, softcap: None };
        let (q, kv) = (rng.activations(4 * head_dim), rng.activations(positions * 2 * head_dim));
        let (mut halves, mut blocks) = (std::vec![[0; 2]; kv.len()], std::vec![[0; BLOCK_BYTES]; kv.len() / 32]);
        write_f16(&kv, &mut halves);
        write_q8_0(&kv, &mut blocks);
        for rows in [Cached::f32(&kv), Cached::f16(&halves), Cached::q8_0(&blocks)] {
            let (mut scores, mut out) = (std::vec![0.0; positions], std::vec![0.0; q.len()]);
            heads.attend(&q, rows, rows, 0..positions, &mut scores, &mut out).expect("lengths fit");
            all.extend(out);
        }
    }
    for len in [1, 7, 8, 33, 1000] {
        let mut x = rng.activations(len);
        softmax(&mut x);
        all.extend(&x);
        for gate in [silu_gate, gelu_gate, gelu_f16_gate] {
            let (mut x, up) = (rng.activations(len), rng.activations(len));
            gate(&mut x, &up);
            all.extend(&x);
        }
    }
    all
}

/// The one test that lowers the cap of the process: what runs beside it must come out the same, which is the point.
#[test]
fn attention_and_activations_are_the_same_on_every_level() {
    let results = Level::ALL.map(|level| {
        level.cap();
        steps().iter().map(|value| value.to_bits()).collect::<Vec<_>>()
    });
    assert!(results[0].len() > 5000);
    for (level, result) in Level::ALL.iter().zip(&results) {
        assert!(*result == results[0], "{}", level.name());
    }
}
