//! What a folder has of a tokenizer.

use crate::error::{Error, Result};
use crate::hf::config::Config;
use crate::hf::json;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The files, read.
#[derive(Debug)]
pub(super) struct Files<'c> {
    pub(super) folder: PathBuf,
    pub(super) model: &'c Config,
    pub(super) json: Option<TokenizerJson>,
    /// `tokenizer_config.json`.
    pub(super) config: Option<Map<String, Value>>,
    /// `tokenizer.model`.
    pub(super) sentence_piece: Option<Vec<u8>>,
    /// `added_tokens.json`: ids by text.
    pub(super) added: Map<String, Value>,
    /// `generation_config.json`.
    pub(super) generation: Map<String, Value>,
}

impl<'c> Files<'c> {
    pub(super) fn open(folder: &Path, model: &'c Config) -> Result<Self> {
        let path = folder.join("tokenizer.json");
        let json = json::object_if(&path)?.map(|root| TokenizerJson { path, root });
        let path = folder.join("tokenizer.model");
        let sentence_piece = if path.is_file() { Some(json::bytes(&path)?) } else { None };
        // Llama 3 has a file of that name in another format beside its tokenizer.json.
        let sentence_piece = sentence_piece.filter(|bytes| json.is_none() || bytes.first() == Some(&0x0a));
        Ok(Self {
            json,
            config: json::object_if(&folder.join("tokenizer_config.json"))?,
            sentence_piece,
            added: json::object_if(&folder.join("added_tokens.json"))?.unwrap_or_default(),
            generation: json::object_if(&folder.join("generation_config.json"))?.unwrap_or_default(),
            folder: folder.to_owned(),
            model,
        })
    }

    /// A value of `tokenizer_config.json`.
    pub(super) fn config(&self, key: &str) -> Option<&Value> {
        self.config.as_ref()?.get(key).filter(|value| !value.is_null())
    }

    /// The text of a special token that `tokenizer_config.json` names.
    pub(super) fn named(&self, key: &str) -> Option<&str> {
        content(self.config(key)?)
    }

    /// Whether `tokenizer_config.json` names the text as a special token.
    pub(super) fn is_named_special(&self, text: &str) -> bool {
        const ONE: [&str; 7] =
            ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];
        const SEVERAL: [&str; 2] = ["additional_special_tokens", "extra_special_tokens"];
        let in_list = |key: &&str| match self.config(key) {
            Some(Value::Array(list)) => list.iter().any(|token| content(token) == Some(text)),
            Some(Value::Object(map)) => map.values().any(|token| content(token) == Some(text)),
            _ => false,
        };
        ONE.iter().any(|key| self.named(key) == Some(text)) || SEVERAL.iter().any(in_list)
    }
}

/// A token is a text, or an object with one.
fn content(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content")?.as_str())
}

/// The kinds of `tokenizer.json` that are understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Byte-pair encoding over GPT-2's alphabet of bytes.
    ByteLevel,
    /// SentencePiece's pieces, bytes where there is none.
    Pieces,
}

/// `tokenizer.json`.
#[derive(Debug)]
pub(super) struct TokenizerJson {
    pub(super) path: PathBuf,
    root: Map<String, Value>,
}

/// A token that was added to a vocabulary, or that is marked in one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Added {
    pub(super) id: u32,
    pub(super) text: String,
    pub(super) special: bool,
}

impl TokenizerJson {
    pub(super) fn refused(&self, reason: impl Into<String>) -> Error {
        Error::refused(&self.path, reason)
    }

    /// A part of the pipeline, `None` for null.
    pub(super) fn part(&self, name: &str) -> Option<&Value> {
        self.root.get(name).filter(|value| !value.is_null())
    }

    /// A member of `model`.
    pub(super) fn model(&self, key: &str) -> Option<&Value> {
        self.root.get("model")?.get(key).filter(|value| !value.is_null())
    }

    /// A flag of `model`.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.model(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// What kind of tokenizer it is.
    ///
    /// # Errors
    /// Another model than byte-pair encoding, or one that is changed by what is not understood.
    pub(super) fn kind(&self) -> Result<Kind> {
        let model = self.model("type").and_then(Value::as_str);
        if model.is_some_and(|model| model != "BPE") || (model.is_none() && self.model("merges").is_none()) {
            let model = json::quoted(model.unwrap_or(""));
            return Err(self.refused(format!("model.type is {model}; only BPE is understood here")));
        }
        for key in ["dropout", "continuing_subword_prefix", "end_of_word_suffix"] {
            if let Some(value) = self.model(key).filter(|value| !json::is_neutral(value)) {
                return Err(self.refused(format!("model.{key} is {}, which is not understood", json::shown(value))));
            }
        }
        Ok(if self.flag("byte_fallback") { Kind::Pieces } else { Kind::ByteLevel })
    }

    /// The vocabulary: texts and ids, in the file's order.
    pub(super) fn vocabulary(&self) -> Result<Vec<(&str, u32)>> {
        let map = self.model("vocab").and_then(Value::as_object);
        let map = map.ok_or_else(|| self.refused("model.vocab is missing or no object"))?;
        let token = |(text, id): (&'_ String, &Value)| -> Result<u32> {
            let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
            id.ok_or_else(|| self.refused(format!("model.vocab: the id of {} is no number", json::quoted(text))))
        };
        map.iter().map(|pair| Ok((pair.0.as_str(), token(pair)?))).collect()
    }

    /// The merges: pairs of texts, in the order of their ranks.
    pub(super) fn merges(&self) -> Result<Vec<(&str, &str)>> {
        let Some(Value::Array(list)) = self.model("merges") else {
            return Err(self.refused("model.merges is missing or no list"));
        };
        list.iter()
            .enumerate()
            .map(|(rank, value)| {
                let halves = match value {
                    Value::Array(pair) => match pair.as_slice() {
                        [Value::String(left), Value::String(right)] => Some((left.as_str(), right.as_str())),
                        _ => None,
                    },
                    Value::String(text) => text.split_once(' '),
                    _ => None,
                };
                halves.ok_or_else(|| self.refused(format!("model.merges: element {rank} is no pair of texts")))
            })
            .collect()
    }

    /// The added tokens, in the file's order.
    pub(super) fn added(&self) -> Result<Vec<Added>> {
        let Some(list) = self.part("added_tokens") else { return Ok(Vec::new()) };
        let wrong = || self.refused("added_tokens is no list of tokens");
        let list = list.as_array().ok_or_else(wrong)?;
        list.iter()
            .map(|token| {
                let id = token.get("id").and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
                let text = token.get("content").and_then(Value::as_str);
                let special = token.get("special").and_then(Value::as_bool).unwrap_or(false);
                let (Some(id), Some(text)) = (id, text) else { return Err(wrong()) };
                Ok(Added { id, text: text.to_owned(), special })
            })
            .collect()
    }

    /// The steps of a part that may be a sequence: its members under `list`, or the part itself.
    pub(super) fn steps(&self, part: &str, list: &str) -> Vec<&Value> {
        let Some(value) = self.part(part) else { return Vec::new() };
        match (kind_of(value), value.get(list).and_then(Value::as_array)) {
            (Some("Sequence"), Some(steps)) => steps.iter().collect(),
            _ => vec![value],
        }
    }
}

/// The `type` of a step.
pub(super) fn kind_of(step: &Value) -> Option<&str> {
    step.get("type")?.as_str()
}
