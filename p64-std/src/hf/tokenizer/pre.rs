//! Which of the known pre-tokenizers a `tokenizer.json` describes.
//!
//! Its steps name one by their structure. Names that differ in no step are told apart by the ids of a text, as llama.cpp's
//! converter does ([`hashes`]); so are structures that are not listed here. Nothing is guessed: without either, it is an
//! error.

use super::files::{Files, TokenizerJson, kind_of};
use super::hashes;
use crate::error::Result;
use crate::hf::json;
use crate::hf::keys::Keys;
use crate::tokenizer::{Pre, Tokenizer};
use p64_core::metadata::Metadata;
use serde_json::Value;

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Patterns of a single split, whether whole words go before merges, and the name for both.
const SPLITS: &[(&str, bool, &str)] = &[
    (LLAMA3, true, "llama-bpe"),
    (LLAMA3, false, "dbrx"),
    (QWEN2, false, "qwen2"),
    (TEKKEN, true, "tekken"),
    (GPT4O, false, "gpt-4o"),
];

/// Sets `tokenizer.ggml.pre`, once all other keys of the tokenizer are there. Returns a note.
pub(super) fn choose(files: &Files<'_>, keys: &mut Keys) -> Result<Option<String>> {
    let Some(json) = &files.json else { return Ok(None) };
    normalizer(json)?;
    let by_structure = structure(json);
    let ids_with = |name: &str, keys: &mut Keys| -> Option<Vec<u32>> {
        keys.set("tokenizer.ggml.pre", name);
        let area = keys.to_pairs().to_area();
        let metadata = Metadata::parse(&area, 0).ok()?;
        let tokenizer = Tokenizer::from_metadata(&metadata).ok()?;
        Some(tokenizer.encode(hashes::TEXT.as_bytes(), true, true))
    };
    if let Some(name) = by_structure {
        let known =
            ids_with(name, keys).and_then(|ids| hashes::name_of(&ids)).filter(|name| Pre::from_name(name).is_ok());
        keys.set("tokenizer.ggml.pre", known.unwrap_or(name));
        return Ok(None);
    }
    for candidate in Pre::first_names() {
        let known = ids_with(candidate, keys).and_then(|ids| hashes::name_of(&ids));
        if let Some(name) = known.filter(|name| Pre::from_name(name).is_ok()) {
            keys.set("tokenizer.ggml.pre", name);
            return Ok(Some(format!(
                "tokenizer.json: the pre-tokenizer {name} was found by the ids of a text, as llama.cpp's converter does"
            )));
        }
    }
    let found = json.part("pre_tokenizer").unwrap_or(&Value::Null);
    Err(json.refused(format!(
        "the pre-tokenizer is none of those that are known, and the vocabulary none whose pre-tokenizer is known by its ids: \
         {}",
        json::shown(found)
    )))
}

/// Nothing may be done to a text before it is split, but composing its characters, which llama.cpp leaves out.
fn normalizer(json: &TokenizerJson) -> Result<()> {
    for step in json.steps("normalizer", "normalizers") {
        if kind_of(step) != Some("NFC") {
            return Err(json.refused(format!("normalizer: {} is not understood", json::shown(step))));
        }
    }
    Ok(())
}

/// The name of the steps, where they are known ones.
fn structure(json: &TokenizerJson) -> Option<&'static str> {
    let steps = json.steps("pre_tokenizer", "pretokenizers");
    let flag = |step: &Value, key: &str, default: bool| step.get(key).and_then(Value::as_bool).unwrap_or(default);
    let byte_level = |step: &Value, splits: bool| {
        kind_of(step) == Some("ByteLevel")
            && !flag(step, "add_prefix_space", true)
            && flag(step, "use_regex", true) == splits
    };
    let whole_words = json.flag("ignore_merges");
    match steps.as_slice() {
        [one] if byte_level(one, true) && !whole_words => Some("gpt-2"),
        [digits, bytes]
            if kind_of(digits) == Some("Digits")
                && flag(digits, "individual_digits", false)
                && byte_level(bytes, true)
                && !whole_words =>
        {
            Some("smollm")
        }
        [split, bytes] if kind_of(split) == Some("Split") && byte_level(bytes, false) => {
            let pattern = split.get("pattern")?.get("Regex")?.as_str()?;
            let invert = flag(split, "invert", false);
            // Matches apart with what is between them, or matches alone: these patterns leave nothing between.
            let passes = match split.get("behavior")?.as_str()? {
                "Isolated" | "isolated" => !invert,
                "Removed" | "removed" => invert,
                _ => false,
            };
            let found = SPLITS.iter().find(|(known, words, _)| *known == pattern && *words == whole_words);
            found.filter(|_| passes).map(|(_, _, name)| *name)
        }
        _ => None,
    }
}
