//! `config.json`: what transformers knows of a model.
//!
//! Every key that is asked for is remembered. What nobody asked for and what is not known to leave the results alone is an
//! error ([`Config::finish`]): a model with a key that this reader does not understand may be another model.

use super::json;
use crate::error::{Error, Result};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Keys that change how a model is trained, stored or sampled, not what it computes.
const WITHOUT_EFFECT: &[&str] = &[
    "architectures",
    "model_type",
    "dtype",
    "transformers_version",
    "use_cache",
    "pretraining_tp",
    "auto_map",
    "return_dict",
    "id2label",
    "label2id",
    "chunk_size_feed_forward",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "output_router_logits",
    "is_llama_config",
    "task_specific_params",
    "gradient_checkpointing",
    "reorder_and_upcast_attn",
    "max_window_layers",
    "temperature",
    "do_sample",
    "max_length",
    "num_beams",
    "repetition_penalty",
    "length_penalty",
    "num_return_sequences",
    "diversity_penalty",
    "typical_p",
    "num_beam_groups",
    "encoder_no_repeat_ngram_size",
    "top_k",
    "top_p",
    "cache_implementation",
    "use_flash_attn",
    "vision_config",
    "boi_token_index",
    "eoi_token_index",
    "image_token_index",
    "mm_tokens_per_image",
];

/// Beginnings and ends of such keys.
const WITHOUT_EFFECT_AT: [&[&str]; 2] = [
    &["_name_", "torch_", "output_", "summary_", "unsloth_", "_attn_implementation", "_commit"],
    &["_token_id", "dropout", "_pdrop", "initializer_range", "dropout_prob", "_token_index"],
];

/// The configuration of a text model. Keys of a nested `text_config` stand for those of the whole.
#[derive(Debug)]
pub(super) struct Config {
    path: PathBuf,
    text: String,
    values: Map<String, Value>,
    defaults: &'static [(&'static str, f64)],
    asked: RefCell<BTreeSet<String>>,
    /// What was read and left out knowingly.
    left_out: RefCell<Vec<String>>,
}

impl Config {
    /// Reads `config.json` of a folder.
    ///
    /// # Errors
    /// No such file, no JSON object, or a quantised model.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        let text = json::text(&path)?;
        let mut values = json::object(&path, &text)?;
        for nested in ["text_config", "llm_config", "language_config"] {
            if let Some(Value::Object(inner)) = values.remove(nested) {
                values.extend(inner);
            }
        }
        let config =
            Self { path, text, values, defaults: &[], asked: RefCell::default(), left_out: RefCell::default() };
        if let Some(quantized) = config.get("quantization_config") {
            let method =
                quantized.get("quant_method").and_then(Value::as_str).unwrap_or("a method that it does not name");
            return Err(config.refused(format!(
                "quantization_config: the weights are quantised by {method}; convert the model as it was before, or take \
                 the tensors as they are with --raw"
            )));
        }
        Ok(config)
    }

    /// Sets what transformers takes for absent keys; flags are 0 and 1.
    pub(super) fn set_defaults(&mut self, defaults: &'static [(&'static str, f64)]) {
        self.defaults = defaults;
    }

    /// The file's text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// An error that names the file.
    pub(super) fn refused(&self, reason: impl Into<String>) -> Error {
        Error::refused(&self.path, reason)
    }

    fn wrong(&self, key: &str, expected: &str, found: &Value) -> Error {
        self.refused(format!("{key} is {}, expected {expected}", json::shown(found)))
    }

    /// A value; `null` counts as none.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.asked.borrow_mut().insert(key.to_owned());
        self.values.get(key).filter(|value| !value.is_null())
    }

    /// Whether the key is there, with `null` for a value.
    pub(super) fn is_null(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(Value::is_null)
    }

    fn default(&self, key: &str) -> Option<f64> {
        self.defaults.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// A whole number, or transformers' default.
    pub(super) fn u32_if(&self, key: &str) -> Result<Option<u32>> {
        let number = match self.get(key) {
            Some(value) => value
                .as_u64()
                .and_then(|n| u32::try_from(n).ok())
                .ok_or_else(|| self.wrong(key, "a whole number below 2^32", value))?,
            None if self.is_null(key) => return Ok(None),
            None => match self.default(key) {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "our own small numbers")]
                Some(number) => number as u32,
                None => return Ok(None),
            },
        };
        Ok(Some(number))
    }

    /// A whole number that the model cannot do without.
    pub(super) fn u32(&self, key: &str) -> Result<u32> {
        self.u32_if(key)?.ok_or_else(|| self.refused(format!("{key} is missing")))
    }

    /// A number, or transformers' default, rounded to f32 as the converter of llama.cpp does.
    pub(super) fn f32_if(&self, key: &str) -> Result<Option<f32>> {
        match self.get(key) {
            Some(value) => value.as_f64().map(to_f32).map(Some).ok_or_else(|| self.wrong(key, "a number", value)),
            None if self.is_null(key) => Ok(None),
            None => Ok(self.default(key).map(to_f32)),
        }
    }

    /// A number that the model cannot do without.
    pub(super) fn f32(&self, key: &str) -> Result<f32> {
        self.f32_if(key)?.ok_or_else(|| self.refused(format!("{key} is missing")))
    }

    /// A flag, transformers' default, or no.
    pub(super) fn bool(&self, key: &str) -> Result<bool> {
        match self.get(key) {
            Some(value) => value.as_bool().ok_or_else(|| self.wrong(key, "true or false", value)),
            None => Ok(self.default(key).is_some_and(|flag| flag != 0.0)),
        }
    }

    /// A text.
    pub(super) fn str_if(&self, key: &str) -> Result<Option<&str>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(key, "text", value))
    }

    /// A list of texts.
    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<&str>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let texts = value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
        texts.map(Some).ok_or_else(|| self.wrong(key, "a list of texts", value))
    }

    /// The classes of the model, as transformers names them.
    pub(super) fn architectures(&self) -> Result<Vec<&str>> {
        Ok(self.texts("architectures")?.unwrap_or_default())
    }

    /// Refuses a value that would change the results in a way that is not implemented.
    pub(super) fn must_be(&self, key: &str, passes: impl FnOnce(&Value) -> bool, expected: &str) -> Result<()> {
        match self.get(key) {
            Some(value) if !passes(value) => Err(self.refused(format!(
                "{key} is {}; of this family only {expected} is understood. --raw takes the tensors as they are",
                json::shown(value)
            ))),
            _ => Ok(()),
        }
    }

    /// Leaves a key out that has a value, and notes `why`.
    pub(super) fn leave_out(&self, key: &str, why: &str) {
        if let Some(value) = self.get(key).filter(|value| !value.is_null()) {
            self.left_out.borrow_mut().push(format!("config.json: {key} = {} was left out: {why}", json::shown(value)));
        }
    }

    /// Notes on keys that were left out, once all that matters was read.
    ///
    /// # Errors
    /// A key that nobody asked for and that may matter.
    pub(super) fn finish(&self) -> Result<Vec<String>> {
        let asked = self.asked.borrow();
        let mut notes = self.left_out.borrow().clone();
        for (key, value) in &self.values {
            let [begins, ends] = WITHOUT_EFFECT_AT;
            let without = WITHOUT_EFFECT.contains(&key.as_str())
                || begins.iter().any(|begin| key.starts_with(begin))
                || ends.iter().any(|end| key.ends_with(end));
            if without || asked.contains(key) || json::is_neutral(value) {
                continue;
            }
            if value.is_string() {
                notes.push(format!("config.json: {} = {} was left out", json::quoted(key), json::shown(value)));
                continue;
            }
            return Err(self.refused(format!(
                "{} = {} is not understood and may change what the model computes; if it does not, remove the key, or take \
                 the tensors as they are with --raw",
                json::quoted(key),
                json::shown(value)
            )));
        }
        Ok(notes)
    }
}

/// The f32 nearest to a number.
#[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
pub(super) const fn to_f32(number: f64) -> f32 {
    number as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("config.json"), text).expect("written");
        Config::open(folder.path()).expect("an object")
    }

    #[test]
    fn values_defaults_and_nested_ones() {
        let mut config = config(r#"{"a": 3, "n": null, "x": 1e-5, "text_config": {"a": 4, "b": true}}"#);
        config.set_defaults(&[("n", 7.0), ("d", 8.0), ("f", 1.0)]);
        assert_eq!(config.u32("a").expect("there"), 4);
        assert_eq!((config.u32_if("n").expect("null"), config.u32_if("d").expect("default")), (None, Some(8)));
        assert_eq!(config.f32("x").expect("there"), 1e-5);
        assert!(
            config.bool("b").expect("there") && config.bool("f").expect("default") && !config.bool("g").expect("none")
        );
        config.finish().expect("all were asked for");
        for wrong in [config.u32("x").map(|_| ()), config.bool("a").map(|_| ()), config.u32("gone").map(|_| ())] {
            assert!(matches!(wrong, Err(Error::Refused { .. })), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_and_what_does_not_matter_is_not() {
        let unread = |text: &str| config(text).finish().map_err(|error| error.to_string());
        let harmless = r#"{"torch_dtype": "bfloat16", "attention_dropout": 0.1, "bos_token_id": 1, "unsloth_fixed": true,
            "alibi": false, "clip_qkv": null, "q": 0, "_attn_implementation_autoset": true}"#;
        assert_eq!(unread(harmless), Ok(vec![]));
        assert_eq!(unread(r#"{"finetuned_from": "x"}"#).expect("a note").len(), 1);
        let error = unread(r#"{"alibi": true}"#).expect_err("it matters");
        assert!(error.contains("`alibi` = true is not understood"), "{error}");
    }

    #[test]
    fn quantised_models_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = r#"{"quantization_config": {"quant_method": "gptq"}}"#;
        std::fs::write(folder.path().join("config.json"), text).expect("written");
        let error = Config::open(folder.path()).expect_err("quantised").to_string();
        assert!(error.contains("quantised by gptq"), "{error}");
    }
}
