//! SentencePiece's pieces in a `tokenizer.json`: merges stand where `tokenizer.model` has scores.

use super::files::{Files, TokenizerJson, kind_of};
use super::{Vocabulary, added};
use crate::error::Result;
use crate::hf::family::Model;
use crate::hf::json;
use crate::hf::keys::Keys;
use p64_core::tokenizer::TokenType;
use serde_json::Value;
use std::collections::HashMap;

/// The mark of a space.
const SPACE: &str = "\u{2581}";
/// The score of a token that no merge makes.
const UNMADE: f32 = -1e9;

/// Writes model, tokens, scores and types.
///
/// A piece's score is minus the rank of the first merge that makes it: SPM merges the pair whose join has the best score, and
/// that is then the pair that `tokenizers` merges first.
pub(super) fn write(files: &Files<'_>, json: &TokenizerJson, model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let prefix = space_prefix(json)?;
    let mut vocabulary = Vocabulary::empty(&json.path, model.vocabulary)?;
    vocabulary.scores = vec![-10_000.0; vocabulary.texts.len()];
    let merges = json.merges()?;
    let mut ranks: HashMap<String, usize> = HashMap::with_capacity(merges.len());
    for (rank, (left, right)) in merges.iter().enumerate() {
        ranks.entry(format!("{left}{right}")).or_insert(rank);
    }
    let unknown = json.model("unk_token").and_then(Value::as_str);
    let mut place = |id: u32, text: String, score: f32, kind: TokenType| -> Result<()> {
        let slot = usize::try_from(id).unwrap_or(usize::MAX);
        let slots = (vocabulary.texts.get_mut(slot), vocabulary.scores.get_mut(slot), vocabulary.types.get_mut(slot));
        let (Some(to), Some(with), Some(of)) = slots else {
            return Err(json.refused(format!(
                "the id of {} is {id}, and vocab_size in config.json is {}",
                json::quoted(&text),
                model.vocabulary
            )));
        };
        (*to, *with, *of) = (text, score, kind);
        Ok(())
    };
    for (text, id) in json.vocabulary()? {
        let kind = match text {
            _ if is_byte(text) => TokenType::Byte,
            _ if Some(text) == unknown => TokenType::Unknown,
            _ => TokenType::Normal,
        };
        #[expect(clippy::cast_precision_loss, reason = "exact below 2^24, and vocabularies are smaller")]
        let score = ranks.get(text).map_or(UNMADE, |rank| -(*rank as f32));
        place(id, text.to_owned(), score, kind)?;
    }
    for token in json.added()? {
        let (kind, text) = added(&token.text, token.special || files.is_named_special(&token.text));
        let kind = if Some(token.text.as_str()) == unknown { TokenType::Unknown } else { kind };
        place(token.id, text, -1000.0, kind)?;
    }
    keys.set("tokenizer.ggml.model", "llama").set("tokenizer.ggml.pre", "default");
    vocabulary.write(keys);
    keys.set("tokenizer.ggml.add_space_prefix", prefix);
    Ok(())
}

/// `<0xNN>`.
fn is_byte(text: &str) -> bool {
    let digits = text.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether a space is put before a text: the pipeline must be one that SPM knows.
fn space_prefix(json: &TokenizerJson) -> Result<bool> {
    let mut prefix = false;
    let mut marked = false;
    for step in json.steps("normalizer", "normalizers") {
        let text = |key: &str| step.get(key).and_then(Value::as_str);
        match kind_of(step) {
            Some("Prepend") if text("prepend") == Some(SPACE) => prefix = true,
            Some("Replace")
                if step.get("pattern").and_then(|pattern| pattern.get("String")).and_then(Value::as_str)
                    == Some(" ")
                    && text("content") == Some(SPACE) =>
            {
                marked = true;
            }
            _ => return Err(json.refused(format!("normalizer: {} is not understood", json::shown(step)))),
        }
    }
    for step in json.steps("pre_tokenizer", "pretokenizers") {
        let flag = |key: &str| step.get(key).and_then(Value::as_bool);
        match kind_of(step) {
            Some("Metaspace")
                if step.get("replacement").and_then(Value::as_str) == Some(SPACE) && flag("split") != Some(true) =>
            {
                marked = true;
                prefix = match step.get("prepend_scheme").and_then(Value::as_str) {
                    Some(scheme) => scheme != "never",
                    None => flag("add_prefix_space").unwrap_or(true),
                };
            }
            // Spaces are marks by now, so nothing is left to split at.
            Some("Split") if marked => {}
            _ => return Err(json.refused(format!("pre_tokenizer: {} is not understood", json::shown(step)))),
        }
    }
    if !marked {
        return Err(json.refused("nothing writes spaces as U+2581, as SentencePiece's pieces have them"));
    }
    Ok(prefix)
}
