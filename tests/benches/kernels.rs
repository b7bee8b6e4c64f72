//! One product with one position, for every type, shape, level of instructions and number of threads: GB/s of weights, and the
//! part of the speed at which the same threads read memory.
//!
//! `cargo bench -p p64-tests --bench kernels -- [--types Q4_0,Q8_0] [--shapes 4096x4096] [--levels scalar,avx2] [--threads 1,2]
//! [--passes 3] [--lines]`
//!
//! A shape is ROWSxCOLS. The matrices of a pass weigh 256 MiB or more together, so that they come from memory. With `--lines`
//! each measurement is a JSON object in a line of its own, for `bench/kernels.py`; `--list` prints the types.

use p64_core::kernel::matmul::activations_len;
use p64_core::kernel::{Activations, Level, MatmulScratch, Matrix, gemv, is_supported};
use p64_core::quant::ActivationBlock;
use p64_core::{DType, Shape};
use p64_std::bandwidth::{self, Bandwidth};
use p64_std::pool::Pool;
use std::time::{Duration, Instant};

/// Least bytes of weights in a pass.
const LEAST: usize = 256 << 20;

/// A pass ends after this time, and the next one goes on where it ended. What takes longer is far slower than memory.
const ENOUGH: Duration = Duration::from_millis(300);

struct Options {
    types: Vec<DType>,
    shapes: Vec<(usize, usize)>,
    levels: Vec<Level>,
    threads: Vec<usize>,
    passes: usize,
    lines: bool,
}

impl Options {
    fn from_args() -> Self {
        let every = DType::ALL.iter().copied().filter(|dtype| is_supported(*dtype));
        let mut options = Self {
            types: every.clone().collect(),
            shapes: vec![(4096, 4096), (14336, 4096), (4096, 14336)],
            levels: Level::ALL.into_iter().filter(|level| *level <= Level::detect()).collect(),
            threads: vec![1, 2],
            passes: 3,
            lines: false,
        };
        let mut args = std::env::args().skip(1);
        while let Some(name) = args.next() {
            let mut list = || -> Vec<String> {
                args.next().expect("a value follows the option").split(',').map(str::to_owned).collect()
            };
            match name.as_str() {
                // Cargo's own.
                "--bench" => {}
                "--types" => {
                    let names = list();
                    let named = |dtype: &DType| names.iter().any(|name| name.eq_ignore_ascii_case(dtype.name()));
                    options.types = every.clone().filter(named).collect();
                }
                "--shapes" => {
                    let number = |text: &str| text.parse().expect("a number");
                    let shape = |text: &String| text.split_once('x').map(|(rows, cols)| (number(rows), number(cols)));
                    options.shapes = list().iter().map(|text| shape(text).expect("ROWSxCOLS")).collect();
                }
                "--levels" => {
                    let names = list();
                    options.levels.retain(|level| names.iter().any(|name| name == level.name()));
                }
                "--threads" => options.threads = list().iter().map(|text| text.parse().expect("a number")).collect(),
                "--passes" => options.passes = list()[0].parse().expect("a number"),
                "--lines" => options.lines = true,
                "--list" => {
                    every.clone().for_each(|dtype| println!("{}", dtype.name()));
                    std::process::exit(0);
                }
                other => panic!("no option of this benchmark: {other}"),
            }
        }
        options
    }
}

fn payload(dtype: DType, rows: usize, cols: usize) -> usize {
    let dims = [cols, rows].map(|dim| u32::try_from(dim).expect("a dimension"));
    let len = dtype.byte_len(&Shape::new(&dims).expect("rank 2")).expect("whole blocks").expect("a known type");
    usize::try_from(len).expect("fits memory")
}

/// Matrices of a shape that weigh enough together.
fn copies(len: usize) -> usize {
    LEAST.div_ceil(len)
}

/// Weights of any type. Of each byte one bit is missing and one is set, so that no scale is infinite, subnormal or zero.
fn weights(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut bytes = vec![0u8; len.next_multiple_of(8)];
    for bytes in bytes.as_chunks_mut::<8>().0 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *bytes = (state & 0xbfbf_bfbf_bfbf_bfbf | 0x1010_1010_1010_1010).to_le_bytes();
    }
    bytes
}

/// Bytes of weights a second, pass after pass.
fn measure(weights: &[Matrix<'_>], passes: usize, pool: &Pool) -> Vec<f64> {
    let (rows, cols) = (weights[0].rows(), weights[0].cols());
    let x: Vec<f32> = (0..cols).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
    let (mut y, mut blocks) = (vec![0.0; rows], vec![ActivationBlock::ZERO; activations_len(cols, 1)]);
    let mut multiply = |w: &Matrix<'_>| {
        let mut scratch = MatmulScratch { activations: &mut blocks, transposed: &mut [] };
        gemv(w, &x, &mut y, Activations::Quantized, &mut scratch, pool).expect("lengths fit");
        std::hint::black_box(&y);
    };
    multiply(&weights[weights.len() - 1]);
    let mut next = weights.iter().cycle();
    let mut pass = || {
        let (mut bytes, began) = (0, Instant::now());
        for w in next.by_ref().take(weights.len()) {
            multiply(w);
            bytes += w.bytes().len();
            if began.elapsed() > ENOUGH {
                break;
            }
        }
        bytes as f64 / began.elapsed().as_secs_f64()
    };
    (0..passes.max(1)).map(|_| pass()).collect()
}

fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() - 1) / 2]
}

fn line(dtype: DType, (rows, cols): (usize, usize), threads: usize, level: Level, rates: &[f64]) {
    let rates: Vec<f64> = rates.iter().map(|rate| (rate / 1e7).round() / 100.0).collect();
    let (dtype, level) = (dtype.name(), level.name());
    println!(
        r#"{{"type":"{dtype}","rows":{rows},"cols":{cols},"threads":{threads},"code":"{level}","gb_s":{rates:?}}}"#
    );
}

fn main() {
    let options = Options::from_args();
    let shape = |(rows, cols): (usize, usize)| format!("{rows}x{cols}");
    for &threads in &options.threads {
        let pool = Pool::new(threads).expect("threads");
        let memory: Bandwidth = bandwidth::measure(threads, bandwidth::uncached_bytes(), 7).expect("memory");
        let roof = memory.median();
        if options.lines {
            let (median, best) = (roof / 1e9, memory.best() / 1e9);
            println!(r#"{{"threads":{threads},"bandwidth_gb_s":{median:.2},"bandwidth_best_gb_s":{best:.2}}}"#);
        } else {
            println!("{threads} threads read memory at {:.1} GB/s (best {:.1})", roof / 1e9, memory.best() / 1e9);
            let heads: Vec<String> = options.shapes.iter().map(|s| format!("{:>12}  part", shape(*s))).collect();
            println!("{:<10} {:<7}{}  long rows", "type", "level", heads.concat());
        }
        for &dtype in &options.types {
            let lens = options.shapes.iter().map(|(rows, cols)| payload(dtype, *rows, *cols));
            let bytes = weights(lens.map(|len| len * copies(len)).max().unwrap_or(0));
            for &level in &options.levels {
                level.cap();
                let mut cells = String::new();
                let mut found = Vec::new();
                for &(rows, cols) in &options.shapes {
                    let len = payload(dtype, rows, cols);
                    let matrix = |bytes| Matrix::new(dtype, rows, cols, bytes).expect("lengths fit");
                    let matrices: Vec<Matrix<'_>> = bytes.chunks_exact(len).take(copies(len)).map(matrix).collect();
                    let rates = measure(&matrices, options.passes, &pool);
                    if options.lines {
                        line(dtype, (rows, cols), threads, level, &rates);
                    }
                    let rate = median(&rates);
                    cells += &format!("{:>12.2}  {:>3.0}%", rate / 1e9, rate / roof * 100.0);
                    found.push(((rows, cols), rate));
                }
                if !options.lines {
                    let of = |shape| found.iter().find(|(other, _)| *other == shape).map(|(_, rate)| rate);
                    let long = of((4096, 14336)).zip(of((14336, 4096))).map(|(long, short)| long / short);
                    let long = long.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
                    println!("{:<10} {:<7}{cells}  {long:>9}", dtype.name(), level.name());
                }
            }
        }
    }
}
