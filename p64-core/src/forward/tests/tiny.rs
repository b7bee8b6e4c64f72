//! Models of a few hundred weights, in every way but size like real ones.

use crate::forward::{Layer, Model, Weight, WeightSource};
use crate::metadata::{Metadata, ValueKind};
use crate::{DType, Result, Role, Shape};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// A number key of a test's metadata.
#[derive(Clone, Copy)]
pub enum Value<'v> {
    U32(u32),
    F32(f32),
    Bool(bool),
    Str(&'v str),
    /// An array of u32.
    List(&'v [u32]),
}

/// The bytes of a key-value area without its count. Keys without a dot are put under `<architecture>.`.
pub fn pairs(architecture: &str, keys: &[(&str, Value<'_>)]) -> (Vec<u8>, u64) {
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    };
    let mut pair = |key: &str, value: Value<'_>| {
        text(&mut bytes, key);
        let kind = match value {
            Value::U32(_) => ValueKind::U32,
            Value::F32(_) => ValueKind::F32,
            Value::Bool(_) => ValueKind::Bool,
            Value::Str(_) => ValueKind::String,
            Value::List(_) => ValueKind::Array,
        };
        bytes.extend(kind.id().to_le_bytes());
        match value {
            Value::U32(v) => bytes.extend(v.to_le_bytes()),
            Value::F32(v) => bytes.extend(v.to_le_bytes()),
            Value::Bool(v) => bytes.push(u8::from(v)),
            Value::Str(v) => text(&mut bytes, v),
            Value::List(v) => {
                bytes.extend(ValueKind::U32.id().to_le_bytes());
                bytes.extend((v.len() as u64).to_le_bytes());
                v.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
            }
        }
    };
    pair("general.architecture", Value::Str(architecture));
    for (key, value) in keys {
        pair(&format!("{architecture}.{key}"), *value);
    }
    (bytes, keys.len() as u64 + 1)
}

/// Metadata over the bytes of [`pairs`].
pub fn metadata((bytes, count): &(Vec<u8>, u64)) -> Metadata<'_> {
    Metadata::parse_pairs(bytes, *count, 0).expect("well-formed").0
}

/// Heads in groups of two, a rotary embedding over half a head, linear scaling, frequency divisors, an output of its own.
pub const LLAMA: &[(&str, Value<'_>)] = &[
    ("block_count", Value::U32(2)),
    ("context_length", Value::U32(64)),
    ("embedding_length", Value::U32(16)),
    ("feed_forward_length", Value::U32(24)),
    ("attention.head_count", Value::U32(4)),
    ("attention.head_count_kv", Value::U32(2)),
    ("attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
    ("rope.dimension_count", Value::U32(2)),
    ("rope.freq_base", Value::F32(100.0)),
    ("rope.scaling.type", Value::Str("linear")),
    ("rope.scaling.factor", Value::F32(2.0)),
];

/// One key head for all, heads longer than their share, a window of three positions in every layer but the second.
pub const GEMMA3: &[(&str, Value<'_>)] = &[
    ("block_count", Value::U32(3)),
    ("context_length", Value::U32(64)),
    ("embedding_length", Value::U32(16)),
    ("feed_forward_length", Value::U32(24)),
    ("attention.head_count", Value::U32(4)),
    ("attention.head_count_kv", Value::U32(1)),
    ("attention.key_length", Value::U32(6)),
    ("attention.value_length", Value::U32(6)),
    ("attention.layer_norm_rms_epsilon", Value::F32(1e-6)),
    ("attention.sliding_window", Value::U32(3)),
    ("attention.sliding_window_pattern", Value::U32(2)),
    ("rope.freq_base", Value::F32(1000.0)),
    ("rope.freq_base_swa", Value::F32(10.0)),
];

pub const N_VOCAB: usize = 11;

/// Tensors of F32.
#[derive(Clone)]
pub struct Tiny {
    pub tensors: Vec<(String, Vec<u32>, Vec<f32>)>,
    bytes: Vec<Vec<u8>>,
}

impl Tiny {
    /// Two layers for [`LLAMA`].
    pub fn llama() -> Self {
        let mut tensors = std::vec![("token_embd.weight", 16, N_VOCAB), ("output.weight", 16, N_VOCAB)];
        tensors.extend([("output_norm.weight", 16, 1), ("rope_freqs.weight", 1, 1)]);
        let layer = [
            ("attn_norm", 16, 1),
            ("attn_q", 16, 16),
            ("attn_k", 16, 8),
            ("attn_v", 16, 8),
            ("attn_output", 16, 16),
            ("ffn_norm", 16, 1),
            ("ffn_gate", 16, 24),
            ("ffn_up", 16, 24),
            ("ffn_down", 24, 16),
        ];
        Self::new(&tensors, &layer, 2)
    }

    /// Three layers for [`GEMMA3`]; the output is the token embedding.
    pub fn gemma3() -> Self {
        let layer = [
            ("attn_norm", 16, 1),
            ("attn_q", 16, 24),
            ("attn_k", 16, 6),
            ("attn_v", 16, 6),
            ("attn_q_norm", 6, 1),
            ("attn_k_norm", 6, 1),
            ("attn_output", 24, 16),
            ("post_attention_norm", 16, 1),
            ("ffn_norm", 16, 1),
            ("ffn_gate", 16, 24),
            ("ffn_up", 16, 24),
            ("ffn_down", 24, 16),
            ("post_ffw_norm", 16, 1),
        ];
        Self::new(&[("token_embd.weight", 16, N_VOCAB), ("output_norm.weight", 16, 1)], &layer, 3)
    }

    /// No tensors at all.
    pub fn empty() -> Self {
        Self { tensors: Vec::new(), bytes: Vec::new() }
    }

    fn new(globals: &[(&str, u32, usize)], layer: &[(&str, u32, usize)], layers: usize) -> Self {
        let mut this = Self::empty();
        for (name, cols, rows) in globals {
            this.add(name, *cols, *rows);
        }
        for index in 0..layers {
            for (name, cols, rows) in layer {
                this.add(&format!("blk.{index}.{name}.weight"), *cols, *rows);
            }
        }
        this
    }

    /// Only these tensors.
    pub fn of(tensors: &[(&str, u32, usize)]) -> Self {
        Self::new(tensors, &[], 0)
    }

    /// Makes a tensor's values twice as large.
    pub fn double(&mut self, index: usize) {
        let (name, _, values) = &self.tensors[index];
        let (name, values) = (name.clone(), values.clone());
        self.set(&name, |index| values[index] * 2.0);
    }

    /// Adds a tensor: norms and divisors around 1, others around 0.
    pub fn add(&mut self, name: &str, cols: u32, rows: usize) {
        let dims = [cols as usize, rows];
        self.add_shape(name, if rows == 1 { &dims[..1] } else { &dims });
    }

    /// [`Tiny::add`] in any shape.
    pub fn add_shape(&mut self, name: &str, dims: &[usize]) {
        let mut state = crate::hash::fnv1a64(name.as_bytes());
        let middle = if dims.len() == 1 { 1.0 } else { 0.0 };
        let values = (0..dims.iter().product()).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            middle + ((state >> 40) as f32 / (1u64 << 24) as f32 - 0.5) * 0.9
        });
        let values: Vec<f32> = values.collect();
        let dims = dims.iter().map(|dim| *dim as u32).collect();
        self.bytes.push(values.iter().flat_map(|value| value.to_le_bytes()).collect());
        self.tensors.push((name.to_string(), dims, values));
    }

    /// Replaces a tensor's values by those of their places.
    pub fn set(&mut self, name: &str, value: impl Fn(usize) -> f32) {
        let index = self.tensors.iter().position(|tensor| tensor.0 == name).expect("it is there");
        let values: Vec<f32> = (0..self.tensors[index].2.len()).map(value).collect();
        self.bytes[index] = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensors[index].2 = values;
    }

    /// Takes a tensor out.
    pub fn remove(&mut self, name: &str) {
        let index = self.tensors.iter().position(|tensor| tensor.0 == name).expect("it is there");
        self.tensors.remove(index);
        self.bytes.remove(index);
    }

    pub fn values(&self, name: &str) -> Option<Vec<f64>> {
        let tensor = self.tensors.iter().find(|tensor| tensor.0 == name)?;
        Some(tensor.2.iter().map(|value| f64::from(*value)).collect())
    }

    pub fn model(&self, metadata: &Metadata<'_>) -> Result<Model<'_, Vec<Layer<'_>>>> {
        let config = crate::forward::Config::read(metadata)?;
        let layers = (0..config.n_layer()).map(|index| Layer::bind(&self, &config, index));
        Model::new(&self, config, layers.collect::<Result<_>>()?)
    }
}

impl<'w> WeightSource<'w> for &'w Tiny {
    fn by_name(&self, name: &str) -> Result<Option<Weight<'w>>> {
        let Some(at) = self.tensors.iter().position(|tensor| tensor.0 == name) else { return Ok(None) };
        let shape = Shape::new(&self.tensors[at].1).expect("rank 1 or 2");
        Ok(Some(Weight { index: at as u32, dtype: DType::F32, shape, bytes: &self.bytes[at] }))
    }

    fn by_role(&self, role: Role, layer: Option<u32>) -> Result<Option<Weight<'w>>> {
        match layer {
            Some(layer) => self.by_name(&format!("blk.{layer}.{}", role.gguf_name())),
            None => self.by_name(role.gguf_name()),
        }
    }

    fn each(&self, visit: &mut dyn FnMut(u32, &str, Role) -> Result<()>) -> Result<()> {
        (0..).zip(&self.tensors).try_for_each(|(index, tensor)| {
            visit(index, &tensor.0, Role::from_gguf_name(&tensor.0).map_or(Role::UNKNOWN, |(role, _)| role))
        })
    }
}
