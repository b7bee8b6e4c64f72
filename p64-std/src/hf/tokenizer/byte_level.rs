//! Byte-pair encoding over GPT-2's alphabet of bytes.

use super::files::{Files, TokenizerJson};
use super::{Vocabulary, added};
use crate::error::Result;
use crate::hf::family::Model;
use crate::hf::json;
use crate::hf::keys::Keys;
use p64_core::tokenizer::TokenType;
use serde_json::Value;

/// Writes model, tokens and types; the pre-tokenizer's name is still open. Returns the merges as GGUF writes them.
pub(super) fn write(
    files: &Files<'_>,
    json: &TokenizerJson,
    model: &Model<'_>,
    keys: &mut Keys,
) -> Result<Vec<String>> {
    let mut vocabulary = Vocabulary::empty(&json.path, model.vocabulary)?;
    let mut place = |id: u32, text: String, kind: TokenType| -> Result<()> {
        let slot = usize::try_from(id).unwrap_or(usize::MAX);
        match (vocabulary.texts.get_mut(slot), vocabulary.types.get_mut(slot)) {
            (Some(to), Some(of)) => {
                (*to, *of) = (text, kind);
                Ok(())
            }
            _ => Err(json.refused(format!(
                "the id of {} is {id}, and vocab_size in config.json is {}",
                json::quoted(&text),
                model.vocabulary
            ))),
        }
    };
    for (text, id) in json.vocabulary()? {
        place(id, text.to_owned(), TokenType::Normal)?;
    }
    for token in json.added()? {
        let (kind, text) = added(&token.text, token.special || files.is_named_special(&token.text));
        place(token.id, text, kind)?;
    }
    // Of no effect on such a tokenizer; llama.cpp's converter writes it for LLaMA and its kin.
    if let Some(prefix) = files.config("add_prefix_space").and_then(Value::as_bool).filter(|_| model.family.interleaves)
    {
        keys.set("tokenizer.ggml.add_space_prefix", prefix);
    }
    keys.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "");
    vocabulary.write(keys);
    // A space that stands in a text is the one that separates the two, unless it is written as a byte.
    let escape = |text: &str| text.replace(' ', "\u{120}");
    Ok(json.merges()?.iter().map(|(left, right)| format!("{} {}", escape(left), escape(right))).collect())
}
