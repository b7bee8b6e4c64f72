//! `tokenizer.model`: the pieces of SentencePiece, a message of protocol buffers.
//!
//! ```text
//! ModelProto       1 pieces*, 2 trainer, 3 normalizer
//! SentencePiece    1 text, 2 score (f32), 3 type
//! TrainerSpec      3 model_type (1 unigram, 2 bpe)
//! NormalizerSpec   3 add_dummy_prefix
//! ```

use super::files::Files;
use super::{Vocabulary, added};
use crate::error::{Error, Result};
use crate::hf::family::Model;
use crate::hf::json;
use crate::hf::keys::Keys;
use p64_core::tokenizer::TokenType;
use serde_json::Value;

/// One value of a message.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
    Four([u8; 4]),
    Eight,
}

/// The fields of a message, `None` in place of the first that is broken.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn field(&mut self) -> Option<(u64, Field<'b>)> {
        let tag = self.number()?;
        let field = match tag & 7 {
            0 => Field::Number(self.number()?),
            1 => {
                self.0 = self.0.split_at_checked(8)?.1;
                Field::Eight
            }
            2 => {
                let len = usize::try_from(self.number()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(len)?;
                self.0 = rest;
                Field::Bytes(bytes)
            }
            5 => {
                let (bytes, rest) = self.0.split_first_chunk()?;
                self.0 = rest;
                Field::Four(*bytes)
            }
            _ => return None,
        };
        Some((tag >> 3, field))
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Option<(u64, Field<'b>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// A vocabulary of SentencePiece.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SentencePiece {
    /// Text, score and type of each piece.
    pub(super) pieces: Vec<(String, f32, TokenType)>,
    unigram: bool,
    /// Whether a space is put before a text.
    pub(super) prefix: bool,
}

impl SentencePiece {
    /// Reads a `tokenizer.model`; `None` when it is none.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut out = Self { pieces: Vec::new(), unigram: true, prefix: true };
        for field in Fields(bytes) {
            match field? {
                (1, Field::Bytes(piece)) => {
                    let (mut text, mut score, mut kind) = ("", 0.0, TokenType::Normal);
                    for field in Fields(piece) {
                        match field? {
                            (1, Field::Bytes(bytes)) => text = str::from_utf8(bytes).ok()?,
                            (2, Field::Four(bytes)) => score = f32::from_le_bytes(bytes),
                            (3, Field::Number(number)) => {
                                kind = match number {
                                    2 => TokenType::Unknown,
                                    3 => TokenType::Control,
                                    // Their texts are cut out of the text because they are added tokens, too.
                                    1 | 4 => TokenType::Normal,
                                    5 => TokenType::Unused,
                                    6 => TokenType::Byte,
                                    _ => return None,
                                }
                            }
                            _ => {}
                        }
                    }
                    out.pieces.push((text.to_owned(), score, kind));
                }
                (2, Field::Bytes(trainer)) => {
                    for field in Fields(trainer) {
                        if let (3, Field::Number(kind)) = field? {
                            out.unigram = kind == 1;
                        }
                    }
                }
                (3, Field::Bytes(normalizer)) => {
                    for field in Fields(normalizer) {
                        if let (3, Field::Number(flag)) = field? {
                            out.prefix = flag != 0;
                        }
                    }
                }
                _ => {}
            }
        }
        (!out.pieces.is_empty()).then_some(out)
    }
}

/// Writes model, tokens, scores and types.
pub(super) fn write(files: &Files<'_>, bytes: &[u8], model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let path = files.folder.join("tokenizer.model");
    let refused = |reason: String| Error::refused(&path, reason);
    let sentence_piece = SentencePiece::parse(bytes).ok_or_else(|| refused("it is no file of SentencePiece".into()))?;
    if sentence_piece.unigram {
        return Err(refused(
            "its pieces are chosen by unigram; for models of this family only BPE is understood".into(),
        ));
    }
    let mut vocabulary = Vocabulary::empty(&path, model.vocabulary)?;
    vocabulary.scores = vec![-10_000.0; vocabulary.texts.len()];
    let mut place = |id: usize, text: &str, score: f32, kind: TokenType| -> bool {
        let slots = (vocabulary.texts.get_mut(id), vocabulary.scores.get_mut(id), vocabulary.types.get_mut(id));
        let (Some(to), Some(with), Some(of)) = slots else { return false };
        text.clone_into(to);
        (*with, *of) = (score, kind);
        true
    };
    // Pieces past the model's rows are left out, as llama.cpp's converter does: the model never gives them.
    for (id, (text, score, kind)) in sentence_piece.pieces.iter().enumerate() {
        place(id, text, *score, *kind);
    }
    for (text, id) in &files.added {
        let id = id.as_u64().and_then(|id| usize::try_from(id).ok());
        let id = id.ok_or_else(|| Error::refused(&files.folder.join("added_tokens.json"), "an id is no number"))?;
        place(id, text, -1000.0, TokenType::UserDefined);
    }
    for (id, text, special) in marked(files)? {
        let id = usize::try_from(id).unwrap_or(usize::MAX);
        if model.family.trusts_special {
            place(id, &text, -1000.0, if special { TokenType::Control } else { TokenType::UserDefined });
        } else {
            let (kind, text) = added(&text, special);
            place(id, &text, -1000.0, kind);
        }
    }
    if let Some(prefix) = files.config("add_prefix_space").and_then(Value::as_bool).filter(|_| model.family.interleaves)
    {
        keys.set("tokenizer.ggml.add_space_prefix", prefix);
    } else if !sentence_piece.prefix {
        keys.set("tokenizer.ggml.add_space_prefix", false);
    }
    keys.set("tokenizer.ggml.model", "llama").set("tokenizer.ggml.pre", "default");
    vocabulary.write(keys);
    Ok(())
}

/// Tokens that `tokenizer_config.json` marks, or else `tokenizer.json`.
fn marked(files: &Files<'_>) -> Result<Vec<(u32, String, bool)>> {
    let Some(Value::Object(decoder)) = files.config("added_tokens_decoder") else {
        let Some(json) = &files.json else { return Ok(Vec::new()) };
        let tokens = json.added()?.into_iter();
        return Ok(tokens.map(|token| (token.id, token.text, token.special)).collect());
    };
    let path = files.folder.join("tokenizer_config.json");
    decoder
        .iter()
        .map(|(id, token)| {
            let id = id.parse().ok();
            let text = token.get("content").and_then(Value::as_str);
            let special = token.get("special").and_then(Value::as_bool).unwrap_or(false);
            id.zip(text).map(|(id, text)| (id, text.to_owned(), special)).ok_or_else(|| {
                Error::refused(&path, format!("added_tokens_decoder: {} is no token", json::shown(token)))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: piece `a` with score 0.5, piece `<s>` of type 3, a trainer of BPE, no prefix.
    const BYTES: &[u8] = b"\x0a\x08\x0a\x01a\x15\0\0\0\x3f\x0a\x07\x0a\x03<s>\x18\x03\x12\x02\x18\x02\x1a\x02\x18\x00";

    #[test]
    fn a_small_file() {
        let read = SentencePiece::parse(BYTES).expect("well-formed");
        let pieces = vec![("a".to_owned(), 0.5, TokenType::Normal), ("<s>".to_owned(), 0.0, TokenType::Control)];
        assert_eq!(read, SentencePiece { pieces, unigram: false, prefix: false });
    }

    #[test]
    fn broken_files_are_none() {
        for cut in 1..BYTES.len() {
            // A cut between two fields leaves a shorter message, anything else none.
            let whole = [10, 19, 23].contains(&cut);
            assert_eq!(SentencePiece::parse(&BYTES[..cut]).is_some(), whole, "{cut}");
        }
        let long = b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
        assert_eq!(SentencePiece::parse(long), None);
        assert_eq!(SentencePiece::parse(b""), None);
        assert_eq!(SentencePiece::parse(b"\x0b\x00"), None);
    }
}
