//! Folders that are changed so that they must be refused, each with a message that names what is wrong.

use p64_std::hf;
use p64_std::safetensors::SafetensorsSet;
use p64_tests::data::data;
use serde_json::{Value, json};
use std::path::Path;

fn copy(name: &str, to: &Path) {
    for entry in std::fs::read_dir(data(&format!("hf/{name}"))).expect("readable") {
        let path = entry.expect("readable").path();
        std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
    }
}

/// The message about a case whose file was edited; empty when it is taken.
fn edited(name: &str, file: &str, edit: impl FnOnce(&mut Value)) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    copy(name, folder.path());
    let path = folder.path().join(file);
    let mut root: Value = serde_json::from_slice(&std::fs::read(&path).expect("readable")).expect("JSON");
    edit(&mut root);
    std::fs::write(&path, root.to_string()).expect("written");
    let set = SafetensorsSet::open(folder.path()).expect("safetensors");
    hf::source_model(&set, folder.path()).err().map_or_else(String::new, |error| error.to_string())
}

fn check(name: &str, file: &str, key: &str, value: Value, expected: &str) {
    let message = edited(name, file, |root| root[key] = value.clone());
    let found = message.contains(expected) && message.contains(file);
    assert!(found, "{name}, {key} = {value}: {message:?}, expected one with {expected:?}");
}

#[test]
fn configurations() {
    let config = |name: &str, key: &str, value: Value, expected: &str| check(name, "config.json", key, value, expected);
    config(
        "llama-f32",
        "architectures",
        json!(["RwkvForCausalLM"]),
        "`RwkvForCausalLM` are not known; known are LlamaForCausalLM",
    );
    config("llama-f32", "alibi_slopes", json!([1, 2]), "`alibi_slopes` = [1,2] is not understood");
    config("llama-f32", "hidden_act", json!("relu"), "hidden_act is \"relu\"");
    config("llama-f32", "hidden_size", json!("32"), "hidden_size is \"32\", expected a whole number");
    config("llama-f32", "hidden_size", json!(-32), "hidden_size is -32");
    config("llama-f32", "num_attention_heads", json!(0), "does not fit config.json");
    config("llama-f32", "num_hidden_layers", Value::Null, "num_hidden_layers is missing");
    config("llama-f32", "partial_rotary_factor", json!(0.5), "partial_rotary_factor is 0.5");
    config("llama-f32", "rope_parameters", json!({"rope_type": "dynamic", "factor": 2}), "rope_type is `dynamic`");
    config("llama-f32", "rope_parameters", json!({"rope_type": "linear"}), "rope_parameters.factor is missing");
    config("llama-f32", "rope_parameters", json!(7), "rope_parameters is 7");
    config("qwen2-f32", "use_sliding_window", json!(true), "use_sliding_window is true");
    config("qwen3moe-bf16", "norm_topk_prob", json!(false), "norm_topk_prob is false");
    config("qwen3moe-bf16", "mlp_only_layers", json!([1]), "mlp_only_layers is [1]");
    config("qwen3moe-bf16", "num_local_experts", json!(5), "config.json counts 5; see number 4");
    config("gemma3-f32", "query_pre_attn_scalar", json!(8), "query_pre_attn_scalar is 8");
    config("gemma3-f32", "layer_types", json!(["full_attention"]), "layer 0 has `full_attention`");
    config("smollm3-f32", "no_rope_layers", json!([1, 0, 1, 1]), "no_rope_layers is [1,0,1,1]");
    config(
        "phi-longrope",
        "rope_parameters",
        json!({"rope_type": "longrope", "long_factor": [1], "short_factor": [1]}),
        "1 short and 1 long",
    );
}

#[test]
fn tensors() {
    let layers = edited("llama-f32", "config.json", |root| root["num_hidden_layers"] = json!(1));
    assert!(layers.contains("model.safetensors") && layers.contains("config.json counts 1 layers"), "{layers}");
    let heads = edited("llama-f32", "config.json", |root| root["num_attention_heads"] = json!(5));
    assert!(heads.contains("does not fit config.json"), "{heads}");
    let class = edited("qwen3-f32", "config.json", |root| root["architectures"] = json!(["Qwen2ForCausalLM"]));
    assert!(
        class.contains("models of the family qwen2 have no such tensor") && class.contains("_norm.weight"),
        "{class}"
    );
    let tied = edited("qwen3-f32", "config.json", |root| root["tie_word_embeddings"] = json!(false));
    assert!(tied.contains("there is no lm_head.weight"), "{tied}");
}

/// The folder with one more file of a tensor, or with one tensor less.
fn message(folder: &Path) -> String {
    let set = SafetensorsSet::open(folder).expect("safetensors");
    hf::source_model(&set, folder).err().map_or_else(String::new, |error| error.to_string())
}

/// A safetensors file of its names, shapes (F32) and nothing in them but zeros.
fn file(tensors: &[(&str, &[u64])]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut end = 0;
    for (name, shape) in tensors {
        let begin = end;
        end += 4 * shape.iter().product::<u64>();
        header.insert((*name).to_owned(), json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}));
    }
    let mut text = Value::Object(header).to_string();
    while !text.len().is_multiple_of(8) {
        text.push(' ');
    }
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(bytes.len() + usize::try_from(end).expect("small"), 0);
    bytes
}

#[test]
fn what_does_not_scale_is_refused() {
    let linear = json!({"rope_type": "linear", "factor": 4, "rope_theta": 10000});
    check("command-r-f32", "config.json", "rope_parameters", linear.clone(), "only an unscaled rotation");
    check("cohere2-f32", "config.json", "rope_parameters", linear, "only an unscaled rotation");
    let long = json!({"rope_type": "longrope", "long_factor": [1], "short_factor": [1], "rope_theta": 10000});
    check("llama-f32", "config.json", "rope_parameters", long, "longrope is not understood");
}

#[test]
fn layers_without_tensors() {
    let more = edited("llama-f32", "config.json", |root| root["num_hidden_layers"] = json!(7));
    assert!(more.contains("counts 7 layers, and no tensor is of layer"), "{more}");
}

#[test]
fn two_tensors_for_one_expert() {
    let folder = tempfile::tempdir().expect("a folder");
    copy("mixtral-bf16", folder.path());
    let path = folder.path().join("model.safetensors");
    let mut names: Vec<(String, Vec<u64>)> = SafetensorsSet::open(folder.path())
        .expect("safetensors")
        .tensors()
        .map(|tensor| (tensor.name().to_owned(), tensor.info().shape.clone()))
        .collect();
    let expert = names.iter().find(|(name, _)| name.contains(".experts.0.")).expect("an expert of its own").clone();
    names.push((format!("language_model.{}", expert.0), expert.1));
    let tensors: Vec<_> = names.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())).collect();
    std::fs::write(path, file(&tensors)).expect("written");
    let message = message(folder.path());
    assert!(message.contains("two tensors become part 0"), "{message}");
}

/// Sizes that no machine has are answered, not tried.
#[test]
fn numbers_beyond_measure() {
    let huge = json!(4_294_967_295_u64);
    check("llama-f32", "config.json", "num_hidden_layers", huge.clone(), "4294967295 layers; ");
    check("olmo3-f32", "config.json", "num_hidden_layers", huge.clone(), "4294967295 layers; ");
    let heads = edited("llama-f32", "config.json", |root| {
        root["head_dim"] = huge.clone();
        root["rope_parameters"] = json!({"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
            "original_max_position_embeddings": 8192, "rope_theta": 10000});
    });
    assert!(heads.contains("a head of 4294967295 elements"), "{heads}");
}

/// Sizes that no machine has are answered, not tried.
#[test]
fn a_vocabulary_beyond_measure() {
    let message = edited("llama-f32", "config.json", |root| root["vocab_size"] = json!(4_294_967_295_u64));
    assert!(message.contains("a vocabulary of 4294967295 tokens; at most"), "{message}");
}

#[test]
fn tokenizers() {
    let file = "tokenizer.json";
    check("llama-f32", file, "pre_tokenizer", json!({"type": "Whitespace"}), "the pre-tokenizer is none of those");
    check(
        "llama-f32",
        file,
        "pre_tokenizer",
        json!({"type": "ByteLevel", "add_prefix_space": true}),
        "the pre-tokenizer is none",
    );
    check("llama-f32", file, "normalizer", json!({"type": "Lowercase"}), "normalizer: {\"type\":\"Lowercase\"}");
    check("llama-f32", file, "model", json!({"type": "Unigram", "vocab": []}), "model.type is `Unigram`");
    check(
        "llama-f32",
        file,
        "model",
        json!({"type": "BPE", "vocab": {"a": 100_000}, "merges": []}),
        "the id of `a` is 100000",
    );
    check(
        "llama-f32",
        file,
        "model",
        json!({"type": "BPE", "vocab": {"a": "b"}, "merges": []}),
        "the id of `a` is no number",
    );
    check("llama-f32", file, "model", json!({"type": "BPE", "vocab": {}, "merges": [["a"]]}), "element 0 is no pair");
    check("llama-f32", file, "added_tokens", json!([{"id": 1}]), "added_tokens is no list of tokens");
    check("mistral-f32-no-spm-file", file, "normalizer", Value::Null, "nothing writes spaces as U+2581");
}

/// A tokenizer that is not there is told, and the model is one of token ids.
#[test]
fn without_a_tokenizer() {
    let folder = tempfile::tempdir().expect("a folder");
    copy("llama-f32", folder.path());
    std::fs::remove_file(folder.path().join("tokenizer.json")).expect("there");
    let set = SafetensorsSet::open(folder.path()).expect("safetensors");
    let model = hf::source_model(&set, folder.path()).expect("complete");
    assert!(model.notes.iter().any(|note| note.contains("the model reads token ids only")), "{:?}", model.notes);
}

/// Whatever is cut from a configuration or a tokenizer, the answer is an error or a model, never a panic.
#[test]
fn cut_files_are_answered() {
    for (name, file) in [("llama-f32", "config.json"), ("phi-f32", "tokenizer.model"), ("llama-f32", "tokenizer.json")]
    {
        let folder = tempfile::tempdir().expect("a folder");
        copy(name, folder.path());
        let path = folder.path().join(file);
        let whole = std::fs::read(&path).expect("readable");
        let step = (whole.len() / 40).max(1);
        for len in (0..whole.len()).step_by(step) {
            std::fs::write(&path, &whole[..len]).expect("written");
            let set = SafetensorsSet::open(folder.path()).expect("safetensors");
            let _ = hf::source_model(&set, folder.path());
        }
    }
}
