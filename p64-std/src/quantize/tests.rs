use super::*;
use p64_core::kernel::dequantize;
use proptest::prelude::*;

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

fn measure(dtype: DType, values: &[f32]) -> TensorError {
    let mut error = TensorError::new();
    error.add(values, &decode(dtype, &encode(dtype, values, values.len(), None), values.len()));
    error
}

/// Normal numbers lose what the bits of the type imply, and no more.
#[test]
fn every_type_is_as_close_as_its_bits_allow() {
    let values = noise(4096, 1);
    let bars = [0.09, 0.08, 0.045, 0.04, 0.006, 0.30, 0.16, 0.075, 0.037, 0.019, 0.075, 0.075, 0.5, 0.5];
    for (dtype, bar) in BLOCKS.into_iter().zip(bars) {
        let found = measure(dtype, &values).relative();
        assert!(found < bar && found > bar / 3.0, "{dtype}: {found}");
    }
}

/// What a type can hold comes back: decoded blocks are encoded again with less than a quarter of the error of the first time. Scales
/// of scales may come out one step apart, which the integers make up for in part.
#[test]
fn what_was_decoded_is_encoded_again() {
    let values = noise(2048, 2);
    for dtype in BLOCKS {
        let once = decode(dtype, &encode(dtype, &values, 512, None), values.len());
        let (first, again) = (measure(dtype, &values).relative(), measure(dtype, &once).relative());
        assert!(again < 0.25 * first, "{dtype}: {again} after {first}");
    }
    let trits: Vec<f32> = noise(512, 3).iter().map(|value| 0.75 * (value * 20.0).round().clamp(-1.0, 1.0)).collect();
    for dtype in [DType::TQ1_0, DType::TQ2_0] {
        assert_eq!(measure(dtype, &trits).max(), 0.0, "{dtype}");
    }
}

#[test]
fn ternary_and_q4_0_have_the_bytes_of_the_spec() {
    let payload = |values: &[f32]| encode(DType::Ternary, values, values.len(), None);
    assert_eq!(payload(&[2.0, -2.0, 0.1, -0.1, 0.0]), [0x3d, 0x0a, 0x57, 0x3f, 0x77]);
    assert_eq!(payload(&[2.0, -2.0, 0.1, -0.1, 0.0, 1.5, -1.5]), [0x3a, 0xa8, 0x83, 0x3f, 0x77, 0x02]);
    assert_eq!(payload(&[1.0; 6]), [0x00, 0x00, 0x80, 0x3f, 0xf2, 0x02]);
    assert_eq!(payload(&[0.0; 7]), [0, 0, 0, 0, 0x79, 0x04]);
    assert_eq!(payload(&[0.5, -0.5, 1.5, -1.5]), [0x00, 0x00, 0x80, 0x3f, 0x14]);
    // The sum is past f32, the mean is not.
    assert_eq!(payload(&[f32::MAX; 5]), [0xff, 0xff, 0x7f, 0x7f, 0xf2]);
    let ramp: Vec<f32> = (-16i8..16).map(f32::from).collect();
    let block = encode(DType::Q4_0, &ramp, 32, None);
    let expected =
        [0, 0x40, 0x80, 0x91, 0x91, 0xa2, 0xa2, 0xb3, 0xb3, 0xc4, 0xc4, 0xd5, 0xd5, 0xe6, 0xe6, 0xf7, 0xf7, 0xf8];
    assert_eq!(block, expected);
}

/// A tensor in parts has the bytes of the whole.
#[test]
fn ternary_in_parts() {
    let values = noise(1003, 4);
    let whole = encode(DType::Ternary, &values, 1003, None);
    let mut scale = TernaryScale::new();
    values.chunks(100).for_each(|part| scale.add(part));
    let mut parts = vec![0; whole.len()];
    parts[..4].copy_from_slice(&scale.scale().to_le_bytes());
    for (values, out) in values.chunks(105).zip(parts[4..].chunks_mut(21)) {
        encode_ternary(values, scale.scale(), out);
    }
    assert_eq!(parts, whole);
}

/// The error that importance weighs falls, and with it that of the columns that matter.
#[test]
fn importance_moves_the_error() {
    let values = noise(4096, 5);
    let importance: Vec<f32> = (0..256).map(|column| if column % 4 == 0 { 100.0 } else { 0.5 }).collect();
    for dtype in BLOCKS.into_iter().filter(|dtype| *dtype != DType::Q8_0) {
        let [with, without] = [Some(&importance[..]), None].map(|importance_given| {
            let decoded = decode(dtype, &encode(dtype, &values, 256, importance_given), values.len());
            let columns = importance.iter().cycle();
            values.iter().zip(&decoded).zip(columns).fold(0.0f64, |sum, ((value, decoded), weight)| {
                let off = f64::from(value - decoded);
                sum + f64::from(*weight) * f64::from(*value).hypot(0.058) * off * off
            })
        });
        // One scale for 256 values leaves the ternary types little to choose.
        let bar = if matches!(dtype, DType::TQ1_0 | DType::TQ2_0) { 1.0 } else { 0.97 };
        assert!(with < bar * without, "{dtype}: {with} with importance, {without} without");
    }
    // Importances that say nothing change nothing but the companion factor; none is refused.
    for importance in [[0.0; 256], [f32::MAX; 256], [f32::MIN_POSITIVE; 256]] {
        for dtype in BLOCKS {
            let decoded = decode(dtype, &encode(dtype, &values, 256, Some(&importance)), values.len());
            let mut error = TensorError::new();
            error.add(&values, &decoded);
            assert!(error.relative() < 0.6, "{dtype}: {}", error.relative());
        }
    }
}

#[test]
fn wrong_requests_are_refused() {
    let mut out = [0; 144];
    let mut refuse = |dtype, len: usize, row: usize, importance: Option<&[f32]>, bytes: usize| {
        encode_rows(dtype, &vec![0.5; len], row, importance, &mut out[..bytes]).expect_err("refused")
    };
    let error = refuse(DType::IQ2_XXS, 256, 256, None, 66);
    assert!(matches!(error, QuantizeError::Unsupported(DType::IQ2_XXS)), "{error}");
    assert!(matches!(refuse(DType::Q4_K, 255, 255, None, 144), QuantizeError::Rows { row_len: 255, .. }));
    assert!(matches!(refuse(DType::Q4_K, 256, 0, None, 144), QuantizeError::Rows { .. }));
    assert!(matches!(refuse(DType::Q4_K, 384, 256, None, 144), QuantizeError::Rows { .. }));
    assert_eq!(refuse(DType::Q4_K, 256, 256, None, 143), QuantizeError::Output { expected: 144, found: 143 });
    let columns = refuse(DType::Q4_K, 256, 256, Some(&[1.0; 255]), 144);
    assert_eq!(columns, QuantizeError::Columns { expected: 256, found: 255 });
    for (at, value) in [(3, f32::NAN), (255, -1.0), (0, f32::INFINITY)] {
        let mut importance = [1.0; 256];
        importance[at] = value;
        let error = refuse(DType::Q4_K, 256, 256, Some(&importance), 144);
        assert!(matches!(error, QuantizeError::Importance { column, .. } if column == at), "{error}");
    }
}

#[test]
fn what_is_no_number_or_too_large_is_refused_with_its_place() {
    for dtype in BLOCKS.into_iter().chain([DType::F16, DType::BF16, DType::F32, DType::Ternary]) {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = noise(512, 6);
            values[300] = bad;
            let mut out = vec![0; encoded_len(dtype, 512, 512).expect("whole blocks")];
            let error = encode_rows(dtype, &values, 512, None, &mut out).expect_err("refused");
            assert!(matches!(error, QuantizeError::NotFinite { index: 300, .. }), "{dtype}: {error}");
            let limit = largest(dtype);
            values[300] = -limit * 1.01;
            if values[300].is_finite() {
                let error = encode_rows(dtype, &values, 512, None, &mut out).expect_err("refused");
                assert!(matches!(error, QuantizeError::TooLarge { index: 300, .. }), "{dtype}: {error}");
            }
        }
    }
}

/// Zeros stay zeros, what is too small for F16 scales becomes zero or stays small, and the largest values stay finite.
#[test]
fn the_ends_of_the_range() {
    for dtype in BLOCKS {
        for value in [0.0, -0.0, 1e-45, -1e-39, 1e-30] {
            let decoded = decode(dtype, &encode(dtype, &[value; 256], 256, None), 256);
            assert!(decoded.iter().all(|decoded| *decoded == 0.0), "{dtype} of {value:e}: {}", decoded[0]);
        }
        for scale in [1e-8f32, 1e-6, 1e-4, 1e4] {
            let values: Vec<f32> = noise(256, 7).iter().map(|value| value * scale).collect();
            let error = measure(dtype, &values);
            assert!(error.relative() <= 1.1, "{dtype} times {scale}: {}", error.relative());
        }
        for sign in [1.0, -1.0] {
            let mut values: Vec<f32> = noise(256, 8).iter().map(|value| value * largest(dtype)).collect();
            values[17] = sign * largest(dtype);
            let error = measure(dtype, &values);
            assert!(error.relative() < 0.7, "{dtype}: {}", error.relative());
        }
        let constant = measure(dtype, &[-1.25; 512]);
        assert!(constant.relative() < 0.02, "{dtype}: {}", constant.relative());
    }
}

#[test]
fn errors_add_up() {
    let mut whole = TensorError::new();
    whole.add(&[1.0, 2.0, 3.0, -4.0], &[1.0, 2.5, 3.0, -2.0]);
    let mut parts = TensorError::new();
    parts.add(&[1.0, 2.0], &[1.0, 2.5]);
    let mut last = TensorError::new();
    last.add(&[3.0, -4.0], &[3.0, -2.0]);
    parts.merge(&last);
    assert_eq!(whole, parts);
    assert_eq!((whole.elements(), whole.max(), whole.rmse()), (4, 2.0, (4.25f64 / 4.0).sqrt()));
    assert_eq!(whole.relative(), (4.25f64 / 30.0).sqrt());
    assert_eq!(TensorError::new().relative(), 0.0);
    last.add(&[0.0], &[f32::NAN]);
    assert!(last.max().is_nan() && last.rmse().is_nan());
    parts.merge(&last);
    assert!(parts.max().is_nan());
}

proptest! {
    /// Any finite values: encoders do not panic, decoders read what they write, and nothing finite becomes NaN.
    #[test]
    fn any_numbers(bits in proptest::collection::vec(any::<u32>(), 256), dtype in 0..BLOCKS.len(), weigh: bool) {
        let dtype = BLOCKS[dtype];
        let limit = largest(dtype);
        let values: Vec<f32> = bits.iter().map(|bits| f32::from_bits(*bits)).collect();
        let values: Vec<f32> =
            values.iter().map(|value| if value.is_finite() { value.clamp(-limit, limit) } else { 0.25 }).collect();
        let importance: Vec<f32> = bits.iter().map(|bits| f32::from_bits(bits.rotate_left(9) & 0x7f7f_ffff)).collect();
        let decoded = decode(dtype, &encode(dtype, &values, 256, weigh.then_some(&importance[..])), 256);
        prop_assert!(decoded.iter().all(|value| value.is_finite()));
    }
}
