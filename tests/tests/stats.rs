//! Figures of tensors next to numpy's (`scripts/stats/make_goldens.py`): counts are equal, means and the like to a part in
//! 10^12, because sums run in another order.

use p64_core::{DType, Shape};
use p64_std::source::{OpenSource, Payload, SourceTensor};
use p64_std::stats::{BINS, TensorStats, What, can_decode, count, file_layouts};
use p64_std::{Error, Result};
use p64_tests::data::data;
use p64_tests::gguf::GgufBuilder;
use serde_json::Value;
use std::path::Path;

/// A tensor in memory, all of it at hand or only to be read.
struct Raw {
    dtype: DType,
    shape: Shape,
    bytes: Vec<u8>,
    at_hand: bool,
}

impl Payload for Raw {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let start = usize::try_from(offset).expect("small");
        out.copy_from_slice(&self.bytes[start..start + out.len()]);
        Ok(())
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.at_hand.then_some(&self.bytes)
    }
}

fn golden(name: &str) -> Value {
    let text = std::fs::read_to_string(data("stats").join(name)).expect("a golden file");
    serde_json::from_str(&text).expect("JSON")
}

fn none(_: u64, _: u64) {}

fn stats_of(tensor: Raw, threads: usize) -> TensorStats {
    let tensors = [SourceTensor::made("x", tensor)];
    let counted = count(Path::new("memory"), &tensors, threads, &none).expect("counted");
    counted.into_iter().next().flatten().expect("a type that is decoded")
}

#[track_caller]
fn near(what: &str, ours: f64, golden: &Value, scale: f64) {
    let golden = golden.as_f64().expect("a number");
    assert!((ours - golden).abs() <= 1e-12 * scale.max(golden.abs()), "{what}: {ours}, numpy {golden}");
}

#[track_caller]
fn agree(name: &str, stats: &TensorStats, golden: &Value) {
    let (moments, histogram) = (&stats.moments, &stats.histogram);
    for (what, count) in [
        ("elements", moments.elements),
        ("nan", moments.nan),
        ("plus_infinity", moments.plus_infinity),
        ("minus_infinity", moments.minus_infinity),
        ("zeros", moments.zeros),
        ("below", histogram.below),
        ("above", histogram.above),
    ] {
        assert_eq!(Some(count), golden[what].as_u64(), "{name}: {what}");
    }
    for (what, value) in [("min", moments.min), ("max", moments.max)] {
        // serde_json may read the last bit of a decimal otherwise.
        let golden = golden[what].as_f64().expect("a number");
        assert!((value - golden).abs() <= f64::EPSILON * golden.abs(), "{name}: {what} {value}, numpy {golden}");
    }
    let scale = golden["std"].as_f64().expect("a number");
    near(&format!("{name}: mean"), moments.mean, &golden["mean"], scale);
    near(&format!("{name}: std"), moments.std(), &golden["std"], scale);
    near(&format!("{name}: low"), histogram.low, &golden["low"], scale);
    near(&format!("{name}: high"), histogram.high, &golden["high"], scale);
    let counts: Vec<u64> = golden["counts"].as_array().expect("counts").iter().filter_map(Value::as_u64).collect();
    assert_eq!(histogram.counts.to_vec(), counts, "{name}: histogram");
}

#[test]
fn a_model_as_numpy_sees_it() {
    let path = data("tiny/tiny-stories-q8_0.gguf");
    let source = OpenSource::open(&path).expect("the bundled model");
    let tensors = source.tensors();
    let golden = golden("tiny.json");
    assert_eq!(golden.as_object().map(|tensors| tensors.len()), Some(tensors.len()));
    let counted = count(&path, &tensors, 2, &none).expect("counted");
    for (tensor, stats) in tensors.iter().zip(&counted) {
        agree(&tensor.name, stats.as_ref().expect("decoded"), &golden[&tensor.name]);
    }
}

#[test]
fn every_type_as_numpy_sees_it() {
    let golden = golden("quant.json");
    let mut tested = 0;
    for dtype in DType::ALL.iter().copied().filter(|dtype| can_decode(*dtype)) {
        let name = dtype.name().to_lowercase();
        let Some(golden) = golden.get(&name) else { continue };
        let elements = u32::try_from(golden["elements"].as_u64().expect("a number")).expect("small");
        let bytes = std::fs::read(data("quant").join(format!("{name}.blocks"))).expect("golden blocks");
        for at_hand in [true, false] {
            let shape = Shape::new(&[elements]).expect("a row");
            agree(&name, &stats_of(Raw { dtype, shape, bytes: bytes.clone(), at_hand }, 1), golden);
        }
        tested += 1;
    }
    assert_eq!(tested, 30);
}

#[test]
fn integers_and_doubles_are_numbers_too() {
    let of = |dtype, bytes: Vec<u8>, elements: u32| {
        let shape = Shape::new(&[elements]).expect("a row");
        stats_of(Raw { dtype, shape, bytes, at_hand: true }, 1).moments
    };
    let i8s = of(DType::I8, vec![0x80, 0x7f, 0, 1], 4);
    assert_eq!((i8s.min, i8s.max, i8s.mean, i8s.zeros), (-128.0, 127.0, 0.0, 1));
    let i16s = of(DType::I16, [i16::MIN, i16::MAX].iter().flat_map(|v| v.to_le_bytes()).collect(), 2);
    assert_eq!((i16s.min, i16s.max), (-32768.0, 32767.0));
    let i32s = of(DType::I32, [-5i32, 5, 9].iter().flat_map(|v| v.to_le_bytes()).collect(), 3);
    assert_eq!((i32s.min, i32s.max, i32s.mean), (-5.0, 9.0, 3.0));
    let i64s = of(DType::I64, (1i64 << 40).to_le_bytes().to_vec(), 1);
    assert_eq!((i64s.min, i64s.std()), (2f64.powi(40), 0.0));
    let f64s = of(DType::F64, [1e300, f64::NAN, -1e300].iter().flat_map(|v| v.to_le_bytes()).collect(), 3);
    assert_eq!((f64s.min, f64s.max, f64s.nan), (-1e300, 1e300, 1));
}

/// Several shares of several pieces, the last of each not full; the sums are the same to the bit on every number of threads.
#[test]
fn figures_do_not_depend_on_threads() {
    let elements = 3_000_001u32;
    let mut state = 1u64;
    let values = (0..elements).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 16_777_216.0 - 0.5
    });
    let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    let tensor = |at_hand| Raw {
        dtype: DType::F32,
        shape: Shape::new(&[elements]).expect("a row"),
        bytes: bytes.clone(),
        at_hand,
    };
    let one = stats_of(tensor(true), 1);
    assert_eq!(one.moments.elements, u64::from(elements));
    assert_eq!(one.histogram.counts.iter().sum::<u64>(), u64::from(elements));
    // Uniform on an interval of length 1: the mean is 0, the standard deviation 1/sqrt(12), each bin holds a 64th.
    assert!(one.moments.mean.abs() < 1e-3 && (one.moments.std() - 12f64.powf(-0.5)).abs() < 1e-3);
    let each = f64::from(elements) / BINS as f64;
    assert!(one.histogram.counts.iter().all(|count| (*count as f64 / each - 1.0).abs() < 0.03));
    for (threads, at_hand) in [(2, true), (3, false)] {
        assert_eq!(stats_of(tensor(at_hand), threads), one, "{threads} threads");
    }
}

/// Ternary digits run over the whole tensor: pieces begin within its rows.
#[test]
fn ternary_over_several_pieces() {
    let elements = 50_001u32;
    let mut bytes = 0.25f32.to_le_bytes().to_vec();
    // Digits 2 1 0 0 0: one plus, one zero, three minus of five; the last byte holds one digit.
    bytes.extend(std::iter::repeat_n(2 + 3, 10_000));
    bytes.push(2);
    let shape = Shape::new(&[elements]).expect("a row");
    let stats = stats_of(Raw { dtype: DType::Ternary, shape, bytes: bytes.clone(), at_hand: false }, 1);
    let moments = stats.moments;
    assert_eq!((moments.min, moments.max, moments.zeros), (-0.25, 0.25, 10_000));
    assert!((moments.mean - (10_001.0 - 30_000.0) * 0.25 / 50_001.0).abs() < 1e-15);
    bytes[5] = 243;
    let broken = [SourceTensor::made("t", Raw { dtype: DType::Ternary, shape, bytes, at_hand: true })];
    let error = count(Path::new("m.p64"), &broken, 1, &none).expect_err("a digit that is none");
    assert!(matches!(error, Error::Refused { .. }) && error.to_string().starts_with("m.p64: tensor t: "), "{error}");
}

#[test]
fn what_is_not_decoded_and_what_is_too_short() {
    let shape = Shape::new(&[32]).expect("a row");
    let tensor = |dtype, len| [SourceTensor::made("x", Raw { dtype, shape, bytes: vec![0; len], at_hand: true })];
    for dtype in [DType::Q8_1, DType::Unknown(999)] {
        assert_eq!(count(Path::new("m"), &tensor(dtype, 36), 1, &none).expect("no fault of the file"), [None]);
    }
    let error = count(Path::new("m"), &tensor(DType::F32, 127), 1, &none).expect_err("a byte is missing");
    assert_eq!(error.to_string(), "m: tensor x: 127 bytes, its type and shape need 128");
    let empty =
        Raw { dtype: DType::F16, shape: Shape::new(&[0, 7]).expect("no row"), bytes: Vec::new(), at_hand: true };
    assert_eq!(stats_of(empty, 1).moments.elements, 0);
}

/// The regions of every file follow on each other without gap and name each tensor once.
#[test]
fn every_byte_of_a_file_has_one_purpose() {
    let folder = tempfile::tempdir().expect("a folder");
    let gguf = data("tiny/tiny-stories-q8_0.gguf");
    let p64 = folder.path().join("tiny.p64");
    let options = p64_std::convert::ConvertOptions::default();
    p64_std::convert::convert_gguf(&gguf, &p64, &options, &mut |_| ()).expect("converted");
    let small = GgufBuilder::new(3).small_model().write(folder.path(), "small.gguf");
    for path in [gguf, p64, small] {
        let source = OpenSource::open(&path).expect("a model");
        let tensors = source.tensors();
        let layouts = file_layouts(&source);
        assert_eq!(layouts.len(), 1);
        let layout = &layouts[0];
        assert_eq!(layout.bytes, std::fs::metadata(&path).expect("there").len());
        let mut at = 0;
        let mut named = vec![0; tensors.len()];
        for region in &layout.regions {
            assert_eq!(region.start, at, "{}: no gap, no overlap", path.display());
            assert!(region.len > 0);
            at += region.len;
            if let What::Tensor(index) = region.what {
                named[index] += 1;
                assert_eq!(region.len, tensors[index].payload.len());
            }
        }
        assert_eq!(at, layout.bytes);
        assert!(named.iter().all(|count| *count == 1), "{named:?}");
    }
}
