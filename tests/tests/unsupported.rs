//! Models that do not run are kept all the same: each converts, verifies strictly and comes back identical, and opening it
//! to run says in one sentence what is missing, the same for the GGUF and for the P64 made from it.

use p64_core::DType;
use p64_core::forward::Architecture;
use p64_core::validate::Policy;
use p64_std::convert::{ConvertOptions, check_parity, convert_gguf};
use p64_std::export::export_gguf;
use p64_std::map::{MapOptions, MappedContainer};
use p64_std::model::LoadedModel;
use p64_tests::gguf::GgufBuilder;
use p64_tests::toy;
use std::path::{Path, PathBuf};

const STILL: &str = "the file can still be converted, verified, inspected and exported";

/// A model that this build runs, as lists to change.
struct Draft {
    keys: Vec<(&'static str, Key)>,
    tensors: Vec<(String, DType, Vec<u64>)>,
}

enum Key {
    Text(&'static str),
    Number(u32),
    Float(f32),
    Texts(&'static [&'static str]),
}

fn llama() -> Draft {
    use Key::{Float, Number, Text, Texts};
    let keys = vec![
        ("general.architecture", Text("llama")),
        ("llama.block_count", Number(2)),
        ("llama.context_length", Number(64)),
        ("llama.embedding_length", Number(32)),
        ("llama.feed_forward_length", Number(64)),
        ("llama.attention.head_count", Number(4)),
        ("llama.attention.head_count_kv", Number(2)),
        ("llama.attention.layer_norm_rms_epsilon", Float(1e-5)),
        ("tokenizer.ggml.model", Text("gpt2")),
        ("tokenizer.ggml.pre", Text("gpt-2")),
        ("tokenizer.ggml.tokens", Texts(&["a", "b", "ab"])),
        ("tokenizer.ggml.merges", Texts(&["a b"])),
        ("tokenizer.ggml.bos_token_id", Number(0)),
        ("tokenizer.ggml.eos_token_id", Number(1)),
    ];
    let mut tensors = vec![("token_embd.weight".to_owned(), DType::F16, vec![32, 3])];
    for layer in 0..2 {
        for (name, dtype, dims) in [
            ("attn_norm", DType::F32, vec![32]),
            ("attn_q", DType::Q8_0, vec![32, 32]),
            ("attn_k", DType::IQ4_NL, vec![32, 16]),
            ("attn_v", DType::Q5_0, vec![32, 16]),
            ("attn_output", DType::MXFP4, vec![32, 32]),
            ("ffn_norm", DType::F32, vec![32]),
            ("ffn_gate", DType::Q4_0, vec![32, 64]),
            ("ffn_up", DType::Q4_1, vec![32, 64]),
            ("ffn_down", DType::NVFP4, vec![64, 32]),
        ] {
            tensors.push((format!("blk.{layer}.{name}.weight"), dtype, dims));
        }
    }
    tensors.push(("output_norm.weight".to_owned(), DType::F32, vec![32]));
    Draft { keys, tensors }
}

impl Draft {
    /// Sets a key, which the draft may have already.
    fn key(mut self, name: &'static str, value: Key) -> Self {
        self = self.without_key(name);
        self.keys.push((name, value));
        self
    }

    fn without_key(mut self, name: &str) -> Self {
        self.keys.retain(|(key, _)| *key != name);
        self
    }

    fn tensor(mut self, name: &str, dtype: DType, dims: &[u64]) -> Self {
        self.tensors.push((name.to_owned(), dtype, dims.to_vec()));
        self
    }

    fn without_tensor(mut self, name: &str) -> Self {
        let before = self.tensors.len();
        self.tensors.retain(|(tensor, ..)| tensor != name);
        assert_eq!(self.tensors.len() + 1, before, "{name}");
        self
    }

    fn typed(mut self, name: &str, dtype: DType) -> Self {
        let found = self.tensors.iter_mut().find(|(tensor, ..)| tensor == name);
        found.expect("a tensor of the draft").1 = dtype;
        self
    }

    fn gguf(&self) -> GgufBuilder {
        let keys = self.keys.iter().fold(GgufBuilder::new(3), |gguf, (key, value)| match value {
            Key::Text(text) => gguf.str(key, text),
            Key::Number(number) => gguf.u32(key, *number),
            Key::Float(float) => gguf.f32(key, *float),
            Key::Texts(texts) => gguf.strings(key, texts),
        });
        self.tensors.iter().fold(keys, |gguf, (name, dtype, dims)| gguf.tensor(name, *dtype, dims))
    }
}

/// The sentence with which opening a model to run ends, without the path.
fn refusal(path: &Path) -> String {
    let error = LoadedModel::open(path, &MapOptions::default()).expect_err("does not run");
    assert_eq!(error.exit_code(), 1, "{error}");
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text.strip_prefix(&format!("{}: ", path.display())).expect("the path comes first").to_owned()
}

/// Converts, verifies strictly, compares and exports; the container's path.
fn kept(input: &Path) -> PathBuf {
    let (p64, back) = (input.with_extension("p64"), input.with_extension("back.gguf"));
    convert_gguf(input, &p64, &ConvertOptions::default(), &mut |_| ()).expect("converted");
    let strict = MapOptions { policy: Policy::Strict, ..MapOptions::default() };
    let (mapped, warnings) = MappedContainer::open(&p64, &strict).expect("strict");
    assert!(warnings.is_empty(), "{warnings:?}");
    drop(mapped);
    let parity = check_parity(input, &p64, &mut |_| ()).expect("comparable");
    assert!(parity.is_equal(), "{:?}", parity.differences);
    assert_eq!(export_gguf(&p64, &back, &mut |_| ()).expect("exported").identical, Some(true));
    assert!(std::fs::read(input).expect("there") == std::fs::read(back).expect("there"), "the bytes differ");
    p64
}

/// The draft is kept whole, and says this when it is to run.
fn says(draft: &Draft, sentence: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let input = draft.gguf().write(folder.path(), "m.gguf");
    assert_eq!(refusal(&input), sentence);
    assert_eq!(refusal(&kept(&input)), sentence);
}

#[test]
fn the_draft_itself_opens() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = llama().gguf().write(folder.path(), "m.gguf");
    for path in [kept(&input), input] {
        LoadedModel::open(&path, &MapOptions::default()).expect("it runs");
    }
}

#[test]
fn a_family_that_is_not_there() {
    for name in ["mamba", "rwkv7", "deepseek2", "LLAMA"] {
        let draft = llama().key("general.architecture", Key::Text(name));
        // What else is odd about the model comes second.
        let draft = draft.key("tokenizer.ggml.model", Key::Text("rwkv-of-tomorrow"));
        let draft = draft.tensor("blk.0.ssm_in.weight", DType::Q6_K, &[256, 4]).tensor("blk.0.ssm_a", DType::I8, &[5]);
        let known = Architecture::SUPPORTED.join(", ");
        let sentence = format!("this build does not run the architecture \"{name}\" (it runs: {known}); {STILL}");
        says(&draft, &sentence);
    }
}

#[test]
fn keys_that_are_missing() {
    says(
        &llama().without_key("general.architecture"),
        &format!("the metadata key general.architecture is missing, so the model's family is unknown; {STILL}"),
    );
    says(
        &llama().without_key("llama.attention.layer_norm_rms_epsilon"),
        "the metadata key llama.attention.layer_norm_rms_epsilon is missing, and llama needs it",
    );
}

#[test]
fn keys_that_ask_for_more() {
    let ask = |key, value| llama().key(key, value);
    let sentence = |what: &str| format!("key llama.{what}, which this build does not compute for llama; {STILL}");
    says(&ask("llama.rope.scaling.type", Key::Text("dynamic")), &sentence("rope.scaling.type is \"dynamic\""));
    says(&ask("llama.final_logit_softcapping", Key::Float(30.0)), &sentence("final_logit_softcapping is 30"));
    says(&ask("llama.attention.value_length", Key::Number(16)), &sentence("attention.value_length is 16"));
    let long = "a kind of scaling that nobody has heard of until now";
    says(
        &ask("llama.rope.scaling.type", Key::Text(long)),
        &sentence("rope.scaling.type is \"a kind of scaling that nobody has heard \"..."),
    );
}

#[test]
fn tensors_too_many_or_too_few() {
    for name in ["blk.1.attn_sinks.weight", "blk.7.attn_q.weight", "mm.0.weight"] {
        let sentence = format!(
            "tensor {name} has no place in what this build computes for llama, and leaving it out would give other \
             text; {STILL}"
        );
        says(&llama().tensor(name, DType::F32, &[32]), &sentence);
    }
    for name in ["blk.1.ffn_up.weight", "output_norm.weight", "token_embd.weight"] {
        says(&llama().without_tensor(name), &format!("the tensor {name} is missing, and llama needs it"));
    }
}

#[test]
fn types_that_are_kept_only() {
    for dtype in [DType::I8, DType::I16, DType::I32, DType::I64, DType::F64, DType::Q8_1] {
        for name in ["blk.1.attn_q.weight", "token_embd.weight"] {
            says(
                &llama().typed(name, dtype),
                &format!("tensor {name}: this build does not compute with weights of type {dtype}; {STILL}"),
            );
        }
    }
    // No GGUF can carry such a type: its reader must know the size. A container of a later writer may.
    let mut later = toy::model(&toy::metadata());
    later.tensors[1].dtype = 77;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("later.p64");
    std::fs::write(&path, later.build()).expect("written");
    assert_eq!(
        refusal(&path),
        format!(
            "tensor blk.0.attn_q.weight: this build does not compute with weights of an unknown type (77); {STILL}"
        )
    );
}

/// Without a known size neither the tensor's end nor that of the file can be checked (`docs/acceptance.md` G13).
#[test]
fn a_type_outside_the_registry_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = llama().gguf().build();
    let name = b"blk.1.attn_q.weight";
    let at = bytes.windows(name.len()).position(|window| window == name).expect("there") + name.len() + 4 + 2 * 8;
    assert_eq!(bytes[at], 8, "Q8_0");
    let input = folder.path().join("m.gguf");
    for (id, what) in [(99, "type 99 is not in the GGML registry"), (36, "type 36 was removed from GGML (it was ")] {
        bytes[at] = id;
        std::fs::write(&input, &bytes).expect("written");
        let sentence = refusal(&input);
        assert!(sentence.contains("\"blk.1.attn_q.weight\": ") && sentence.contains(what), "{sentence}");
        let output = folder.path().join("m.p64");
        let error = convert_gguf(&input, &output, &ConvertOptions::default(), &mut |_| ()).expect_err("refused");
        assert_eq!((error.to_string(), output.exists()), (format!("{}: {sentence}", input.display()), false));
    }
}

#[test]
fn tokenizers_that_are_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    for (key, value) in [("tokenizer.ggml.model", "glyphs"), ("tokenizer.ggml.pre", "of-tomorrow")] {
        let input = llama().key(key, Key::Text(value)).gguf().write(folder.path(), "m.gguf");
        let sentence = refusal(&input);
        let begin = format!("tokenizer: {key} is \"{value}\", this build has ");
        assert!(sentence.starts_with(&begin) && sentence.contains("gpt"), "{sentence}");
        assert_eq!(refusal(&kept(&input)), sentence);
    }
}

#[test]
fn a_vocabulary_without_weights() {
    let mut draft = llama();
    draft.tensors.clear();
    says(&draft, "the file holds a vocabulary without weights, so there is nothing to run; p64 tokenize takes it");
    says(&draft.without_key("tokenizer.ggml.tokens"), "the file holds no weights, so there is nothing to run");
}

#[test]
fn a_part_of_a_split_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let draft = llama();
    let (first, last) = draft.tensors.split_at(9);
    let count = i32::try_from(draft.tensors.len()).expect("few");
    let (keys, bare) = (Draft { keys: draft.keys, tensors: Vec::new() }.gguf(), GgufBuilder::new(3));
    let mut paths = Vec::new();
    for (number, builder, tensors) in [(0, keys, first), (1, bare, last)] {
        let builder = builder.u16("split.no", number).u16("split.count", 2).i32("split.tensors.count", count);
        let builder = tensors.iter().fold(builder, |gguf, (name, dtype, dims)| gguf.tensor(name, *dtype, dims));
        paths.push(builder.write(folder.path(), &format!("m-{:05}-of-00002.gguf", number + 1)));
    }
    for (path, number) in paths.iter().zip(1..) {
        let sentence = format!(
            "this is file {number} of the 2 of a split GGUF; convert the first of them, which takes in the others, and \
             run the result: p64 convert NAME-00001-of-00002.gguf NAME.p64"
        );
        assert_eq!(refusal(path), sentence);
    }
    let p64 = folder.path().join("m.p64");
    convert_gguf(&paths[0], &p64, &ConvertOptions::default(), &mut |_| ()).expect("converted");
    LoadedModel::open(&p64, &MapOptions::default()).expect("the whole runs");
}
