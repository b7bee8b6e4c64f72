//! JSON files of a folder.

use crate::error::{Error, Result};
use crate::files;
use serde_json::{Map, Value};
use std::path::Path;

/// Bytes of the largest file that is read; the tokenizers of public models are a tenth of it.
const MAX_FILE: u64 = 1 << 28;
/// Characters of a value in a message.
const MAX_SHOWN: usize = 60;

/// The text of a file of at most 256 MiB.
pub(super) fn text(path: &Path) -> Result<String> {
    let bytes = bytes(path)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::Refused { path: path.to_owned(), reason: format!("it is not UTF-8 from byte {at} on") }
    })
}

/// The bytes of a file of at most 256 MiB.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>> {
    let (file, len) = files::open(path)?;
    if len > MAX_FILE {
        let reason = format!("it has more than {MAX_FILE} bytes; nothing of that size is expected under this name");
        return Err(Error::Refused { path: path.to_owned(), reason });
    }
    let mut bytes = Vec::new();
    files::read_on(&file, path, &mut bytes, len)?;
    Ok(bytes)
}

/// Reads the JSON object that a file holds.
pub(super) fn object(path: &Path, text: &str) -> Result<Map<String, Value>> {
    serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))
        .map_err(|error| Error::Refused { path: path.to_owned(), reason: format!("it is no JSON object: {error}") })
}

/// The object in a file, `None` where there is no such file.
pub(super) fn object_if(path: &Path) -> Result<Option<Map<String, Value>>> {
    if !path.is_file() {
        return Ok(None);
    }
    object(path, &text(path)?).map(Some)
}

/// A value for a message, cut where it is long.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

/// A name from a file for a message: quoted, without control characters, cut where it is long.
pub(super) fn quoted(name: &str) -> String {
    let mut out = String::from("`");
    for (i, c) in name.chars().enumerate() {
        if i == 2 * MAX_SHOWN {
            out.push_str("...");
            break;
        }
        out.extend(c.escape_debug());
    }
    out.push('`');
    out
}

/// Whether a value says nothing: null, no, zero, or an empty text, list or object.
pub(super) fn is_neutral(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
    }
}
