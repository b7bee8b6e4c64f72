//! Metadata values for display: long strings and arrays shortened unless all of them is wanted.

use super::Key;
use p64_core::metadata::{Metadata, Value};
use serde_json::{Value as Json, json};

const MAX_TEXT: usize = 200;
const MAX_ELEMENTS: usize = 5;

/// The pairs of an area, in file order.
pub fn keys(area: &Metadata<'_>, full: bool) -> Vec<Key> {
    area.iter().map(|(key, value)| describe(key, value, full)).collect()
}

/// One pair.
pub fn describe(key: &str, value: Value<'_>, full: bool) -> Key {
    let key = key.to_owned();
    match value {
        Value::Array(array) => {
            let kind = format!("{}[]", array.kind().name());
            let limit = if full { usize::MAX } else { MAX_ELEMENTS };
            let elements = array.iter().take(limit).map(|element| scalar(element, full).0);
            let shortened = usize::try_from(array.len()).is_ok_and(|len| len > limit);
            Key { key, kind, len: Some(array.len()), value: Json::Array(elements.collect()), shortened }
        }
        value => {
            let kind = value.kind().name().to_owned();
            let (value, shortened) = scalar(value, full);
            Key { key, kind, len: None, value, shortened }
        }
    }
}

fn scalar(value: Value<'_>, full: bool) -> (Json, bool) {
    let json = match value {
        Value::String(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            if !full && text.chars().count() > MAX_TEXT {
                return (json!(text.chars().take(MAX_TEXT).collect::<String>()), true);
            }
            json!(text)
        }
        Value::Bool(value) => json!(value),
        // The shortest decimal that reads back as the f32, not the digits of its f64; JSON has no infinities.
        Value::F32(value) => value.to_string().parse::<f64>().map_or(Json::Null, |value| json!(value)),
        Value::F64(value) => json!(value),
        Value::U64(value) => json!(value),
        other => other.as_i64().map_or(Json::Null, |value| json!(value)),
    };
    (json, false)
}

/// A value in one line of text.
pub fn text(key: &Key) -> String {
    let value = match &key.value {
        Json::String(text) => format!("\"{}\"", crate::output::table::one_line(text)),
        Json::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(ToString::to_string).collect();
            format!("[{}", elements.join(", "))
        }
        other => other.to_string(),
    };
    match (key.len, key.shortened) {
        (Some(len), true) => format!("{value}, …] ({len} elements)"),
        (Some(_), false) => format!("{value}]"),
        (None, true) => format!("{value}…"),
        (None, false) => value,
    }
}
