//! Two models compared: every kind of change, and the measures next to numpy's (`scripts/stats/make_goldens.py`).

use p64_core::metadata::Value as KeyValue;
use p64_core::{DType, kernel};
use p64_std::convert::{ConvertOptions, convert_gguf};
use p64_std::diff::{Change, Difference, Numbers, Options, Side, TensorDiff, compare};
use p64_std::source::OpenSource;
use p64_tests::data::data;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn tiny() -> PathBuf {
    data("tiny/tiny-stories-q8_0.gguf")
}

/// Compares two files and looks at what differs.
#[track_caller]
fn diff<R>(a: &Path, b: &Path, look: impl FnOnce(&Difference<'_>) -> R) -> R {
    let sources = [a, b].map(|path| OpenSource::open(path).unwrap_or_else(|error| panic!("{error}")));
    let sides = Side::pair((a, &sources[0]), (b, &sources[1])).unwrap_or_else(|error| panic!("{error}"));
    let of = |threads| {
        let options = Options { select: &|_| true, values: true, threads };
        compare(&sides[0], &sides[1], &options, &|_, _| ()).unwrap_or_else(|error| panic!("{error}"))
    };
    let difference = of(1);
    assert_eq!(difference.tensors, of(3).tensors, "the same on every number of threads");
    look(&difference)
}

/// The bundled model with every `from` replaced by as many bytes.
fn patched(folder: &Path, replacements: &[(&str, &str)]) -> PathBuf {
    let mut bytes = std::fs::read(tiny()).expect("the bundled model");
    for (from, to) in replacements {
        assert_eq!(from.len(), to.len());
        let places: Vec<usize> =
            bytes.windows(from.len()).enumerate().filter(|(_, w)| *w == from.as_bytes()).map(|(at, _)| at).collect();
        assert!(!places.is_empty(), "{from}");
        places.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to.as_bytes()));
    }
    let path = folder.join("patched.gguf");
    std::fs::write(&path, bytes).expect("written");
    path
}

fn golden(name: &str) -> Value {
    let text = std::fs::read_to_string(data("stats").join(name)).expect("a golden file");
    serde_json::from_str(&text).expect("JSON")
}

fn name(diff: &TensorDiff) -> &str {
    diff.a.as_ref().or(diff.b.as_ref()).map_or("", |tensor| &tensor.name)
}

#[track_caller]
fn agree(name: &str, numbers: &Numbers, golden: &Value) {
    for (what, count) in [("compared", numbers.compared), ("equal", numbers.equal), ("max_at", numbers.max_at)] {
        assert_eq!(Some(count), golden[what].as_u64(), "{name}: {what}");
    }
    // Both are the same difference of two f32; serde_json may read the last bit of a decimal otherwise.
    let max = golden["max"].as_f64().expect("a number");
    assert!((numbers.max - max).abs() <= f64::EPSILON * max, "{name}: max {}, numpy {max}", numbers.max);
    let rmse = golden["rmse"].as_f64().expect("a number");
    for (what, value, scale) in [
        ("rmse", Some(numbers.rmse()), rmse),
        ("relative", numbers.relative(), 0.0),
        ("mean_shift", Some(numbers.mean_shift()), rmse),
        ("cosine", numbers.cosine(), 1.0),
    ] {
        let (value, golden) = (value.expect("defined"), golden[what].as_f64().expect("a number"));
        assert!((value - golden).abs() <= 1e-12 * golden.abs().max(scale), "{name}: {what} {value}, numpy {golden}");
    }
}

#[test]
fn a_container_is_the_same_model_as_its_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let p64 = folder.path().join("tiny.p64");
    convert_gguf(&tiny(), &p64, &ConvertOptions::default(), &mut |_| ()).expect("converted");
    diff(&tiny(), &p64, |difference| {
        assert!(difference.is_same_model());
        assert_eq!(difference.tensors.len(), 38);
        assert!(difference.tensors.iter().all(|tensor| tensor.same_bytes == Some(true)));
        assert_eq!(difference.key_counts[0], difference.key_counts[1]);
        let fact = difference.facts.iter().find(|fact| fact.name == "format").expect("another format");
        assert_eq!((fact.a.as_deref(), fact.b.as_deref()), (Some("GGUF"), Some("P64")));
    });
    diff(&p64, &p64, |difference| assert!(difference.is_same_model() && difference.facts.is_empty()));
}

#[test]
fn order_and_page_size_are_layout() {
    let folder = tempfile::tempdir().expect("a folder");
    let [a, b] = ["a.p64", "b.p64"].map(|name| folder.path().join(name));
    convert_gguf(&tiny(), &a, &ConvertOptions::default(), &mut |_| ()).expect("converted");
    let options = ConvertOptions { layer_major: false, page_size: 4096, pack: false, schedule: false };
    convert_gguf(&tiny(), &b, &options, &mut |_| ()).expect("converted");
    diff(&a, &b, |difference| {
        assert!(difference.is_same_model());
        let names: Vec<&str> = difference.facts.iter().map(|fact| fact.name).collect();
        for expected in ["page size", "flags", "layer schedule"] {
            assert!(names.contains(&expected), "{expected} is not among {names:?}");
        }
        let moved = difference.tensors.iter().filter(|tensor| tensor.moved).count();
        assert!((1..38).contains(&moved), "{moved} have moved");
        assert!(difference.tensors.iter().all(|tensor| tensor.changes().iter().all(|change| *change == Change::Moved)));
    });
}

#[test]
fn other_values_as_numpy_measures_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let swapped = patched(folder.path(), &[("blk.0.", "blk.#."), ("blk.1.", "blk.0."), ("blk.#.", "blk.1.")]);
    let golden = golden("swapped.json");
    diff(&tiny(), &swapped, |difference| {
        let changed: Vec<&TensorDiff> = difference.tensors.iter().filter(|tensor| tensor.is_different()).collect();
        assert_eq!(changed.len(), golden.as_object().map_or(0, |golden| golden.len()));
        assert!(difference.keys.is_empty() && !difference.is_same_model());
        for tensor in changed {
            assert!(tensor.changes().contains(&Change::Rewritten), "{:?}", tensor.changes());
            assert!(tensor.first_difference.is_some());
            agree(name(tensor), tensor.numbers.as_ref().expect("compared"), &golden[name(tensor)]);
        }
    });
}

/// A safetensors file of the model's matrices in F16, under the GGUF's names.
fn halves(folder: &Path) -> PathBuf {
    let source = OpenSource::open(&tiny()).expect("the bundled model");
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for tensor in source.tensors().iter().filter(|tensor| tensor.payload.shape().rank() == 2) {
        let payload = &tensor.payload;
        let shape = payload.shape();
        let mut bytes = vec![0; usize::try_from(payload.len()).expect("small")];
        payload.read_at(0, &mut bytes).expect("read");
        let mut values = vec![0.0; usize::try_from(shape.elements().expect("small")).expect("small")];
        kernel::dequantize(payload.dtype(), &bytes, &mut values).expect("decoded");
        let begin = data.len();
        values.iter().for_each(|value| data.extend(p64_core::quant::float::to_f16(*value)));
        let dims: Vec<u32> = shape.dims().iter().rev().copied().collect();
        let entry = serde_json::json!({ "dtype": "F16", "shape": dims, "data_offsets": [begin, data.len()] });
        header.insert(tensor.name.clone(), entry);
    }
    let header = Value::Object(header).to_string();
    let path = folder.join("halves.safetensors");
    let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data.as_slice()].concat();
    std::fs::write(&path, file).expect("written");
    path
}

#[test]
fn other_types_as_numpy_measures_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let halves = halves(folder.path());
    let golden = golden("f16.json");
    diff(&tiny(), &halves, |difference| {
        let mut retyped = 0;
        for tensor in &difference.tensors {
            match (&tensor.a, &tensor.b) {
                (Some(a), Some(b)) => {
                    assert_eq!((a.dtype, b.dtype, tensor.same_bytes), (DType::Q8_0, DType::F16, None));
                    assert_eq!(a.shape, b.shape);
                    agree(name(tensor), tensor.numbers.as_ref().expect("compared"), &golden[name(tensor)]);
                    retyped += 1;
                }
                (Some(a), None) => assert_eq!((a.shape.rank(), tensor.changes()), (1, vec![Change::Removed])),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(retyped, golden.as_object().map_or(0, |golden| golden.len()));
        assert!(matches!(difference.key_counts, [Some(_), None]));
    });
    diff(&halves, &tiny(), |difference| {
        let added = difference.tensors.iter().filter(|tensor| tensor.changes() == [Change::Added]).count();
        assert!(added > 0);
    });
}

#[test]
fn a_renamed_tensor_is_found_by_its_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let renamed = patched(folder.path(), &[("blk.2.attn_q.weight", "blk.2.attn_x.weight")]);
    diff(&tiny(), &renamed, |difference| {
        let changed: Vec<&TensorDiff> = difference.tensors.iter().filter(|tensor| tensor.is_different()).collect();
        assert_eq!(changed.len(), 1);
        assert_eq!(changed[0].changes(), [Change::Renamed]);
        assert_eq!(changed[0].b.as_ref().map(|tensor| tensor.name.as_str()), Some("blk.2.attn_x.weight"));
        assert_eq!(changed[0].same_bytes, Some(true));
    });
}

#[test]
fn keys_one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = patched(folder.path(), &[("tokenizer.ggml.model", "tokenizer.ggml.modex")]);
    diff(&tiny(), &other, |difference| {
        let keys: Vec<&str> = difference.keys.iter().map(|key| key.key).collect();
        assert_eq!(keys, ["tokenizer.ggml.model", "tokenizer.ggml.modex"]);
        assert!(difference.keys[0].b.is_none() && difference.keys[1].a.is_none());
        assert!(difference.keys.iter().all(|key| key.is_of_tokenizer()));
        assert!(!difference.is_same_model());
    });
}

/// Of two arrays the number of elements that differ and the first of them.
#[test]
fn arrays_element_by_element() {
    use p64_tests::gguf::GgufBuilder;
    let folder = tempfile::tempdir().expect("a folder");
    let with = |words: &[&str], name: &str| {
        GgufBuilder::new(3).strings("words", words).f32("nan", f32::NAN).write(folder.path(), name)
    };
    let a = with(&["a", "b", "c", "d"], "a.gguf");
    let b = with(&["a", "x", "c", "y", "z"], "b.gguf");
    diff(&a, &b, |difference| {
        assert_eq!(difference.keys.len(), 1, "a NaN is equal to itself");
        let array = difference.keys[0].array.expect("arrays of one kind");
        assert_eq!((array.differing, array.first), (3, 1));
        assert_eq!((array.a, array.b), (Some(KeyValue::String(b"b")), Some(KeyValue::String(b"x"))));
    });
}
