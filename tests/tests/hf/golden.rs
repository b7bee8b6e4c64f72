//! What others make of a folder.

use p64_core::metadata::{Array, Value, ValueKind};
use p64_tests::data::data;
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// Name, element type, lengths, digest.
pub type TensorRow = (String, String, Vec<u32>, String);

/// A case.
pub struct Golden {
    pub name: String,
    pub folder: PathBuf,
    pub prompt: Vec<u32>,
    /// After how many tokens there are logits.
    pub at: Vec<usize>,
    pub vocabulary: usize,
    /// transformers' logits.
    pub logits: Vec<f32>,
    /// transformers' with gelu rounded to f16, as ggml and so p64 compute it, where the model has one.
    pub rounded: Option<Vec<f32>>,
    /// llama.cpp's, where it can load what its converter made.
    pub llama: Option<Vec<f32>>,
    /// Texts, their ids, and their ids with what goes around a text.
    pub texts: Vec<(String, Vec<u32>, Vec<u32>)>,
    /// The converter's keys with kinds and values as text, where it makes a GGUF.
    pub keys: Option<Vec<(String, String)>>,
    /// The converter's tensors.
    pub tensors: Option<Vec<TensorRow>>,
}

/// Every case.
pub fn cases() -> Vec<String> {
    let entries = std::fs::read_dir(data("hf")).expect("the folder is there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().expect("a name").to_str().expect("UTF-8").to_owned())
        .collect();
    names.sort();
    names
}

fn floats(path: &str) -> Option<Vec<f32>> {
    let bytes = std::fs::read(data(path)).ok()?;
    Some(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

impl Golden {
    /// Reads a case.
    pub fn load(name: &str) -> Self {
        let text = std::fs::read(data(&format!("hf/{name}.json"))).expect("a golden for each folder");
        let root: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let numbers =
            |value: &serde_json::Value| -> Vec<u32> { serde_json::from_value(value.clone()).expect("numbers") };
        let texts: Vec<(String, Vec<u32>, Vec<u32>)> = serde_json::from_value(root["texts"].clone()).expect("texts");
        let keys = root["keys"].as_array().map(|rows| {
            rows.iter().map(|row| (row[0].as_str().expect("a key").to_owned(), expected(&row[1], &row[2]))).collect()
        });
        Self {
            name: name.to_owned(),
            folder: data(&format!("hf/{name}")),
            prompt: numbers(&root["prompt"]),
            at: serde_json::from_value(root["at"].clone()).expect("numbers"),
            vocabulary: serde_json::from_value(root["vocabulary"].clone()).expect("a number"),
            logits: floats(&format!("hf/{name}.f32")).expect("logits"),
            rounded: floats(&format!("hf/{name}.half.f32")),
            llama: floats(&format!("hf/{name}.llama.f32")),
            texts,
            keys,
            tensors: serde_json::from_value(root["tensors"].clone()).expect("tensors"),
        }
    }
}

/// A golden's value as [`shown`] has ours.
fn expected(kinds: &serde_json::Value, value: &serde_json::Value) -> String {
    let kinds: Vec<&str> = kinds.as_array().expect("a list").iter().map(|kind| kind.as_str().expect("text")).collect();
    let one = |kind: &str, value: &serde_json::Value| match kind {
        "float32" => format!("{:?}", value.as_f64().expect("a number")),
        _ => value.to_string(),
    };
    match kinds.as_slice() {
        ["array", kind] => match value {
            serde_json::Value::Object(long) => {
                format!("array {kind} {} {}", long["len"], long["sha256"].as_str().expect("text"))
            }
            serde_json::Value::Array(list) => {
                let list: Vec<String> = list.iter().map(|value| one(kind, value)).collect();
                format!("array {kind} [{}]", list.join(", "))
            }
            _ => panic!("an array"),
        },
        [kind] => format!("{kind} {}", one(kind, value)),
        _ => panic!("{kinds:?}"),
    }
}

/// A value as text, with its kind.
pub fn shown(value: Value<'_>) -> String {
    match value {
        Value::Array(array) => shown_array(array),
        value => format!("{} {}", kind(value.kind()), plain(value)),
    }
}

fn kind(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::U32 => "uint32",
        ValueKind::I32 => "int32",
        ValueKind::F32 => "float32",
        ValueKind::Bool => "bool",
        ValueKind::String => "string",
        _ => "another",
    }
}

fn plain(value: Value<'_>) -> String {
    match value {
        Value::U32(value) => value.to_string(),
        Value::I32(value) => value.to_string(),
        Value::F32(value) => format!("{:?}", f64::from(value)),
        Value::Bool(value) => value.to_string(),
        Value::String(text) => serde_json::Value::from(str::from_utf8(text).expect("UTF-8")).to_string(),
        _ => "?".to_owned(),
    }
}

fn shown_array(array: Array<'_>) -> String {
    let list: Vec<String> = array.iter().map(plain).collect();
    let kind = kind(array.kind());
    let text = format!("[{}]", list.join(", "));
    if list.len() > 16 {
        let digest: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        return format!("array {kind} {} {digest}", list.len());
    }
    format!("array {kind} {text}")
}

/// Differences that are meant (`docs/huggingface.md`).
pub fn is_meant(golden: &Golden, problem: &str) -> bool {
    // What the converter guesses from the name of a folder.
    const GUESSED: [&str; 4] = ["general.basename", "general.finetune", "general.version", "general.organization"];
    let key = problem.split(' ').next().unwrap_or_default();
    // Ids that a CodeGemma has, written for every Gemma.
    let code_gemma = ["prefix", "suffix", "middle", "fsep", "eot"]
        .iter()
        .any(|role| golden.name.starts_with("gemma-") && key == format!("tokenizer.ggml.{role}_token_id"));
    // Where tokenizer.model is missing, the converter gives every piece one score, or takes them for another model's.
    let pieces = golden.name.ends_with("no-spm-file") && key.starts_with("tokenizer.ggml.");
    GUESSED.contains(&key) || code_gemma || pieces
}
