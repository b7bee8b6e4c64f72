//! The tokenizer's files as the keys of `tokenizer.*`.
//!
//! ```text
//! tokenizer.model               SentencePiece's own file             -> llama     sentencepiece
//! tokenizer.json, byte fallback what transformers makes of such one  -> llama     pieces
//! tokenizer.json, byte level                                         -> gpt2      byte_level, pre
//! tokenizer_config.json, ...    special tokens, templates                         special, template
//! ```

mod byte_level;
mod files;
mod hashes;
mod pieces;
mod pre;
mod sentencepiece;
mod special;
mod template;

use super::family::Model;
use super::keys::Keys;
use crate::error::{Error, Result};
use files::Files;
use p64_core::limits::MAX_VOCABULARY;
use p64_core::tokenizer::TokenType;
use std::path::Path;

/// Tokens by id: text, score and type.
#[derive(Clone, Debug, Default)]
struct Vocabulary {
    texts: Vec<String>,
    /// Empty for models that merge by rank.
    scores: Vec<f32>,
    types: Vec<TokenType>,
}

impl Vocabulary {
    /// `size` places that no token fills yet.
    fn empty(path: &Path, size: u32) -> Result<Self> {
        if size > MAX_VOCABULARY {
            let reason = format!("a vocabulary of {size} tokens; at most {MAX_VOCABULARY} are taken in");
            return Err(Error::refused(path, reason));
        }
        let mut out = Self::default();
        for id in 0..size {
            out.texts.push(format!("[PAD{id}]"));
            out.types.push(TokenType::Unused);
        }
        Ok(out)
    }

    fn write(self, keys: &mut Keys) {
        keys.set("tokenizer.ggml.tokens", self.texts);
        if !self.scores.is_empty() {
            keys.set("tokenizer.ggml.scores", self.scores);
        }
        keys.set("tokenizer.ggml.token_type", self.types.iter().map(|kind| type_number(*kind)).collect::<Vec<_>>());
    }
}

/// The number of a type, as GGUF has it.
const fn type_number(kind: TokenType) -> i32 {
    match kind {
        TokenType::Normal => 1,
        TokenType::Unknown => 2,
        TokenType::Control => 3,
        TokenType::UserDefined => 4,
        TokenType::Unused => 5,
        TokenType::Byte => 6,
        _ => 0,
    }
}

/// Writes the keys of a folder's tokenizer. Returns what a person should know.
///
/// # Errors
/// A file that is broken, a kind of tokenizer or a pre-tokenizer that is not known, more tokens than the model has rows for.
pub(super) fn write(folder: &Path, model: &Model<'_>, keys: &mut Keys) -> Result<Vec<String>> {
    let files = Files::open(folder, model.config)?;
    let mut notes = Vec::new();
    let merges = if let Some(bytes) = &files.sentence_piece {
        sentencepiece::write(&files, bytes, model, keys)?;
        None
    } else if let Some(json) = &files.json {
        match json.kind()? {
            files::Kind::Pieces => {
                pieces::write(&files, json, model, keys)?;
                None
            }
            files::Kind::ByteLevel => Some(byte_level::write(&files, json, model, keys)?),
        }
    } else {
        notes.push(format!(
            "{}: neither tokenizer.json nor tokenizer.model: the model reads token ids only",
            folder.display()
        ));
        return Ok(notes);
    };
    let by_rank = merges.is_some();
    if let Some(merges) = merges {
        keys.set("tokenizer.ggml.merges", merges);
    }
    notes.extend(special::write(&files, by_rank, model.vocabulary, keys)?);
    template::write(&files, keys)?;
    if model.family.arch.starts_with("gemma") && !by_rank {
        keys.set("tokenizer.ggml.add_space_prefix", false);
    }
    if by_rank {
        let note = pre::choose(&files, keys)?;
        notes.extend(note);
    }
    Ok(notes)
}

/// Whether an added token that is not marked special is one all the same.
fn looks_special(text: &str) -> bool {
    let within = |begin: &str, end: &str| text.starts_with(begin) && text.ends_with(end);
    ["<pad>", "<mask>", "<2mass>", "[@BOS@]"].contains(&text)
        || within("<|", "|>")
        || within("<｜", "｜>")
        || within("<unused", ">")
}

/// The type and the text that an added token is kept under.
fn added(text: &str, special: bool) -> (TokenType, String) {
    if special || looks_special(text) {
        (TokenType::Control, text.to_owned())
    } else {
        (TokenType::UserDefined, text.replace('\u{2581}', " "))
    }
}
