use super::*;
use p64_core::kernel::dequantize;

const BLOCKS: [DType; 14] = [
    DType::Q4_0,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q5_1,
    DType::Q8_0,
    DType::Q2_K,
    DType::Q3_K,
    DType::Q4_K,
    DType::Q5_K,
    DType::Q6_K,
    DType::IQ4_NL,
    DType::IQ4_XS,
    DType::TQ1_0,
    DType::TQ2_0,
];

/// Numbers that look like weights: sums of uniform ones, the same in every run.
fn noise(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let [.., a, b] = state.to_le_bytes();
        f32::from(u16::from_le_bytes([a, b])) / 65536.0 - 0.5
    };
    (0..len).map(|_| (uniform() + uniform() + uniform() + uniform()) * 0.05).collect()
}

fn encode(dtype: DType, values: &[f32], row_len: usize, importance: Option<&[f32]>) -> Vec<u8> {
    let mut out = vec![0xa5; encoded_len(dtype, values.len(), row_len).expect("whole blocks")];
    encode_rows(dtype, values, row_len, importance, &mut out).unwrap_or_else(|error| panic!("{dtype}: {error}"));
    out
}

fn decode(dtype: DType, bytes: &[u8], len: usize) -> Vec<f32> {
    let mut values = vec![0.0; len];
    dequantize(dtype, bytes, &mut values).unwrap_or_else(|error| panic!("{dtype}: {error}"));
    values
}

fn relative(dtype: DType, values: &[f32]) -> f64 {
    let mut error = TensorError::new();
    error.add(values, &decode(dtype, &encode(dtype, values, values.len(), None), values.len()));
    error.relative()
}

/// Normal numbers lose what the bits of the type imply, and no more.
#[test]
fn every_type_is_as_close_as_its_bits_allow() {
    let values = noise(4096, 1);
    let bars = [0.09, 0.08, 0.045, 0.04, 0.006, 0.30, 0.16, 0.075, 0.037, 0.019, 0.075, 0.075, 0.5, 0.5];
    for (dtype, bar) in BLOCKS.into_iter().zip(bars) {
        let found = relative(dtype, &values);
        assert!(found < bar && found > bar / 3.0, "{dtype}: {found}");
    }
}
