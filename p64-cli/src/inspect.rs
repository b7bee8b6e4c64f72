//! What `p64 inspect` knows of a file: one description for all formats, printed as text or as JSON.

mod gguf;
mod layers;
mod p64;
mod safetensors;
mod text;
mod values;

pub use gguf::describe as describe_gguf;
pub use p64::describe as describe_p64;
pub use safetensors::describe as describe_safetensors;
pub use text::{Parts, render};

use crate::output::number;
use serde::Serialize;

/// A file, described.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub path: String,
    pub format: &'static str,
    /// `None` for a format without versions.
    pub version: Option<u32>,
    pub bytes: u64,
    /// The header's fields by name.
    pub header: serde_json::Map<String, serde_json::Value>,
    pub model: Model,
    pub space: Space,
    pub padding: Padding,
    pub warnings: Vec<String>,
    pub sections: Vec<Section>,
    /// Of a model in several files, each of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRow>,
    pub types: Vec<TypeShare>,
    pub layers: Vec<Layer>,
    pub tensors: Vec<Tensor>,
    pub metadata: Vec<Key>,
    pub provenance: Vec<Key>,
}

/// What the file says of the model.
#[derive(Debug, Default, Serialize)]
pub struct Model {
    pub name: Option<String>,
    pub architecture: Option<String>,
    pub n_layer: Option<u64>,
    pub n_embd: Option<u64>,
    pub n_head: Option<u64>,
    pub n_kv_head: Option<u64>,
    pub context_length: Option<u64>,
    pub vocabulary: Option<u64>,
    pub parameters: u64,
    pub tokenizer: Option<Tokenizer>,
}

/// The vocabulary in a few numbers.
#[derive(Debug, Serialize)]
pub struct Tokenizer {
    pub model: Option<String>,
    pub pre: Option<String>,
    pub tokens: u64,
    pub merges: u64,
    pub bos: Option<u64>,
    pub eos: Option<u64>,
    pub add_bos: Option<bool>,
}

/// Where the bytes of the file go. The four parts add up to the whole.
#[derive(Debug, Default, Serialize)]
pub struct Space {
    /// Header, tables, tokenizer, checksums, with the padding among them.
    pub front: u64,
    /// The tensors' own bytes.
    pub payload: u64,
    /// Zero bytes before blobs that begin a page.
    pub page_padding: u64,
    /// Zero bytes before other blobs and at the end.
    pub other_padding: u64,
}

/// What alignment costs: the zero bytes between and behind the tensors.
#[derive(Debug, Default, Serialize)]
pub struct Padding {
    pub bytes: u64,
    /// Of the whole file, from 0 to 1.
    pub share: f64,
}

impl Space {
    /// Both together.
    fn plus(&self, other: &Self) -> Self {
        Self {
            front: self.front.saturating_add(other.front),
            payload: self.payload.saturating_add(other.payload),
            page_padding: self.page_padding.saturating_add(other.page_padding),
            other_padding: self.other_padding.saturating_add(other.other_padding),
        }
    }

    fn padding(&self) -> Padding {
        let bytes = self.page_padding.saturating_add(self.other_padding);
        let whole = bytes.saturating_add(self.front).saturating_add(self.payload);
        Padding { bytes, share: number::ratio(bytes, whole) }
    }
}

/// One file of several.
#[derive(Debug, Serialize)]
pub struct FileRow {
    pub path: String,
    pub bytes: u64,
    /// Tensors of the model in it.
    pub tensors: u64,
    /// First and last layer that it holds tensors of.
    pub layers: Option<[u32; 2]>,
}

/// A section of the file.
#[derive(Debug, Serialize)]
pub struct Section {
    pub name: &'static str,
    pub offset: u64,
    pub bytes: u64,
    pub records: Option<u64>,
}

/// The tensors of one element type.
#[derive(Debug, Serialize)]
pub struct TypeShare {
    pub dtype: String,
    pub tensors: u64,
    pub elements: u64,
    pub bytes: u64,
}

/// One layer as a unit to load; `layer` is `None` for what belongs to none.
#[derive(Debug, Serialize)]
pub struct Layer {
    pub layer: Option<u32>,
    pub tensors: u64,
    pub offset: u64,
    /// From the first blob to the end of the last.
    pub span: u64,
    /// The tensors' own bytes.
    pub payload: u64,
    pub roles: Vec<String>,
}

/// One tensor.
#[derive(Debug, Serialize)]
pub struct Tensor {
    pub index: u32,
    pub name: String,
    pub role: Option<String>,
    pub layer: Option<u32>,
    pub dtype: String,
    /// In the order of the format: safetensors lists the contiguous dimension last, the others first.
    pub shape: Vec<u64>,
    /// The file of a model in several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub offset: u64,
    pub bytes: u64,
    pub crc32c: Option<String>,
}

/// A pair of the key-value area; long values are shortened.
#[derive(Debug, Serialize)]
pub struct Key {
    pub key: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// Elements of an array.
    pub len: Option<u64>,
    pub value: serde_json::Value,
    /// Whether `value` is only the beginning.
    pub shortened: bool,
}

/// Sums `tensors` up by element type, the one with the most bytes first.
fn type_shares<T: ToString>(tensors: impl Iterator<Item = (T, u64, u64)>) -> Vec<TypeShare> {
    let mut sums = std::collections::BTreeMap::<String, TypeShare>::new();
    for (dtype, elements, bytes) in tensors {
        let dtype = dtype.to_string();
        let empty = || TypeShare { dtype: dtype.clone(), tensors: 0, elements: 0, bytes: 0 };
        let share = sums.entry(dtype.clone()).or_insert_with(empty);
        share.tensors += 1;
        share.elements = share.elements.saturating_add(elements);
        share.bytes = share.bytes.saturating_add(bytes);
    }
    let mut shares: Vec<TypeShare> = sums.into_values().collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.bytes));
    shares
}
