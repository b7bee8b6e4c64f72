//! Values of keys, short enough for a line.

use p64_core::metadata::Value;
use serde_json::{Value as Json, json};

const MAX_TEXT: usize = 120;

/// A value as JSON; of an array only its kind and length.
pub fn json(value: Value<'_>) -> Json {
    match value {
        Value::String(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            let short: String = text.chars().take(MAX_TEXT).collect();
            if short.len() < text.len() { json!(format!("{short}…")) } else { json!(text) }
        }
        Value::Array(array) => json!({ "kind": array.kind().name(), "len": array.len() }),
        Value::Bool(value) => json!(value),
        // The shortest decimal that reads back as the f32, not the digits of its f64; JSON has no infinities.
        Value::F32(value) => value.to_string().parse::<f64>().map_or(Json::Null, |value| json!(value)),
        Value::F64(value) => json!(value),
        Value::U64(value) => json!(value),
        other => other.as_i64().map_or(Json::Null, |value| json!(value)),
    }
}

/// A value as text.
pub fn text(value: Option<Value<'_>>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::Array(array)) => format!("{}[{}]", array.kind().name(), array.len()),
        Some(Value::F32(value)) => value.to_string(),
        Some(Value::F64(value)) => value.to_string(),
        // JSON's escapes keep control characters off the terminal.
        Some(value) => json(value).to_string(),
    }
}
