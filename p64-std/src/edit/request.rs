//! What is to change.

use super::encoded::Kind;
use crate::error::{Error, Result};
use serde_json::Value as Json;

/// Changes in the order in which they are made.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    pub(super) changes: Vec<Change>,
    /// Tensors: old name, new name. All at once, so that two can change places.
    pub(super) renames: Vec<(String, String)>,
}

/// One key's change.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub key: String,
    pub to: To,
}

#[derive(Clone, Debug)]
pub(super) enum To {
    /// Text, in the type that is named or that the key has.
    Text(Option<Kind>, String),
    /// JSON, in the type that the key has or the one that fits.
    Json(Json),
    /// No value: the key goes, and must be there.
    Nothing,
}

impl Edits {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is asked for.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.renames.is_empty()
    }

    /// `KEY=VALUE`, the value in the type that the key has, or `KEY:TYPE=VALUE`, which also makes a new key. Types are
    /// those of GGUF (`u32`, `f32`, `bool`, `string`...), `[TYPE]` for arrays, whose value is written as JSON.
    ///
    /// # Errors
    /// [`Error::Usage`] for text without `=` or without a key.
    pub fn set(&mut self, assignment: &str) -> Result<&mut Self> {
        let usage = |reason| Error::Usage { reason: format!("{assignment:?}: {reason}") };
        let (key, value) = assignment.split_once('=').ok_or_else(|| usage("write KEY=VALUE or KEY:TYPE=VALUE"))?;
        let (key, kind) = match key.rsplit_once(':').map(|(key, name)| (key, Kind::from_name(name))) {
            Some((key, Some(kind))) => (key, Some(kind)),
            Some((_, None)) => {
                return Err(usage("this type is not known; types are u8 ... i64, f32, f64, bool, string, [TYPE]"));
            }
            None => (key, None),
        };
        if key.is_empty() {
            return Err(usage("the key is missing"));
        }
        Ok(self.push(key, To::Text(kind, value.to_owned())))
    }

    /// Text under a key, new or not.
    pub fn set_text(&mut self, key: &str, text: &str) -> &mut Self {
        self.push(key, To::Text(Kind::from_name("string"), text.to_owned()))
    }

    /// An object's keys and values; `null` drops a key. A key keeps its type, a new one takes the type that fits its value.
    ///
    /// # Errors
    /// [`Error::Usage`] for what is no JSON object.
    pub fn set_json(&mut self, json: &str) -> Result<&mut Self> {
        let object = serde_json::from_str(json).map_err(|error| format!("no JSON: {error}"));
        let object = object.and_then(|json| match json {
            Json::Object(object) => Ok(object),
            _ => Err("the JSON is no object of keys and values".to_owned()),
        });
        for (key, value) in object.map_err(|reason| Error::Usage { reason })? {
            self.push(&key, if value.is_null() { To::Nothing } else { To::Json(value) });
        }
        Ok(self)
    }

    /// Drops a key.
    pub fn unset(&mut self, key: &str) -> &mut Self {
        self.push(key, To::Nothing)
    }

    /// `OLD=NEW`: the tensor gets another name, and the role that goes with it.
    ///
    /// # Errors
    /// [`Error::Usage`] for text that is not of this form.
    pub fn rename(&mut self, names: &str) -> Result<&mut Self> {
        match names.split_once('=') {
            Some((old, new)) if !old.is_empty() && !new.is_empty() => {
                self.renames.push((old.to_owned(), new.to_owned()));
                Ok(self)
            }
            _ => Err(Error::Usage { reason: format!("{names:?}: write OLD=NEW") }),
        }
    }

    fn push(&mut self, key: &str, to: To) -> &mut Self {
        self.changes.push(Change { key: key.to_owned(), to });
        self
    }
}
