//! The header of a safetensors file that is to be written.

use super::dtype::ElementType;
use super::raw::to_json;

/// A tensor as a header is to describe it.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    /// The name; the caller gives each once.
    pub name: &'a str,
    /// The element type.
    pub dtype: ElementType,
    /// The shape, the contiguous dimension last; empty for a scalar.
    pub shape: &'a [u64],
    /// Bytes, as shape and type make them.
    pub len: u64,
}

/// Length and text of a header whose tensors follow each other as they are listed; spaces fill it up to a multiple of
/// eight bytes. The library that defines the format writes the same bytes for the same tensors in the same order.
#[must_use]
pub fn encode_header<'a>(
    tensors: impl Iterator<Item = Described<'a>>,
    metadata: Option<&[(String, String)]>,
) -> Vec<u8> {
    let mut text = String::from("{");
    if let Some(pairs) = metadata {
        text.push_str("\"__metadata__\":");
        text.push_str(&to_json(pairs));
    }
    let mut at = 0u64;
    for Described { name, dtype, shape, len } in tensors {
        if text.len() > 1 {
            text.push(',');
        }
        let (name, end) = (serde_json::Value::from(name), at.saturating_add(len));
        let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
        let shape = shape.join(",");
        text.push_str(&format!(r#"{name}:{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[{at},{end}]}}"#));
        at = end;
    }
    text.push('}');
    while !text.len().is_multiple_of(8) {
        text.push(' ');
    }
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}
