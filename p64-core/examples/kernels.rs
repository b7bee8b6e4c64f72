//! Measures the matrix product and the decoding of every element type, best of many runs, on one core.
//!
//! `cargo run --release -p p64-core --example kernels [TYPE...]`

use p64_core::DType;
use p64_core::kernel::matmul::{activations_len, transposed_len};
use p64_core::kernel::{Activations, MatmulScratch, Matrix, Serial, dequantize, is_supported, matmul};
use p64_core::quant::ActivationBlock;
use std::time::Instant;

/// Small enough to stay in a second-level cache, so that arithmetic is measured and not memory.
const ROWS: usize = 192;
const COLS: usize = 2048;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |dtype: &DType| wanted.is_empty() || wanted.iter().any(|name| name == dtype.name());
    let types = || DType::ALL.iter().copied().filter(|dtype| is_supported(*dtype) && wanted(dtype));
    println!("{ROWS} x {COLS} weights, G multiply-adds/s: 16-bit activations, f32 activations");
    for (n, dtype) in [1, 16].into_iter().flat_map(|n| types().map(move |dtype| (n, dtype))) {
        let [quantized, exact] = [Activations::Quantized, Activations::F32].map(|mode| measure(dtype, n, mode));
        println!("{n:2} positions  {dtype:9}  {quantized:5.2}  {exact:5.2}");
    }
    println!("decoding to f32: MB of packed bytes/s, million values/s");
    for dtype in types() {
        let (bytes, values) = decode(dtype);
        println!("{dtype:9}  {bytes:5.0}  {values:5.0}");
    }
}

fn payload(dtype: DType) -> Vec<u8> {
    let len = match dtype.block() {
        Some(block) => ROWS * COLS / block.elements as usize * block.bytes as usize,
        None => 4 + (ROWS * COLS).div_ceil(5),
    };
    // Bytes below 120 keep every scale finite and every ternary byte legal.
    (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) % 120).map(|byte| byte as u8).collect()
}

/// Packed bytes and values decoded in a second, in MB and in millions.
fn decode(dtype: DType) -> (f64, f64) {
    let (bytes, mut values) = (payload(dtype), vec![0.0; ROWS * COLS]);
    let mut best = f64::MAX;
    for _ in 0..200 {
        let start = Instant::now();
        dequantize(dtype, &bytes, &mut values).expect("the length was computed from the shape");
        best = best.min(start.elapsed().as_secs_f64());
    }
    (bytes.len() as f64 / best / 1e6, values.len() as f64 / best / 1e6)
}

fn measure(dtype: DType, n: usize, mode: Activations) -> f64 {
    let bytes = payload(dtype);
    let w = Matrix::new(dtype, ROWS, COLS, &bytes).expect("the length was computed from the shape");
    let x: Vec<f32> = (0..n * COLS).map(|i| (i * 7919 % 1000) as f32 / 500.0 - 1.0).collect();
    let mut y = vec![0.0; n * ROWS];
    let mut activations = vec![ActivationBlock::ZERO; activations_len(COLS, n)];
    let mut transposed = vec![0.0; transposed_len(ROWS, n)];
    let mut scratch = MatmulScratch { activations: &mut activations, transposed: &mut transposed };
    let mut best = f64::MAX;
    for _ in 0..400 / n {
        let start = Instant::now();
        matmul(&w, &x, n, &mut y, mode, &mut scratch, &Serial).expect("every length fits");
        best = best.min(start.elapsed().as_secs_f64());
    }
    (ROWS * COLS * n) as f64 / best / 1e9
}
