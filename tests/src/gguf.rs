//! A builder of small GGUF files, written from GGUF's own description and apart from `p64-std`'s reader and exporter.

use p64_core::DType;
use std::path::{Path, PathBuf};

/// A GGUF under construction.
#[derive(Clone)]
pub struct GgufBuilder {
    version: u32,
    alignment: Option<u32>,
    key_count: u64,
    pairs: Vec<u8>,
    tensors: Vec<(String, u32, Vec<u64>)>,
    data_order: Option<Vec<usize>>,
    last_padding: usize,
    padding_byte: u8,
}

/// Bytes that follow the last payload.
pub const NO_PADDING: usize = usize::MAX;

impl GgufBuilder {
    /// A file of that version without keys and tensors.
    #[must_use]
    pub fn new(version: u32) -> Self {
        Self {
            version,
            alignment: None,
            key_count: 0,
            pairs: Vec::new(),
            tensors: Vec::new(),
            data_order: None,
            last_padding: 0,
            padding_byte: 0,
        }
    }

    fn key(&mut self, key: &str, kind: u32) -> &mut Vec<u8> {
        self.key_count += 1;
        string(&mut self.pairs, key);
        self.pairs.extend_from_slice(&kind.to_le_bytes());
        &mut self.pairs
    }

    /// Sets `general.alignment`.
    #[must_use]
    pub fn alignment(mut self, alignment: u32) -> Self {
        self.alignment = Some(alignment);
        self.u32("general.alignment", alignment)
    }

    /// A u16 key.
    #[must_use]
    pub fn u16(mut self, key: &str, value: u16) -> Self {
        self.key(key, 2).extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A u32 key.
    #[must_use]
    pub fn u32(mut self, key: &str, value: u32) -> Self {
        self.key(key, 4).extend_from_slice(&value.to_le_bytes());
        self
    }

    /// An i32 key.
    #[must_use]
    pub fn i32(mut self, key: &str, value: i32) -> Self {
        self.key(key, 5).extend_from_slice(&value.to_le_bytes());
        self
    }

    /// An f32 key.
    #[must_use]
    pub fn f32(mut self, key: &str, value: f32) -> Self {
        self.key(key, 6).extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A string key.
    #[must_use]
    pub fn str(mut self, key: &str, value: &str) -> Self {
        string(self.key(key, 8), value);
        self
    }

    /// A key with an array of strings.
    #[must_use]
    pub fn strings(mut self, key: &str, values: &[&str]) -> Self {
        let out = self.key(key, 9);
        out.extend_from_slice(&8u32.to_le_bytes());
        out.extend_from_slice(&(values.len() as u64).to_le_bytes());
        for value in values {
            string(out, value);
        }
        self
    }

    /// A tensor of a type with known blocks; its bytes follow from its position.
    #[must_use]
    pub fn tensor(mut self, name: &str, dtype: DType, dims: &[u64]) -> Self {
        self.tensors.push((name.to_owned(), u32::from(dtype.id()), dims.to_vec()));
        self
    }

    /// The order of the payloads, as positions in the table; the table's own unless set.
    #[must_use]
    pub fn data_order(mut self, order: &[usize]) -> Self {
        self.data_order = Some(order.to_vec());
        self
    }

    /// Bytes after the last payload beyond its padding, or [`NO_PADDING`] for not even that.
    #[must_use]
    pub fn last_padding(mut self, bytes: usize) -> Self {
        self.last_padding = bytes;
        self
    }

    /// What padding between payloads is filled with, which should be zero.
    #[must_use]
    pub fn padding_byte(mut self, byte: u8) -> Self {
        self.padding_byte = byte;
        self
    }

    /// The keys of a complete model of `n_layer` layers with a vocabulary of three.
    #[must_use]
    pub fn model_keys(self, n_layer: u32) -> Self {
        self.str("general.architecture", "llama")
            .u32("llama.block_count", n_layer)
            .u32("llama.embedding_length", 32)
            .u32("llama.attention.head_count", 4)
            .u32("llama.attention.head_count_kv", 2)
            .str("tokenizer.ggml.model", "gpt2")
            .strings("tokenizer.ggml.tokens", &["a", "b", "ab"])
            .strings("tokenizer.ggml.merges", &["a b"])
            .u32("tokenizer.ggml.bos_token_id", 0)
            .u32("tokenizer.ggml.eos_token_id", 1)
    }

    /// A small complete model: two layers, a bias without a role, globals last.
    #[must_use]
    pub fn small_model(self) -> Self {
        let mut builder = self.model_keys(2);
        for layer in 0..2 {
            for (name, dtype, dims) in [
                ("ffn_down.weight", DType::Q8_0, &[64, 32][..]),
                ("attn_q.weight", DType::Q4_0, &[32, 32]),
                ("attn_q.bias", DType::F32, &[32]),
                ("attn_norm.weight", DType::F32, &[32]),
            ] {
                builder = builder.tensor(&format!("blk.{layer}.{name}"), dtype, dims);
            }
        }
        builder.tensor("token_embd.weight", DType::F16, &[32, 3]).tensor("output_norm.weight", DType::F32, &[32])
    }

    /// The file's bytes.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let alignment = self.alignment.unwrap_or(32) as usize;
        let order = self.data_order.clone().unwrap_or_else(|| (0..self.tensors.len()).collect());
        let sizes: Vec<usize> = self.tensors.iter().map(|(_, id, dims)| size(*id, dims)).collect();
        let mut offsets = vec![0; self.tensors.len()];
        let mut next = 0usize;
        for &at in &order {
            offsets[at] = next;
            next = (next + sizes[at]).next_multiple_of(alignment);
        }

        let mut out = Vec::from(*b"GGUF");
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&(self.tensors.len() as u64).to_le_bytes());
        out.extend_from_slice(&self.key_count.to_le_bytes());
        out.extend_from_slice(&self.pairs);
        for ((name, id, dims), offset) in self.tensors.iter().zip(&offsets) {
            string(&mut out, name);
            out.extend_from_slice(&u32::try_from(dims.len()).expect("few").to_le_bytes());
            for dim in dims {
                out.extend_from_slice(&dim.to_le_bytes());
            }
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&(*offset as u64).to_le_bytes());
        }
        let mut end = out.len();
        let data = out.len().next_multiple_of(alignment);
        for &at in &order {
            if sizes[at] != 0 {
                out.resize(data + offsets[at], self.padding_byte);
                out.extend((0..sizes[at]).map(|i| u8::try_from((i * 7 + at * 31 + 1) % 251).expect("below 251")));
                end = out.len();
            }
        }
        if self.last_padding != NO_PADDING {
            out.resize(end.next_multiple_of(alignment) + self.last_padding, 0);
        }
        out
    }

    /// Writes the file into a folder.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, self.build()).expect("written");
        path
    }
}

fn size(id: u32, dims: &[u64]) -> usize {
    let block = DType::from_id(u16::try_from(id).expect("16 bits")).block().expect("a block type");
    let elements: u64 = dims.iter().product();
    usize::try_from(elements / u64::from(block.elements) * u64::from(block.bytes)).expect("small")
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}
