//! What an encoder takes: values a second on one thread, for every type.
//!
//! `cargo bench -p p64-tests --bench quantize`

use divan::counter::ItemsCount;
use p64_core::{DType, Shape};
use p64_std::quantize::{encode_rows, supports};

const ROW: usize = 2048;
const ROWS: usize = 64;

fn main() {
    divan::main();
}

/// Numbers that look like weights: sums of uniform ones, the same in every run.
fn values() -> Vec<f32> {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let [.., a, b] = state.to_le_bytes();
        f32::from(u16::from_le_bytes([a, b])) / 65536.0 - 0.5
    };
    (0..ROW * ROWS).map(|_| (uniform() + uniform() + uniform() + uniform()) * 0.05).collect()
}

fn types() -> Vec<DType> {
    DType::ALL.iter().copied().filter(|dtype| supports(*dtype)).collect()
}

#[divan::bench(args = types(), sample_count = 20)]
fn encode(bencher: divan::Bencher<'_, '_>, dtype: &DType) {
    let values = values();
    let shape = Shape::new(&[2048, 64]).expect("rank 2");
    let len = dtype.byte_len(&shape).expect("whole blocks").expect("a known type");
    let mut out = vec![0; usize::try_from(len).expect("small")];
    bencher.counter(ItemsCount::new(values.len())).bench_local(|| {
        encode_rows(*dtype, &values, ROW, None, &mut out).expect("finite values");
    });
}
