//! The GGUF of a recipe, as gguf-py writes it.

use super::{KeyRow, Recipe, TensorRow, fill};

const ALIGNMENT: usize = 32;

/// The file's bytes.
pub(super) fn build(recipe: &Recipe) -> Vec<u8> {
    let mut keys = Keys { count: 0, bytes: Vec::new() };
    keys.text("general.architecture", &recipe.arch);
    for KeyRow(name, kind, value) in &recipe.keys {
        let number = || u32::try_from(value.as_u64().expect("a count")).expect("32 bits");
        match kind.as_str() {
            "u32" => keys.number(name, number()),
            "f32" => keys.add(name, 6, &as_f32(value).to_le_bytes()),
            "bool" => keys.add(name, 7, &[u8::from(value.as_bool().expect("true or false"))]),
            "str" => keys.text(name, value.as_str().expect("a text")),
            "bools" => {
                let values = value.as_array().expect("a list");
                keys.array(name, 7, values.iter().map(|one| vec![u8::from(one.as_bool().expect("true or false"))]));
            }
            other => panic!("a recipe names the kind {other}"),
        }
    }
    vocabulary(&mut keys, recipe.vocabulary);

    let mut out = b"GGUF\x03\0\0\0".to_vec();
    out.extend_from_slice(&(recipe.tensors.len() as u64).to_le_bytes());
    out.extend_from_slice(&keys.count.to_le_bytes());
    out.extend_from_slice(&keys.bytes);
    let mut offset = 0;
    for TensorRow(name, kind, dims, ..) in &recipe.tensors {
        let kind = fill::named(kind);
        out.extend_from_slice(&string(name));
        out.extend_from_slice(&u32::try_from(dims.len()).expect("few").to_le_bytes());
        dims.iter().for_each(|dim| out.extend_from_slice(&(*dim as u64).to_le_bytes()));
        out.extend_from_slice(&kind.id.to_le_bytes());
        out.extend_from_slice(&(offset as u64).to_le_bytes());
        let bytes = dims.iter().product::<usize>() / kind.elements * kind.bytes;
        offset += bytes.next_multiple_of(ALIGNMENT);
    }
    pad(&mut out);
    for TensorRow(name, kind, dims, rule, e) in &recipe.tensors {
        let count = dims.iter().product();
        fill::fill(&mut out, fill::named(kind), count, rule, *e, fill::seed(&recipe.name, name));
        pad(&mut out);
    }
    out
}

#[expect(clippy::cast_possible_truncation, reason = "gguf-py rounds a Python float to f32 the same way")]
fn as_f32(value: &serde_json::Value) -> f32 {
    value.as_f64().expect("a number") as f32
}

/// The vocabulary that all models have: control tokens, bytes, a space, letters, and words up to `count`.
fn vocabulary(keys: &mut Keys, count: usize) {
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(str::to_owned).to_vec();
    tokens.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
    tokens.push('\u{2581}'.to_string());
    tokens.extend(('a'..='z').map(String::from));
    tokens.extend((0..count - tokens.len()).map(|i| format!("t{i}")));
    let types = (0..count).map(|id| match id {
        0 => 2i32,
        1 | 2 => 3,
        3..259 => 6,
        _ => 1,
    });
    keys.text("tokenizer.ggml.model", "llama");
    keys.text("tokenizer.ggml.pre", "default");
    keys.array("tokenizer.ggml.tokens", 8, tokens.iter().map(|token| string(token)));
    let scores = (0..count).map(|id| -f32::from(u16::try_from(id).expect("a small vocabulary")));
    keys.array("tokenizer.ggml.scores", 6, scores.map(|score| score.to_le_bytes().to_vec()));
    keys.array("tokenizer.ggml.token_type", 5, types.map(|kind| kind.to_le_bytes().to_vec()));
    keys.number("tokenizer.ggml.bos_token_id", 1);
    keys.number("tokenizer.ggml.eos_token_id", 2);
    keys.number("tokenizer.ggml.unknown_token_id", 0);
}

/// The key-value area.
struct Keys {
    count: u64,
    bytes: Vec<u8>,
}

impl Keys {
    fn add(&mut self, name: &str, kind: u32, value: &[u8]) {
        self.count += 1;
        self.bytes.extend_from_slice(&string(name));
        self.bytes.extend_from_slice(&kind.to_le_bytes());
        self.bytes.extend_from_slice(value);
    }

    fn number(&mut self, name: &str, value: u32) {
        self.add(name, 4, &value.to_le_bytes());
    }

    fn text(&mut self, name: &str, value: &str) {
        self.add(name, 8, &string(value));
    }

    fn array(&mut self, name: &str, kind: u32, values: impl ExactSizeIterator<Item = Vec<u8>>) {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend_from_slice(&(values.len() as u64).to_le_bytes());
        values.for_each(|value| bytes.extend_from_slice(&value));
        self.add(name, 9, &bytes);
    }
}

fn string(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}
