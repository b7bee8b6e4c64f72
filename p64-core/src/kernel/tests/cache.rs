//! Keys and values in types smaller than `f32`.

use super::naive;
use super::seeds::Rng;
use crate::error::Code;
use crate::kernel::generic::attention::Attention;
use crate::kernel::generic::cache::{BLOCK, BLOCK_BYTES, Rows, write_f16, write_q8_0};
use crate::kernel::generic::spread;
use crate::kernel::workers::Job;
use crate::kernel::{Serial, Workers};
use crate::layout::dtype::DType;
use std::vec::Vec;

/// Rows in one of the types, and the values that they have.
struct Kept {
    halves: Vec<[u8; 2]>,
    blocks: Vec<[u8; BLOCK_BYTES]>,
    values: Vec<f32>,
}

impl Kept {
    fn all(x: &[f32]) -> [Self; 3] {
        let mut halves = std::vec![[0; 2]; x.len()];
        write_f16(x, &mut halves);
        let mut blocks = std::vec![[0; BLOCK_BYTES]; x.len() / BLOCK];
        write_q8_0(x, &mut blocks);
        let decode = |dtype, bytes: &[u8]| {
            let mut values = std::vec![0.0; x.len()];
            crate::kernel::dequantize(dtype, bytes, &mut values).expect("lengths fit");
            values
        };
        let (of_halves, of_blocks) =
            (decode(DType::F16, halves.as_flattened()), decode(DType::Q8_0, blocks.as_flattened()));
        [
            Self { halves: Vec::new(), blocks: Vec::new(), values: x.to_vec() },
            Self { halves, blocks: Vec::new(), values: of_halves },
            Self { halves: Vec::new(), blocks, values: of_blocks },
        ]
    }

    fn rows(&self) -> Rows<'_> {
        match self {
            Self { halves, .. } if !halves.is_empty() => Rows::f16(halves),
            Self { blocks, .. } if !blocks.is_empty() => Rows::q8_0(blocks),
            Self { values, .. } => Rows::f32(values),
        }
    }
}

#[test]
fn attention_sees_the_rounded_values_and_nothing_else() {
    for (n_head, n_kv_head, head_dim) in [(4, 4, 32), (9, 3, 64), (4, 1, 96)] {
        let shape = Attention { n_head, n_kv_head, head_dim, scale: 0.1, softcap: None };
        let mut rng = Rng::new(n_head as u64);
        let (positions, group) = (41, n_head / n_kv_head);
        let mut values = |len: usize| -> Vec<f32> { (0..len).map(|_| rng.value() * 2.0).collect() };
        let (q, keys, values) = (
            values(n_head * head_dim),
            values(positions * n_kv_head * head_dim),
            values(positions * n_kv_head * head_dim),
        );
        for (keys, values) in Kept::all(&keys).iter().flat_map(|k| Kept::all(&values).map(|v| (k, v))) {
            for visible in [0..1, 0..37, 30..41] {
                let run = |keys: Rows<'_>, values: Rows<'_>| {
                    let (mut scores, mut out) = (std::vec![0.0; visible.len()], std::vec![f32::NAN; q.len()]);
                    shape.attend(&q, keys, values, visible.clone(), &mut scores, &mut out).expect("lengths fit");
                    out
                };
                let ours = run(keys.rows(), values.rows());
                assert_eq!(ours, run(Rows::f32(&keys.values), Rows::f32(&values.values)), "bit for bit");
                for head in 0..n_head {
                    let at = |t: usize| (head / group * positions + t) * head_dim;
                    let score = |t: usize| {
                        0.1 * naive::dot(&q[head * head_dim..][..head_dim], &keys.values[at(t)..][..head_dim]).0
                    };
                    let powers: Vec<f64> = visible.clone().map(|t| score(t).exp()).collect();
                    let sum: f64 = powers.iter().sum();
                    let exact = |d: usize| {
                        let terms = visible.clone().zip(&powers);
                        terms.map(|(t, power)| power / sum * f64::from(values.values[at(t) + d])).sum()
                    };
                    let exact: Vec<f64> = (0..head_dim).map(exact).collect();
                    naive::assert_close(&ours[head * head_dim..][..head_dim], &exact, 1e-5);
                }
            }
        }
    }
}

/// Cuts outputs into units or threes of them, and works from the back.
struct Pieces;

impl Workers for Pieces {
    fn for_each_chunk(&self, out: &mut [f32], unit: usize, job: Job<'_>) {
        for (index, chunk) in out.chunks_mut(unit * 3).enumerate().rev() {
            job(index * 3, chunk);
        }
    }

    fn for_each_unit(&self, out: &mut [f32], unit: usize, job: Job<'_>) {
        for (index, chunk) in out.chunks_mut(unit).enumerate().rev() {
            job(index, chunk);
        }
    }

    fn threads(&self) -> usize {
        3
    }
}

#[test]
fn a_position_spread_over_threads_or_with_its_heads_apart_has_the_same_bits() {
    for (n_head, n_kv_head, head_dim) in [(4, 4, 32), (9, 3, 64), (4, 1, 256), (7, 1, 96), (10, 2, 32)] {
        for softcap in [None, Some(5.0)] {
            let shape = Attention { n_head, n_kv_head, head_dim, scale: 0.2, softcap };
            let mut rng = Rng::new(n_head as u64);
            let positions = 141;
            let (q, keys) = (rng.activations(n_head * head_dim), rng.activations(positions * n_kv_head * head_dim));
            let values = rng.activations(keys.len());
            for (keys, values) in Kept::all(&keys).iter().zip(Kept::all(&values)) {
                for visible in [0..1, 0..130, 17..141] {
                    let one = |room: usize| {
                        let mut scores = std::vec![f32::NAN; visible.len() * room];
                        let mut out = std::vec![f32::NAN; q.len()];
                        let (keys, values) = (keys.rows(), values.rows());
                        shape.attend(&q, keys, values, visible.clone(), &mut scores, &mut out).expect("lengths fit");
                        out
                    };
                    let spread = |workers: &dyn Workers| {
                        let mut buffer = std::vec![f32::NAN; spread::buffer_len(n_head, head_dim, visible.len())];
                        let (mut out, range) = (std::vec![f32::NAN; q.len()], visible.clone());
                        let (keys, values) = (keys.rows(), values.rows());
                        spread::attend(&shape, &q, keys, values, range, &mut buffer, &mut out, workers)
                            .expect("lengths fit");
                        out
                    };
                    let apart = one(1);
                    for together in [one(2), one(3), one(n_head)] {
                        assert_eq!(apart, together, "{n_head} heads of {head_dim}, {visible:?}");
                    }
                    if shape.by_parts() {
                        assert_eq!(apart, spread(&Serial), "{n_head} heads of {head_dim}, {visible:?}");
                        assert_eq!(apart, spread(&Pieces), "{n_head} heads of {head_dim}, {visible:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn halves_of_any_head_length_are_taken() {
    let shape = Attention { n_head: 2, n_kv_head: 1, head_dim: 11, scale: 0.3, softcap: None };
    let mut rng = Rng::new(11);
    let (q, keys) = (rng.activations(22), rng.activations(7 * 11));
    let mut halves = std::vec![[0; 2]; keys.len()];
    write_f16(&keys, &mut halves);
    let rounded: Vec<f32> = keys.iter().map(|key| half::f16::from_f32(*key).to_f32()).collect();
    let run = |rows: Rows<'_>| {
        let (mut scores, mut out) = ([0.0; 7], [f32::NAN; 22]);
        shape.attend(&q, rows, rows, 0..7, &mut scores, &mut out).map(|()| out)
    };
    assert_eq!(run(Rows::f16(&halves)), run(Rows::f32(&rounded)));
    // Heads of 11 are no blocks.
    let blocks = [[0; BLOCK_BYTES]; 7];
    assert_eq!(run(Rows::q8_0(&blocks)).map_err(|error| error.code), Err(Code::PartialBlock));
}

/// A block that gguf-py (0.17, `quantize` to `Q8_0`) makes of the same values.
#[test]
fn blocks_are_those_of_ggml() {
    let values: [f32; 32] = core::array::from_fn(|i| ((i * 37 % 64) as f32 - 31.3) * 0.0173);
    let mut blocks = [[0xa5; BLOCK_BYTES]];
    write_q8_0(&values, &mut blocks);
    assert_eq!(blocks[0], GGML);
}

const GGML: [u8; BLOCK_BYTES] = [
    108, 28, 131, 23, 171, 63, 211, 103, 251, 143, 35, 183, 75, 223, 115, 7, 155, 47, 195, 87, 235, 127, 19, 167, 59,
    207, 99, 247, 139, 31, 179, 71, 219, 111,
];

#[test]
fn a_block_holds_the_nearest_integers() {
    let mut rng = Rng::new(8);
    for _ in 0..200 {
        let x: Vec<f32> = rng.activations(BLOCK);
        let kept = &Kept::all(&x)[2];
        let largest = x.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        for (x, value) in x.iter().zip(&kept.values) {
            // Half a step, and the step's own rounding to 11 bits.
            let limit = largest / 127.0 * 0.5001 + x.abs() / 2048.0;
            assert!((x - value).abs() <= limit, "{x} became {value}");
        }
    }
}

#[test]
fn blocks_of_nothing_and_of_no_number() {
    let mut blocks = [[0xa5; BLOCK_BYTES]; 4];
    let mut values = [0.0; 4 * BLOCK];
    values[BLOCK] = f32::MIN_POSITIVE;
    values[2 * BLOCK + 3] = f32::NAN;
    values[3 * BLOCK + 9] = f32::INFINITY;
    write_q8_0(&values, &mut blocks);
    let mut found = [1.0; 4 * BLOCK];
    crate::kernel::dequantize(DType::Q8_0, blocks.as_flattened(), &mut found).expect("lengths fit");
    assert!(found[..2 * BLOCK].iter().all(|value| *value == 0.0));
    assert!(found[2 * BLOCK..].iter().all(|value| value.is_nan()));
}
