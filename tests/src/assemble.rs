//! Writes P64 files from the tables of `docs/spec/p64.md`, byte by byte.

use crate::mutate::{at, put_u16, put_u32, refix};
use p64_core::hash::fnv1a64;

/// One tensor to be written.
#[derive(Clone, Debug)]
pub struct TensorSpec {
    /// Name; may be anything, so that bad names can be made.
    pub name: Vec<u8>,
    /// Role id.
    pub role: u16,
    /// Element type code.
    pub dtype: u16,
    /// Layer, or `n_layer`.
    pub layer: u32,
    /// Shape in GGML order.
    pub dims: Vec<u32>,
    /// Payload.
    pub bytes: Vec<u8>,
    /// Offset in the source's data region.
    pub source_offset: u64,
}

impl TensorSpec {
    /// A tensor whose payload is a pattern of `size` bytes.
    #[must_use]
    pub fn new(name: &str, role: u16, dtype: u16, layer: u32, dims: &[u32], size: usize) -> Self {
        let seed = fnv1a64(name.as_bytes()).to_le_bytes();
        // Small values: as f16 scales and f32 they are finite.
        let bytes = (0..size).map(|i| seed[i % 8].wrapping_add(u8::try_from(i % 59).expect("small")) & 0x3b).collect();
        Self { name: name.into(), role, dtype, layer, dims: dims.to_vec(), bytes, source_offset: 0 }
    }
}

/// Everything a file is made of.
#[derive(Clone, Debug)]
pub struct Assembly {
    /// Header flags.
    pub flags: u16,
    /// Blob alignment.
    pub page_size: u32,
    /// `n_layer`, `n_embd`, `n_head`, `n_kv_head`, `vocab_size`.
    pub hparams: [u32; 5],
    /// The tensors in file order.
    pub tensors: Vec<TensorSpec>,
    /// The Q42T payload, without padding.
    pub tokenizer: Vec<u8>,
}

const PACK: u16 = 1 << 5;
const SCHEDULE: u16 = 1 << 6;

fn pad(file: &mut Vec<u8>, alignment: usize) {
    file.resize(file.len().next_multiple_of(alignment), 0);
}

fn word(len: usize) -> u32 {
    u32::try_from(len).expect("test files are small")
}

impl Assembly {
    /// A small complete model's worth of tensors: two layers, globals, unknown roles, metadata and provenance, a
    /// tokenizer of four tokens. Packed, layer-major, scheduled. 4.9 KiB.
    #[must_use]
    pub fn small() -> Self {
        let mut tensors = Vec::new();
        for layer in 0..2 {
            let name = |suffix: &str| format!("blk.{layer}.{suffix}.weight");
            tensors.push(TensorSpec::new(&name("attn_norm"), 7, 0, layer, &[32], 128));
            tensors.push(TensorSpec::new(&name("attn_q"), 2, 8, layer, &[32, 3], 102));
            tensors.push(TensorSpec::new(&name("ffn_down"), 6, 2, layer, &[64, 2], 72));
        }
        tensors.push(TensorSpec::new("token_embd.weight", 9, 1, 2, &[32, 4], 256));
        tensors.push(TensorSpec::new("output_norm.weight", 11, 0, 2, &[32], 128));
        tensors.push(TensorSpec::new("blk.0.attn_q.bias", 0xfffe, 0, 2, &[3], 12));
        tensors.push(TensorSpec::new("empty", 0xfffe, 0, 2, &[0, 5], 0));
        for (tensor, offset) in tensors.iter_mut().zip((0..).step_by(128)) {
            tensor.source_offset = offset;
        }
        for (name, key) in [("p64.metadata", "general.architecture"), ("p64.provenance", "p64.profile")] {
            let bytes = string_area(&[(key, "test")]);
            let mut tensor = TensorSpec::new(name, 0xfffe, 24, 2, &[word(bytes.len())], 0);
            tensor.bytes = bytes;
            tensor.source_offset = u64::MAX;
            tensors.push(tensor);
        }
        let tokenizer = tokenizer(&["<s>", "a", "b", "ab"], &[("a", "b")], "gpt-2", 0, 0);
        Self { flags: 0b111_0001, page_size: 256, hparams: [2, 32, 3, 3, 4], tensors, tokenizer }
    }

    /// The file.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let [n_layer, ..] = self.hparams;
        let mut file = vec![0u8; 64];
        file[..4].copy_from_slice(b"p64\0");
        put_u16(&mut file, at::VERSION, 4);
        put_u16(&mut file, at::FLAGS, self.flags);
        put_u32(&mut file, at::HPARAMS, 64);
        put_u32(&mut file, at::TENSOR_COUNT, word(self.tensors.len()));
        put_u32(&mut file, at::PAGE_SIZE, self.page_size);

        for value in self.hparams {
            file.extend(value.to_le_bytes());
        }
        file.extend(10_000f32.to_le_bytes());
        file.extend(1f32.to_le_bytes());
        file.resize(128, 0);

        let schedule = self.flags & SCHEDULE != 0;
        if schedule {
            put_u32(&mut file, at::ROLE_TABLE, 128);
            file.resize(128 + 64 * n_layer as usize, 0);
            (0..n_layer).for_each(|layer| put_u32(&mut file, 128 + 64 * layer as usize, layer));
        }
        let table = file.len();
        put_u32(&mut file, at::TENSOR_TABLE, word(table));
        file.resize(table + 64 * self.tensors.len(), 0);

        let strings = file.len();
        put_u32(&mut file, at::STRINGS, word(strings));
        file.push(0);
        for (index, tensor) in self.tensors.iter().enumerate() {
            let name_offset = word(file.len() - strings);
            put_u32(&mut file, table + 64 * index, name_offset);
            file.extend(&tensor.name);
            file.push(0);
        }
        pad(&mut file, 64);

        let manifold = word(file.len());
        put_u32(&mut file, at::MANIFOLD, manifold);
        for layer in 0..=n_layer {
            file.extend(coordinates(layer, n_layer));
        }
        let tokenizer = word(file.len());
        put_u32(&mut file, at::TOKENIZER, tokenizer);
        file.extend(&self.tokenizer);
        pad(&mut file, 64);
        let checksums = word(file.len());
        put_u32(&mut file, at::CHECKSUMS, checksums);
        file.resize(file.len() + 4 * (self.tensors.len() + 1), 0);
        pad(&mut file, if self.tensors.is_empty() { 64 } else { self.page_size as usize });

        let mut previous = None;
        for (index, tensor) in self.tensors.iter().enumerate() {
            let packed = self.flags & PACK != 0 && previous == Some(tensor.layer);
            pad(&mut file, if packed { 256 } else { self.page_size as usize });
            previous = Some(tensor.layer);
            let start = word(file.len());
            write_entry(&mut file[table + 64 * index..][..64], tensor, start);
            if schedule && tensor.layer < n_layer {
                extend_schedule(&mut file[128 + 64 * tensor.layer as usize..][..64], tensor, start);
            }
            file.extend(&tensor.bytes);
        }
        pad(&mut file, 64);
        refix(&mut file);
        file
    }
}

fn write_entry(record: &mut [u8], tensor: &TensorSpec, start: u32) {
    put_u16(record, 4, tensor.role);
    put_u16(record, 6, tensor.dtype);
    put_u32(record, 8, tensor.layer);
    put_u32(record, 12, word(tensor.dims.len()));
    for (i, dim) in tensor.dims.iter().enumerate().take(4) {
        put_u32(record, 16 + 4 * i, *dim);
    }
    put_u32(record, 32, start);
    put_u32(record, 36, word(tensor.bytes.len()));
    record[40..48].copy_from_slice(&tensor.source_offset.to_le_bytes());
    record[48..56].copy_from_slice(&fnv1a64(&tensor.name).to_le_bytes());
}

fn extend_schedule(record: &mut [u8], tensor: &TensorSpec, start: u32) {
    let count = u16::from_le_bytes([record[12], record[13]]);
    let mask = u16::from_le_bytes([record[14], record[15]]);
    if count == 0 {
        put_u32(record, 4, start);
    }
    put_u32(record, 8, start + word(tensor.bytes.len()));
    put_u16(record, 12, count + 1);
    put_u16(record, 14, mask | if tensor.role < 16 { 1 << tensor.role } else { 0 });
}

/// The canonical projection of spec §9.
fn coordinates(layer: u32, n_layer: u32) -> [u8; 64] {
    use std::f32::consts::{PI, TAU};
    #[expect(clippy::cast_precision_loss, reason = "test files have few layers")]
    let depth = layer as f32 / n_layer.max(1) as f32;
    let values = [depth, 1.0 - depth, 1.0, (depth * PI).sin(), 0.1, 0.5, (depth * TAU).cos(), 1.0, 0.8, 0.0];
    let mut record = [0; 64];
    for (slot, value) in record.chunks_exact_mut(4).zip(values) {
        slot.copy_from_slice(&value.to_le_bytes());
    }
    record
}

/// A key-value area of strings (spec §17).
#[must_use]
pub fn string_area(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = (pairs.len() as u64).to_le_bytes().to_vec();
    for (key, value) in pairs {
        out.extend((key.len() as u64).to_le_bytes());
        out.extend(key.as_bytes());
        out.extend(8u32.to_le_bytes());
        out.extend((value.len() as u64).to_le_bytes());
        out.extend(value.as_bytes());
    }
    out
}

/// A Q42T section of version 1 (spec §10), without padding.
#[must_use]
pub fn tokenizer(tokens: &[&str], merges: &[(&str, &str)], pre: &str, bos: u32, eos: u32) -> Vec<u8> {
    fn string(out: &mut Vec<u8>, text: &str) {
        out.extend(word(text.len()).to_le_bytes());
        out.extend(text.as_bytes());
    }
    let mut out = b"Q42T\x01\0\0\0".to_vec();
    out.extend(bos.to_le_bytes());
    out.extend(eos.to_le_bytes());
    out.extend([0; 4]);
    string(&mut out, pre);
    out.extend(word(tokens.len()).to_le_bytes());
    for token in tokens {
        string(&mut out, token);
    }
    out.extend(word(merges.len()).to_le_bytes());
    for (left, right) in merges {
        string(&mut out, left);
        string(&mut out, right);
    }
    out
}
