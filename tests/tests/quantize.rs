//! The quantisers against llama.cpp's `llama-quantize`: errors tensor by tensor, and the types that mixes choose.
//!
//! `tests/data/quantize` is what the tool does with SmolLM2 in F16 and with the conformance models
//! (`scripts/quantize/goldens.py`). The real model comes from `make model`.

use p64_core::kernel::dequantize;
use p64_core::layout::role::Role;
use p64_core::metadata::Metadata;
use p64_core::quant::float::{from_f16, to_f16};
use p64_core::{DType, Shape};
use p64_std::gguf::{GgufFile, GgufTensor};
use p64_std::quantize::{
    self, Imatrix, ModelFacts, Profile, QuantizeError, Rules, TensorError, TensorFacts, encode_rows,
};
use p64_std::write::Pairs;
use p64_tests::conformance::Recipe;
use p64_tests::data::{data, model};
use std::collections::BTreeMap;

/// Largest error of ours over that of llama-quantize, for the same type, tensor and F16 source.
const BAR: f64 = 1.01;

fn golden<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let text = std::fs::read(data(&format!("quantize/{name}.json"))).expect("a golden");
    serde_json::from_slice(&text).expect("well-formed")
}

fn dtype(name: &str) -> DType {
    let found = DType::ALL.iter().find(|dtype| dtype.name().eq_ignore_ascii_case(name));
    *found.unwrap_or_else(|| panic!("{name} is no type"))
}

fn smollm2() -> GgufFile {
    GgufFile::open(&model("smollm2-135m-q4_1.gguf")).expect("a model")
}

/// A tensor's values as the F16 source has them.
fn source(file: &GgufFile, tensor: &GgufTensor<'_>) -> Vec<f32> {
    let extent = file.extent(tensor);
    let mut bytes = vec![0; usize::try_from(extent.len()).expect("small")];
    file.read_at(extent.start(), &mut bytes).expect("readable");
    let mut values = vec![0.0; usize::try_from(tensor.shape.elements().expect("small")).expect("small")];
    dequantize(tensor.dtype, &bytes, &mut values).expect("a known type");
    values.iter_mut().for_each(|value| *value = from_f16(&to_f16(*value)));
    values
}

fn encode(kind: DType, values: &[f32], shape: &Shape, importance: Option<&[f32]>) -> Result<Vec<u8>, QuantizeError> {
    let len = kind.byte_len(shape).expect("whole blocks").expect("a known type");
    let mut out = vec![0; usize::try_from(len).expect("small")];
    let row_len = usize::try_from(shape.row_len()).expect("small");
    encode_rows(kind, values, row_len, importance, &mut out).map(|()| out)
}

fn error(kind: DType, values: &[f32], bytes: &[u8]) -> TensorError {
    let mut decoded = vec![0.0; values.len()];
    dequantize(kind, bytes, &mut decoded).expect("what was encoded can be decoded");
    let mut error = TensorError::new();
    error.add(values, &decoded);
    error
}

#[test]
fn errors_are_no_larger_than_those_of_llama_quantize() {
    let golden: BTreeMap<String, BTreeMap<String, f64>> = golden("rmse");
    let file = smollm2();
    let (mut compared, mut closer) = (0, 0);
    for (kind, tensors) in &golden {
        for (name, theirs) in tensors {
            let tensor =
                file.gguf().tensors().iter().find(|tensor| tensor.name == name).expect("a tensor of the model");
            let values = source(&file, tensor);
            let bytes = encode(dtype(kind), &values, &tensor.shape, None).expect("finite values");
            let ours = error(dtype(kind), &values, &bytes).rmse();
            assert!(ours <= BAR * theirs, "{kind} {name}: {ours:.4e}, llama-quantize has {theirs:.4e}");
            compared += 1;
            closer += usize::from(ours < 0.97 * theirs);
        }
    }
    // Q8_0 and Q4_0 have the reference's bytes, and Q4_1 gives back a source that was Q4_1; all others are searched for.
    assert!(compared > 60 && closer * 2 > compared, "{closer} of {compared} are closer");
    let types: Vec<_> = golden.keys().map(|kind| dtype(kind)).collect();
    assert!(types.len() == 14 && types.iter().all(|kind| quantize::supports(*kind)), "{types:?}");
}

/// For a type's name the tensors that get it; "*" is the type of all others that change.
type Mix = BTreeMap<String, serde_json::Value>;

#[track_caller]
fn assert_mixes(model: &str, facts: &ModelFacts, tensors: &[TensorFacts<'_>], mixes: &BTreeMap<String, Mix>) -> usize {
    let mut compared = 0;
    for (mix, types) in mixes {
        let profile: Profile = mix.parse().expect("a profile of that name");
        let plan = Rules { profile: Some(profile), rules: Vec::new() }.plan(facts, tensors, false);
        for (tensor, target) in tensors.iter().zip(plan) {
            let named = types.iter().find(|(kind, names)| {
                *kind != "*" && names.as_array().is_some_and(|names| names.iter().any(|name| name == tensor.name))
            });
            let most = types.get("*").and_then(|kind| kind.as_str()).expect("a type");
            let expected = match (named, target) {
                (Some((kind, _)), _) => Some(dtype(kind)),
                (None, Some(_)) => Some(dtype(most)),
                // Not named and left alone: true of what no quantiser takes and of what has the type already.
                (None, None) => {
                    let weight = quantize::is_weight(tensor.name, &tensor.shape);
                    assert!(!weight || most.is_empty() || dtype(most) == tensor.dtype, "{model} {mix} {}", tensor.name);
                    None
                }
            };
            assert_eq!(target.map(|target| target.dtype), expected, "{model} {mix} {}", tensor.name);
            compared += usize::from(expected.is_some());
        }
    }
    compared
}

#[test]
fn mixes_choose_the_types_of_llama_quantize() {
    let golden: BTreeMap<String, BTreeMap<String, Mix>> = golden("types");
    let file = smollm2();
    let facts = ModelFacts::from_metadata(&file.gguf().metadata());
    assert_eq!((facts.architecture.as_str(), facts.layers, facts.heads, facts.kv_heads), ("llama", 30, 9, 3));
    let matrix = |shape: &Shape| shape.rank() > 1;
    let tensors: Vec<_> = file.gguf().tensors().iter().collect();
    let tensors: Vec<_> = tensors
        .iter()
        .map(|tensor| {
            let dtype = if matrix(&tensor.shape) { DType::F16 } else { DType::F32 };
            TensorFacts { name: tensor.name, shape: tensor.shape, dtype }
        })
        .collect();
    let compared = assert_mixes("smollm2", &facts, &tensors, &golden["smollm2"]);
    assert!(compared > 20 * 200, "{compared}");
    // With an importance matrix, as llama-quantize's code says; its goldens are made without one. The first 3 of 30 count.
    for (profile, layer, kind) in [
        (Profile::Q40, 0, DType::Q4_1),
        (Profile::Q40, 3, DType::Q4_0),
        (Profile::Q50, 0, DType::Q5_1),
        (Profile::Iq4Nl, 0, DType::IQ4_NL),
    ] {
        let plan = Rules { profile: Some(profile), rules: Vec::new() }.plan(&facts, &tensors, true);
        let name = format!("blk.{layer}.ffn_down.weight");
        let at = tensors.iter().position(|tensor| tensor.name == name).expect("there");
        assert_eq!(plan[at].map(|target| target.dtype), Some(kind), "{profile:?} {name}");
    }
    assert!(golden.len() > 8, "the conformance models are missing");
    for (name, mixes) in golden.iter().filter(|(name, _)| *name != "smollm2") {
        let recipe = Recipe::load(name);
        let mut pairs = Pairs::new();
        pairs.str("general.architecture", &recipe.arch);
        for key in recipe.keys.iter().filter(|key| key.1 == "u32") {
            pairs.u32(&key.0, u32::try_from(key.2.as_u64().expect("a number")).expect("small"));
        }
        let area = pairs.to_area();
        let facts = ModelFacts::from_metadata(&Metadata::parse(&area, 0).expect("well-formed"));
        let tensors = recipe.tensors.iter().map(|tensor| {
            let dims: Vec<_> = tensor.2.iter().map(|dim| u32::try_from(*dim).expect("small")).collect();
            TensorFacts { name: &tensor.0, shape: Shape::new(&dims).expect("a rank"), dtype: DType::F32 }
        });
        assert!(assert_mixes(name, &facts, &tensors.collect::<Vec<_>>(), mixes) > 20, "{name}");
    }
}

/// The profiles of the standard change the feed-forward projections and nothing else.
#[test]
fn feed_forward_profiles_leave_all_else_alone() {
    let file = smollm2();
    let facts = ModelFacts::from_metadata(&file.gguf().metadata());
    let tensors: Vec<_> = file.gguf().tensors().iter().collect();
    let tensors: Vec<_> = tensors
        .iter()
        .map(|tensor| TensorFacts { name: tensor.name, shape: tensor.shape, dtype: tensor.dtype })
        .collect();
    for (profile, kind) in [(Profile::FfnQ40, DType::Q4_0), (Profile::FfnTernary, DType::Ternary)] {
        let plan = Rules { profile: Some(profile), rules: Vec::new() }.plan(&facts, &tensors, false);
        for (tensor, target) in tensors.iter().zip(plan) {
            let role = Role::from_gguf_name(tensor.name).map(|(role, _)| role);
            let projection = matches!(role, Some(Role::FfnGate | Role::FfnUp | Role::FfnDown));
            assert_eq!(target.map(|target| target.dtype), projection.then_some(kind), "{}", tensor.name);
        }
    }
}

/// A GGUF with sums of two columns for each of two experts.
fn imatrix_file(kind: &str, sums: &[f32], counts: &[f32]) -> Vec<u8> {
    let mut pairs = Pairs::new();
    pairs.str("general.type", kind);
    let area = pairs.to_area();
    let mut file = b"GGUF\x03\0\0\0\x02\0\0\0\0\0\0\0".to_vec();
    file.extend_from_slice(&area);
    let infos = [("in_sum2", [2, 2], 0u64), ("counts", [1, counts.len()], 32)];
    for (suffix, dims, offset) in infos {
        let name = format!("blk.0.ffn_up_exps.weight.{suffix}");
        file.extend_from_slice(&(name.len() as u64).to_le_bytes());
        file.extend_from_slice(name.as_bytes());
        file.extend_from_slice(&2u32.to_le_bytes());
        dims.iter().for_each(|dim| file.extend_from_slice(&(*dim as u64).to_le_bytes()));
        file.extend_from_slice(&u32::from(DType::F32.id()).to_le_bytes());
        file.extend_from_slice(&offset.to_le_bytes());
    }
    for data in [sums, counts] {
        file.resize(file.len().next_multiple_of(32), 0);
        data.iter().for_each(|value| file.extend_from_slice(&value.to_le_bytes()));
    }
    file.resize(file.len().next_multiple_of(32), 0);
    file
}

/// An importance matrix in the form of a GGUF, of which each expert has a part; and what is no such matrix.
#[test]
fn importance_matrices_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m.gguf");
    let write = |kind: &str, counts: &[f32]| {
        std::fs::write(&path, imatrix_file(kind, &[2.0, 4.0, 9.0, 9.0], counts)).expect("written");
    };
    write("imatrix", &[2.0, 0.0]);
    let imatrix = Imatrix::open(&path).expect("well-formed");
    assert_eq!(imatrix.get("blk.0.ffn_up_exps.weight"), Some(&[1.0, 2.0, 1.0, 1.0][..]));
    let shape = Shape::new(&[2, 5, 2]).expect("rank 3");
    let importance = imatrix.for_tensor("blk.0.ffn_up_exps.weight", &shape).expect("fits").expect("measured");
    assert_eq!([importance.of_row(4), importance.of_row(5)], [&[1.0, 2.0][..], &[1.0, 1.0]]);
    for (kind, counts, part) in [
        ("model", &[1.0, 1.0][..], "general.type"),
        ("imatrix", &[1.0, 1.0, 1.0], "do not divide"),
        ("imatrix", &[f32::NAN, 1.0], "finite"),
        ("imatrix", &[-1.0, 1.0], "blk.0.ffn_up_exps.weight.counts"),
    ] {
        write(kind, counts);
        let error = Imatrix::open(&path).expect_err("refused").to_string();
        assert!(error.contains(part), "{error}");
    }
    let error = Imatrix::open(&model("smollm2-135m-q4_1.gguf")).expect_err("a model").to_string();
    assert!(error.contains("general.type"), "{error}");
    // What is far too long is refused before it is read.
    let huge = folder.path().join("huge");
    std::fs::File::create(&huge).and_then(|file| file.set_len(1 << 40)).expect("a file of holes");
    let error = Imatrix::open(&huge).expect_err("no matrix").to_string();
    assert!(error.contains("larger than 4 GiB"), "{error}");
}

/// With an importance matrix the error of what matters falls, on real weights.
#[test]
fn importance_serves_the_columns_that_matter() {
    let file = smollm2();
    let tensor = file.gguf().tensors().iter().find(|tensor| tensor.name == "blk.7.ffn_down.weight").expect("a tensor");
    let values = source(&file, tensor);
    let columns = usize::try_from(tensor.shape.row_len()).expect("small");
    let importance: Vec<f32> = (0..columns).map(|column| if column % 8 < 2 { 50.0 } else { 1.0 }).collect();
    for kind in [DType::Q4_0, DType::Q5_0, DType::Q2_K, DType::Q3_K, DType::Q4_K, DType::Q6_K, DType::IQ4_NL] {
        let [with, without] = [Some(&importance[..]), None].map(|importance| {
            let bytes = encode(kind, &values, &tensor.shape, importance).expect("finite values");
            let mut decoded = vec![0.0; values.len()];
            dequantize(kind, &bytes, &mut decoded).expect("decodable");
            let heavy = values.iter().zip(&decoded).enumerate().filter(|(at, _)| at % columns % 8 < 2);
            heavy.fold(0.0, |sum, (_, (value, decoded))| sum + f64::from(value - decoded).powi(2))
        });
        assert!(with < 0.95 * without, "{kind}: {with} with importance, {without} without");
    }
}
