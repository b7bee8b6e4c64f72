//! Every type x shape x number of positions x kind of activations.

use super::naive;
use super::seeds::Rng;
use crate::error::Code;
use crate::kernel::matmul::{activations_len, transposed_len};
use crate::kernel::tolerance::tolerance;
use crate::kernel::workers::Job;
use crate::kernel::{Activations, MatmulScratch, Matrix, Serial, Workers, gemv, is_supported, matmul};
use crate::layout::dtype::DType;
use crate::quant::{ActivationBlock, group};
use std::vec::Vec;

const MODES: [Activations; 2] = [Activations::F32, Activations::Quantized];

fn types() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|dtype| is_supported(*dtype) && !dtype.is_tiled())
}

/// Row lengths of one block, three blocks, and more than a decoded tile with a part left over.
fn row_lengths(dtype: DType) -> [usize; 3] {
    match dtype.block().map_or(1, |block| block.elements as usize) {
        1 => [1, 3, 1023],
        32 => [32, 96, 2080],
        other => [other, 3 * other, 11 * other],
    }
}

fn product(w: &Matrix<'_>, x: &[f32], n: usize, mode: Activations, workers: &dyn Workers) -> Vec<f32> {
    let mut y = std::vec![f32::NAN; n * w.rows()];
    let mut activations = std::vec![ActivationBlock::ZERO; activations_len(w.cols(), n)];
    let mut transposed = std::vec![f32::NAN; transposed_len(w.rows(), n)];
    let mut scratch = MatmulScratch { activations: &mut activations, transposed: &mut transposed };
    matmul(w, x, n, &mut y, mode, &mut scratch, workers).expect("lengths fit");
    y
}

#[test]
fn products_are_within_the_tolerance_of_their_type() {
    for dtype in types() {
        for mode in MODES {
            let limit = tolerance(dtype, mode).expect("a tolerance");
            let mut worst = 0.0f64;
            for (cols, rows) in row_lengths(dtype).into_iter().flat_map(|cols| [1, 2, 3, 7].map(|rows| (cols, rows))) {
                for n in [1, 2, 5] {
                    let mut rng = Rng::new((cols * 100 + rows * 10 + n) as u64);
                    let (bytes, x) = (rng.weights(dtype, rows * cols), rng.activations(n * cols));
                    let w = Matrix::new(dtype, rows, cols, &bytes).expect("lengths fit");
                    let y = product(&w, &x, n, mode, &Serial);
                    let mut row = std::vec![0.0; cols];
                    for r in 0..rows {
                        w.dequantize_row(r, &mut row).expect("a row");
                        for p in 0..n {
                            let (exact, largest) = naive::dot(&row, &x[p * cols..(p + 1) * cols]);
                            let error = (f64::from(y[p * rows + r]) - exact).abs();
                            assert!(
                                error <= limit * largest,
                                "{dtype} {rows}x{cols} n={n} {mode:?} row {r} position {p}: {} for {exact}",
                                y[p * rows + r]
                            );
                            worst = worst.max(error / largest.max(f64::MIN_POSITIVE));
                        }
                    }
                }
            }
            // With --nocapture: how much of the tolerance is used.
            std::println!("{dtype:9} {mode:?}: worst {worst:.1e} of {limit:.0e}");
        }
    }
}

#[test]
fn positions_do_not_depend_on_each_other() {
    for dtype in types() {
        for mode in MODES {
            let (rows, cols, n) = (7, row_lengths(dtype)[1], 11);
            let mut rng = Rng::new(7);
            let (bytes, x) = (rng.weights(dtype, rows * cols), rng.activations(n * cols));
            let w = Matrix::new(dtype, rows, cols, &bytes).expect("lengths fit");
            let together = product(&w, &x, n, mode, &Serial);
            for (x, y) in x.chunks_exact(cols).zip(together.chunks_exact(rows)) {
                assert_eq!(product(&w, x, 1, mode, &Serial), y, "{dtype} {mode:?}");
            }
        }
    }
}

/// Cuts at odd places, last chunk first.
struct Odd;

impl Workers for Odd {
    fn for_each_chunk(&self, out: &mut [f32], unit: usize, job: Job<'_>) {
        let (mut rest, mut chunks) = (out, Vec::new());
        for units in (1..).step_by(2) {
            let len = rest.len().min(units * unit);
            let (chunk, later) = rest.split_at_mut(len);
            chunks.push(chunk);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        let mut first = chunks.iter().map(|chunk| chunk.len()).sum::<usize>() / unit;
        for chunk in chunks.into_iter().rev() {
            first -= chunk.len() / unit;
            job(first, chunk);
        }
    }

    fn threads(&self) -> usize {
        3
    }
}

#[test]
fn results_do_not_depend_on_the_workers() {
    for dtype in types() {
        for (mode, n) in MODES.into_iter().flat_map(|mode| [(mode, 1), (mode, 6)]) {
            let (rows, cols) = (23, row_lengths(dtype)[1]);
            let mut rng = Rng::new(23);
            let (bytes, x) = (rng.weights(dtype, rows * cols), rng.activations(n * cols));
            let w = Matrix::new(dtype, rows, cols, &bytes).expect("lengths fit");
            assert_eq!(product(&w, &x, n, mode, &Odd), product(&w, &x, n, mode, &Serial), "{dtype} {mode:?} n={n}");
        }
    }
}

#[test]
fn empty_products_are_zero_or_nothing() {
    for dtype in types() {
        let none: &[u8] = if dtype == DType::Ternary { &[0; 4] } else { &[] };
        for mode in MODES {
            let w = Matrix::new(dtype, 3, 0, none).expect("no columns");
            assert_eq!(product(&w, &[], 1, mode, &Serial), [0.0; 3]);
            assert_eq!(product(&w, &[], 2, mode, &Serial), [0.0; 6]);
            let w = Matrix::new(dtype, 0, 256, none).expect("no rows");
            assert!(product(&w, &[1.0; 256], 1, mode, &Serial).is_empty());
            assert!(product(&w, &[], 0, mode, &Serial).is_empty());
        }
    }
}

/// The largest integers that each format and the activations can hold do not wrap.
#[test]
fn integer_sums_hold_the_extremes() {
    let activations = ActivationBlock::quantize(&[f32::MIN; 32]);
    for quant in [-128, 127] {
        let group = group::Group { quants: [quant; 32], scales: [1.0], mins: [0.0] };
        let exact = -32.0 * f64::from(quant) * f64::from(f32::MAX);
        let unit = ActivationBlock { scale: 1.0, ..activations };
        let ours = f64::from(group::dot(&[group], &[unit], 0.0)) * f64::from(f32::MAX) / 32639.0;
        assert!((ours - exact).abs() <= exact.abs() * 1e-6, "{ours:e} for {exact:e}");
    }
}

#[test]
fn a_value_that_is_not_finite_is_not_lost() {
    for dtype in types() {
        for mode in MODES {
            let (rows, cols) = (2, row_lengths(dtype)[1]);
            let mut rng = Rng::new(3);
            let (bytes, mut x) = (rng.weights(dtype, rows * cols), rng.activations(cols));
            x[cols - 1] = f32::NAN;
            let w = Matrix::new(dtype, rows, cols, &bytes).expect("lengths fit");
            assert!(product(&w, &x, 1, mode, &Serial).iter().all(|y| y.is_nan()), "{dtype} {mode:?}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let code = |dtype, rows, cols, len| Matrix::new(dtype, rows, cols, &std::vec![0; len]).expect_err("refused").code;
    assert_eq!(code(DType::Q8_K, 1, 256, 292), Code::UnsupportedDType);
    assert_eq!(code(DType::Q8_1, 1, 32, 36), Code::UnsupportedDType);
    assert_eq!(code(DType::Unknown(77), 1, 1, 1), Code::UnsupportedDType);
    assert_eq!(code(DType::Q4_0, 2, 48, 36), Code::PartialBlock);
    assert_eq!(code(DType::Q6_K, 1, 288, 210), Code::PartialBlock);
    assert_eq!(code(DType::Q4_0, 2, 32, 35), Code::LengthMismatch);
    assert_eq!(code(DType::Q4_0, 2, 32, 37), Code::LengthMismatch);
    assert_eq!(code(DType::F32, usize::MAX, usize::MAX, 0), Code::LengthMismatch);
    assert_eq!(code(DType::Ternary, usize::MAX, 3, 8), Code::LengthMismatch);

    let w = Matrix::new(DType::Q4_0, 2, 32, &[0; 36]).expect("lengths fit");
    let run = |x: usize, y: usize, n: usize, blocks: usize, values: usize| {
        let (mut activations, mut transposed) = (std::vec![ActivationBlock::ZERO; blocks], std::vec![0.0; values]);
        let mut scratch = MatmulScratch { activations: &mut activations, transposed: &mut transposed };
        let (x, mut y) = (std::vec![0.0; x], std::vec![0.0; y]);
        matmul(&w, &x, n, &mut y, Activations::Quantized, &mut scratch, &Serial).map_err(|error| error.code)
    };
    assert_eq!(run(64, 4, 2, 2, 4), Ok(()));
    assert_eq!(run(63, 4, 2, 2, 4), Err(Code::LengthMismatch));
    assert_eq!(run(64, 5, 2, 2, 4), Err(Code::LengthMismatch));
    assert_eq!(run(64, 4, 2, 1, 4), Err(Code::BufferTooSmall));
    assert_eq!(run(64, 4, 2, 2, 3), Err(Code::BufferTooSmall));

    assert_eq!(w.dequantize_row(2, &mut [0.0; 32]).expect_err("no such row").code, Code::LengthMismatch);
    assert_eq!(w.dequantize_row(0, &mut [0.0; 33]).expect_err("too long").code, Code::LengthMismatch);
    let mut scratch = MatmulScratch { activations: &mut [], transposed: &mut [] };
    let error = gemv(&w, &[0.0; 32], &mut [0.0; 2], Activations::Quantized, &mut scratch, &Serial);
    assert_eq!(error.expect_err("no scratch").code, Code::BufferTooSmall);
    gemv(&w, &[0.0; 32], &mut [0.0; 2], Activations::F32, &mut scratch, &Serial).expect("the exact path needs none");
}
