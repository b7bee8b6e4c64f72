//! A complete toy model of the family `llama`, small enough to be written by hand: 2 layers, 32 wide, 2 heads that share
//! one key/value head, a vocabulary of 8.

use crate::assemble::{Assembly, TensorSpec, tokenizer};

/// A key-value area under construction (spec §17).
#[derive(Clone, Debug, Default)]
pub struct Area {
    count: u64,
    pairs: Vec<u8>,
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text);
}

impl Area {
    /// Adds a pair of a type code and the value's bytes.
    pub fn raw(&mut self, key: &str, kind: u32, value: &[u8]) -> &mut Self {
        self.count += 1;
        string(&mut self.pairs, key.as_bytes());
        self.pairs.extend(kind.to_le_bytes());
        self.pairs.extend(value);
        self
    }

    /// Adds a `u32`.
    pub fn u32(&mut self, key: &str, value: u32) -> &mut Self {
        self.raw(key, 4, &value.to_le_bytes())
    }

    /// Adds an `f32`.
    pub fn f32(&mut self, key: &str, value: f32) -> &mut Self {
        self.raw(key, 6, &value.to_le_bytes())
    }

    /// Adds a string.
    pub fn str(&mut self, key: &str, value: &str) -> &mut Self {
        let mut bytes = Vec::new();
        string(&mut bytes, value.as_bytes());
        self.raw(key, 8, &bytes)
    }

    /// Adds an array of strings.
    pub fn strs(&mut self, key: &str, values: &[&str]) -> &mut Self {
        let mut bytes = 8u32.to_le_bytes().to_vec();
        bytes.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| string(&mut bytes, value.as_bytes()));
        self.raw(key, 9, &bytes)
    }

    /// The area with its count.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        [&self.count.to_le_bytes(), self.pairs.as_slice()].concat()
    }
}

/// The toy's tokens.
pub const TOKENS: [&str; 8] = ["<s>", "a", "b", "c", "ab", "bc", "</s>", "d"];

/// The toy's metadata.
#[must_use]
pub fn metadata() -> Area {
    let mut area = Area::default();
    area.str("general.architecture", "llama")
        .u32("llama.block_count", 2)
        .u32("llama.context_length", 64)
        .u32("llama.embedding_length", 32)
        .u32("llama.feed_forward_length", 64)
        .u32("llama.attention.head_count", 2)
        .u32("llama.attention.head_count_kv", 1)
        .f32("llama.attention.layer_norm_rms_epsilon", 1e-5)
        .f32("llama.rope.freq_base", 10_000.0)
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", "gpt-2")
        .strs("tokenizer.ggml.tokens", &TOKENS)
        .strs("tokenizer.ggml.merges", &["a b", "b c"])
        .u32("tokenizer.ggml.bos_token_id", 0)
        .u32("tokenizer.ggml.eos_token_id", 6);
    area
}

/// Q8_0 rows: scale 1/256 per block of 32, quants from a small generator.
fn q8_0(name: &str, role: u16, layer: u32, cols: u32, rows: u32) -> TensorSpec {
    let mut tensor = TensorSpec::new(name, role, 8, layer, &[cols, rows], 0);
    let mut state = u64::from(role) * 7919 + u64::from(layer) * 104_729 + 1;
    for _ in 0..cols / 32 * rows {
        tensor.bytes.extend(0x1c00u16.to_le_bytes());
        for _ in 0..32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            tensor.bytes.push((state >> 56) as u8);
        }
    }
    tensor
}

fn norm(name: &str, role: u16, layer: u32) -> TensorSpec {
    let mut tensor = TensorSpec::new(name, role, 0, layer, &[32], 0);
    tensor.bytes = (0..32u8).flat_map(|i| (1.0 + f32::from(i) / 64.0).to_le_bytes()).collect();
    tensor
}

/// The toy with this metadata; every tensor a `llama` needs, tied output.
#[must_use]
pub fn model(metadata: &Area) -> Assembly {
    let mut tensors = Vec::new();
    for layer in 0..2 {
        let name = |suffix: &str| format!("blk.{layer}.{suffix}.weight");
        tensors.push(norm(&name("attn_norm"), 7, layer));
        tensors.push(q8_0(&name("attn_q"), 2, layer, 32, 32));
        tensors.push(q8_0(&name("attn_k"), 0, layer, 32, 16));
        tensors.push(q8_0(&name("attn_v"), 1, layer, 32, 16));
        tensors.push(q8_0(&name("attn_output"), 3, layer, 32, 32));
        tensors.push(norm(&name("ffn_norm"), 8, layer));
        tensors.push(q8_0(&name("ffn_gate"), 4, layer, 32, 64));
        tensors.push(q8_0(&name("ffn_up"), 5, layer, 32, 64));
        tensors.push(q8_0(&name("ffn_down"), 6, layer, 64, 32));
    }
    tensors.push(q8_0("token_embd.weight", 9, 2, 32, 8));
    tensors.push(norm("output_norm.weight", 11, 2));
    let area = metadata.bytes();
    let mut tensor = TensorSpec::new("p64.metadata", 0xfffe, 24, 2, &[u32::try_from(area.len()).expect("small")], 0);
    tensor.bytes = area;
    tensor.source_offset = u64::MAX;
    tensors.push(tensor);
    let tokenizer = tokenizer(&TOKENS, &[("a", "b"), ("b", "c")], "gpt-2", 0, 6);
    Assembly { flags: 0b111_0001, page_size: 256, hparams: [2, 32, 2, 1, 8], tensors, tokenizer }
}
