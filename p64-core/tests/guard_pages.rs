//! Everything that computes, on buffers that end (or begin) at a page that nobody may touch: a read or a write of one byte
//! too many ends the process. Under AddressSanitizer (`.ci/asan.sh`) these tests see what happens between buffers as well.
//!
//! Every type, every level of instructions, sizes around the lengths of vectors. On the way all levels must give the same bits.
#![cfg(all(unix, target_endian = "little"))]

#[path = "guard_pages/isolated.rs"]
mod isolated;
#[path = "guard_pages/memory.rs"]
mod memory;

use isolated::enter;
use memory::{Arena, Side};
use p64_core::kernel::generic::activation::{gelu_f16_gate, gelu_gate, silu_gate, softcap};
use p64_core::kernel::generic::attention::Attention;
use p64_core::kernel::generic::cache::{BLOCK, BLOCK_BYTES, Rows, write_f16, write_q8_0};
use p64_core::kernel::generic::layernorm::layernorm_in_place;
use p64_core::kernel::generic::rmsnorm::{rmsnorm, rmsnorm_heads, rmsnorm_in_place};
use p64_core::kernel::generic::rope::{Pairing, Rope};
use p64_core::kernel::generic::softmax::softmax;
use p64_core::kernel::matmul::{activations_len, transposed_len};
use p64_core::kernel::workers::Job;
use p64_core::kernel::{Activations, Level, MatmulScratch, Matrix, Serial, Workers, is_supported, matmul};
use p64_core::quant::activation;
use p64_core::{DType, Shape};

const SIDES: [Side; 2] = [Side::End, Side::Start];

/// Numbers of rows around those that kernels take together.
const ROWS: [usize; 6] = [1, 7, 8, 16, 19, 32];

/// Bytes of the largest buffer of weights: 32 rows of 1056 floats. That of 130 positions has four times as many.
const ARENA: usize = 33 * 1056 * 4;

/// The same bytes in every run.
struct Bytes(u64);

impl Bytes {
    fn next(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0.to_le_bytes()[6]
    }

    /// A payload of any type. Without this bit no number is infinite in f32, f16 or bf16, and no byte too much for ternary.
    fn weights(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() & 0xbf).collect()
    }

    /// Between -1 and 1.
    fn values(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| f32::from(i16::from_le_bytes([self.next(), self.next()])) / 32768.0).collect()
    }
}

/// Parts of a few units, so that an output begins and ends in the middle of the rows.
struct Parts;

impl Workers for Parts {
    fn for_each_chunk(&self, out: &mut [f32], unit: usize, job: Job<'_>) {
        for (part, first) in out.chunks_mut(7 * unit).zip((0..).step_by(7)) {
            job(first, part);
        }
    }

    fn threads(&self) -> usize {
        1
    }
}

/// Levels that this processor has, one after the other in force for the whole process, which runs no other test.
fn levels() -> impl Iterator<Item = &'static str> {
    Level::ALL.into_iter().filter(|level| *level <= Level::detect()).map(|level| {
        level.cap();
        level.name()
    })
}

/// The first result of a case, which all others must equal.
#[derive(Default)]
struct Expected(Option<Vec<u32>>);

impl Expected {
    fn check(&mut self, found: &[f32]) {
        // One NaN is as good as another.
        let bits: Vec<u32> = found.iter().map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect();
        assert_eq!(self.0.get_or_insert_with(|| bits.clone()), &bits);
    }
}

fn types() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|dtype| is_supported(*dtype))
}

/// Bytes of a matrix; `None` where the type has no matrix of that shape.
fn payload(dtype: DType, rows: usize, cols: usize) -> Option<usize> {
    let shape = Shape::new(&[u32::try_from(cols).ok()?, u32::try_from(rows).ok()?])?;
    usize::try_from(dtype.byte_len(&shape).ok()??).ok()
}

/// Row lengths: a few blocks, or numbers around the lengths of vectors.
fn lengths(dtype: DType) -> Vec<usize> {
    match dtype.block().map_or(1, |block| block.elements as usize) {
        1 => vec![1, 7, 31, 33, 96, 1027],
        256 => vec![256, 768],
        block => vec![block, 3 * block, 1024 / block * block],
    }
}

#[test]
fn products() {
    isolated::test("products", || {
        let mut bytes = Bytes(1);
        let (mut payloads, mut inputs, mut outputs) = (Arena::new(ARENA), Arena::new(4 * ARENA), Arena::new(ARENA));
        let (mut blocks, mut turned) = (Arena::new(4 * ARENA), Arena::new(ARENA));
        for dtype in types() {
            let mut shapes = 0;
            for (rows, cols) in lengths(dtype).into_iter().flat_map(|cols| ROWS.map(|rows| (rows, cols))) {
                let Some(payload) = payload(dtype, rows, cols).map(|len| bytes.weights(len)) else { continue };
                if Matrix::new(dtype, rows, cols, &payload).is_err() {
                    // A type of several rows together has no other number of rows.
                    continue;
                }
                shapes += 1;
                // One position, some, a vector and one more, more than a panel.
                for (n, mode) in [1, 3, 11, 12, 17, 33, 130]
                    .into_iter()
                    .map(|n| (n, Activations::Quantized))
                    .chain([(1, Activations::F32), (9, Activations::F32)])
                {
                    let x = bytes.values(n * cols);
                    let mut expected = Expected::default();
                    for level in levels() {
                        for (side, workers) in
                            [(Side::End, &Serial as &dyn Workers), (Side::End, &Parts), (Side::Start, &Serial)]
                        {
                            enter(format_args!("{dtype} {rows}x{cols}, n={n}, {mode:?}, {level}, {side:?}"));
                            let w = Matrix::new(dtype, rows, cols, payloads.copy(&payload, side)).expect("as before");
                            let out = outputs.slice(n * rows, side);
                            out.fill(f32::NAN);
                            let mut scratch = MatmulScratch {
                                activations: blocks.slice(activations_len(cols, n), side),
                                transposed: turned.slice(transposed_len(rows, n), side),
                            };
                            matmul(&w, inputs.copy(&x, side), n, out, mode, &mut scratch, workers)
                                .expect("lengths fit");
                            expected.check(out);
                        }
                    }
                }
            }
            assert!(shapes > 0, "{dtype}: none of the shapes");
        }
    });
}

#[test]
fn decoded_rows() {
    isolated::test("decoded_rows", || {
        let mut bytes = Bytes(2);
        let (mut payloads, mut outputs) = (Arena::new(ARENA), Arena::new(ARENA));
        for dtype in types() {
            let mut shapes = 0;
            for (rows, cols) in lengths(dtype).into_iter().flat_map(|cols| ROWS.map(|rows| (rows, cols))) {
                let Some(payload) = payload(dtype, rows, cols).map(|len| bytes.weights(len)) else { continue };
                if Matrix::new(dtype, rows, cols, &payload).is_err() {
                    continue;
                }
                shapes += 1;
                let mut expected: Vec<Expected> = (0..rows).map(|_| Expected::default()).collect();
                for level in levels() {
                    for side in SIDES {
                        enter(format_args!("{dtype} {rows}x{cols}, {level}, {side:?}"));
                        let w = Matrix::new(dtype, rows, cols, payloads.copy(&payload, side)).expect("as before");
                        for (row, expected) in expected.iter_mut().enumerate() {
                            let out = outputs.slice(cols, side);
                            w.dequantize_row(row, out).expect("a row");
                            expected.check(out);
                        }
                    }
                }
            }
            assert!(shapes > 0, "{dtype}: none of the shapes");
        }
    });
}

/// Heads of whole blocks for every type of cache, others for those that have no blocks.
#[test]
fn attention() {
    isolated::test("attention", || {
        let mut bytes = Bytes(3);
        let [mut queries, mut kept, mut scores, mut outputs] = [(); 4].map(|()| Arena::new(ARENA));
        for head_dim in [1, 5, 8, 20, 32, 33, 64, 96, 100, 160] {
            for (n_head, n_kv_head) in [(1, 1), (6, 2)] {
                for positions in [1, 2, 3, 4, 5, 8, 9, 33] {
                    let q = bytes.values(n_head * head_dim);
                    let rows = bytes.values(positions * n_kv_head * head_dim);
                    let softcap = (positions % 2 == 1).then_some(20.0);
                    let heads = Attention { n_head, n_kv_head, head_dim, scale: 0.3, softcap };
                    for visible in [0..positions, positions / 2..positions, 0..positions.div_ceil(2)] {
                        for kind in ["f32", "f16", "q8_0"] {
                            if kind == "q8_0" && head_dim % BLOCK != 0 {
                                continue;
                            }
                            let mut expected = Expected::default();
                            for level in levels() {
                                for side in SIDES {
                                    enter(format_args!(
                                        "{n_head}/{n_kv_head} heads of {head_dim}, {visible:?} of {positions} in {kind}, {level}, {side:?}"
                                    ));
                                    let cache = match kind {
                                        "f32" => Rows::f32(kept.copy(&rows, side)),
                                        "f16" => {
                                            let halves = kept.slice::<[u8; 2]>(rows.len(), side);
                                            write_f16(&rows, halves);
                                            Rows::f16(halves)
                                        }
                                        _ => {
                                            let blocks = kept.slice::<[u8; BLOCK_BYTES]>(rows.len() / BLOCK, side);
                                            write_q8_0(&rows, blocks);
                                            Rows::q8_0(blocks)
                                        }
                                    };
                                    let (q, scores) = (queries.copy(&q, side), scores.slice(visible.len(), side));
                                    let out = outputs.slice(q.len(), side);
                                    out.fill(f32::NAN);
                                    heads.attend(q, cache, cache, visible.clone(), scores, out).expect("lengths fit");
                                    expected.check(out);
                                }
                            }
                        }
                    }
                }
            }
        }
    });
}

/// A step that changes its first argument by the others: values, weights, output.
type Step = (&'static str, fn(&mut [f32], &[f32], &mut [f32]));

#[test]
fn steps_between_products() {
    const STEPS: [Step; 10] = [
        ("softmax", |x, _, _| softmax(x)),
        ("softcap", |x, _, _| softcap(x, 30.0)),
        ("silu_gate", |x, w, _| silu_gate(x, w)),
        ("gelu_gate", |x, w, _| gelu_gate(x, w)),
        ("gelu_f16_gate", |x, w, _| gelu_f16_gate(x, w)),
        ("rmsnorm", |x, w, out| rmsnorm(x, w, 1e-5, out)),
        ("rmsnorm_in_place", |x, w, _| rmsnorm_in_place(x, w, 1e-5)),
        ("layernorm_in_place", |x, w, _| layernorm_in_place(x, w, 1e-5)),
        ("rmsnorm_heads", |x, w, _| rmsnorm_heads(x, &w[..w.len() / 2], 1e-5)),
        ("rope", |x, _, _| {
            for pairing in [Pairing::Adjacent, Pairing::Split] {
                let (head_dim, rope_dim) = (x.len() / 2, x.len() / 4 * 2);
                let (freq_factors, yarn) = (None, None);
                let (freq_base, freq_scale, magnitude) = (1e4, 1.0, 1.0);
                Rope { head_dim, rope_dim, pairing, freq_base, freq_scale, freq_factors, yarn, magnitude }.apply(x, 5);
            }
        }),
    ];
    isolated::test("steps_between_products", || {
        let mut bytes = Bytes(4);
        let [mut values, mut weights, mut outputs] = [(); 3].map(|()| Arena::new(ARENA));
        let mut blocks = Arena::new(ARENA);
        for len in [2, 4, 6, 8, 14, 16, 18, 30, 32, 34, 62, 64, 66, 128, 130, 1000] {
            let (start, factors) = (bytes.values(len), bytes.values(len));
            for (name, step) in STEPS {
                let mut expected = Expected::default();
                for level in levels() {
                    for side in SIDES {
                        enter(format_args!("{name} of {len}, {level}, {side:?}"));
                        let (x, out) = (values.slice(len, side), outputs.slice(len, side));
                        x.copy_from_slice(&start);
                        out.fill(0.0);
                        step(x, weights.copy(&factors, side), out);
                        let all: Vec<f32> = x.iter().chain(&*out).copied().collect();
                        expected.check(&all);
                    }
                }
            }
            for side in SIDES {
                enter(format_args!("activations of {len}, {side:?}"));
                activation::quantize(values.copy(&start, side), blocks.slice(len / 32, side));
            }
        }
    });
}

/// Without this, memory without guards would pass everything above.
#[test]
fn a_touched_guard_ends_the_process() {
    let ended = isolated::run("a_touched_guard_ends_the_process", || {
        enter(format_args!("behind"));
        std::hint::black_box(Arena::new(1).touch_guard(Side::End));
        enter(format_args!("after that"));
    });
    let Some(output) = ended else { return };
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && stdout.contains("case: behind") && !stdout.contains("after that"), "{stdout}");
}

#[test]
fn so_does_the_guard_in_front() {
    let ended = isolated::run("so_does_the_guard_in_front", || {
        enter(format_args!("in front"));
        std::hint::black_box(Arena::new(1).touch_guard(Side::Start));
        enter(format_args!("after that"));
    });
    let Some(output) = ended else { return };
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        !output.status.success() && stdout.contains("case: in front") && !stdout.contains("after that"),
        "{stdout}"
    );
}
