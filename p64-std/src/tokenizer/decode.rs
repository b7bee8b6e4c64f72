//! From tokens back to bytes, and from bytes to text as they come.

use super::alphabet;
use super::dna::KMER;
use super::pre::Units;
use super::rwkv::unescape;
use super::spm::SPACE;
use super::vocab::{Kind, Model, TokenType, Vocabulary};

impl Vocabulary {
    /// Appends the bytes that a token stands for.
    ///
    /// Control and unknown tokens are written as their text with `render_special`, else not at all; unused tokens, tokens
    /// of no type and ids past the vocabulary stand for nothing.
    pub fn append_bytes(&self, id: u32, render_special: bool, out: &mut Vec<u8>) {
        let (Some(text), Some(kind)) = (self.text(id), self.token_type(id)) else { return };
        match kind {
            TokenType::Control | TokenType::Unknown if !render_special => {}
            _ if self.model == Model::Rwkv => out.extend(unescape(text)),
            _ if self.model == Model::Plamo && kind != TokenType::Byte => out.extend_from_slice(text),
            TokenType::Control | TokenType::Unknown | TokenType::UserDefined => out.extend_from_slice(text),
            TokenType::Byte => out.extend(self.byte(id)),
            TokenType::Normal => match self.model {
                Model::Bpe(_, Kind::HybridDna) if self.is_kmer(id) => {
                    spell_out(text.strip_suffix(KMER).unwrap_or(text), out)
                }
                Model::Bpe(pre, _) if pre.units() == Units::Bytes => spell_out(text, out),
                // llama.cpp reads these texts in the alphabet of bytes too, which they are not written in.
                Model::Bpe(pre, _) if pre.units() == Units::Characters => out.extend_from_slice(text),
                _ => unescape_spaces(text, out),
            },
            TokenType::Undefined | TokenType::Unused => {}
        }
    }

    /// Appends the bytes of a whole sequence. Where the model puts a space before a text, it is taken off again: from the
    /// first token that is not a control token.
    pub fn append_sequence(&self, ids: &[u32], render_special: bool, out: &mut Vec<u8>) {
        let is_control = |id: u32| self.token_type(id) == Some(TokenType::Control);
        let begin = if self.add_space_prefix { ids.iter().position(|&id| !is_control(id)) } else { None };
        for (index, &id) in ids.iter().enumerate() {
            let from = out.len();
            self.append_bytes(id, render_special, out);
            if begin == Some(index) && out.get(from) == Some(&b' ') {
                out.remove(from);
            }
        }
    }
}

impl Vocabulary {
    /// What llama.cpp's `llama_detokenize` makes of a whole sequence: [`Vocabulary::append_sequence`], and for the models
    /// whose Python originals clean up, the space before `?!.,`, around a lone apostrophe and before `'s`, `'m`, `'re`, `'ve`
    /// taken out. Text that has such spaces does not come back as it was.
    pub fn append_cleaned(&self, ids: &[u32], render_special: bool, out: &mut Vec<u8>) {
        let from = out.len();
        self.append_sequence(ids, render_special, out);
        if self.cleans_spaces {
            let cleaned = clean_up(out.get(from..).unwrap_or_default());
            out.truncate(from);
            out.extend(cleaned);
        }
    }
}

fn clean_up(text: &[u8]) -> Vec<u8> {
    let mut marks = Vec::with_capacity(text.len());
    for (at, &byte) in text.iter().enumerate() {
        if at > 0 && text.get(at - 1) == Some(&b' ') && matches!(byte, b'?' | b'!' | b'.' | b',') {
            marks.pop();
        }
        marks.push(byte);
    }
    // An apostrophe between two spaces loses both; the second counts no more for what follows.
    let mut apostrophes: Vec<u8> = Vec::with_capacity(marks.len());
    let mut at = 0;
    let mut before = None;
    while let Some(&byte) = marks.get(at) {
        let lone = byte == b'\'' && before == Some(b' ') && marks.get(at + 1) == Some(&b' ');
        if lone {
            apostrophes.pop();
        }
        apostrophes.push(byte);
        before = if lone { Some(0) } else { Some(byte) };
        at += if lone { 2 } else { 1 };
    }
    let mut out = Vec::with_capacity(apostrophes.len());
    for (at, &byte) in apostrophes.iter().enumerate() {
        if byte == b'\'' && at > 0 && apostrophes.get(at - 1) == Some(&b' ') {
            match apostrophes.get(at + 1..).unwrap_or_default() {
                [b's' | b'm', ..] | [b'r' | b'v', b'e', ..] => {
                    out.pop();
                }
                _ => {}
            }
        }
        out.push(byte);
    }
    out
}

/// `▁` is a space.
fn unescape_spaces(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some((&byte, rest)) = text.split_first() {
        text = match text.strip_prefix(SPACE) {
            Some(after) => {
                out.push(b' ');
                after
            }
            None => {
                out.push(byte);
                rest
            }
        };
    }
}

/// Each character of the byte alphabet is its byte; what is outside of it stands for itself.
fn spell_out(text: &[u8], out: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match alphabet::byte_of(c) {
                Some(byte) => out.push(byte),
                None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        out.extend_from_slice(chunk.invalid());
    }
}

/// Turns bytes that arrive piece by piece into text, holding back a character until it is complete.
///
/// Ill-formed bytes become U+FFFD, one for each maximal part of a character (Unicode 15, §3.9), like
/// [`String::from_utf8_lossy`] of the whole.
#[derive(Clone, Default, Debug)]
pub struct Utf8Stream {
    /// The beginning of a character: at most 3 bytes.
    held: Vec<u8>,
}

impl Utf8Stream {
    /// A stream at its beginning.
    #[must_use]
    pub const fn new() -> Self {
        Self { held: Vec::new() }
    }

    /// Appends to `out` what is complete with `bytes`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        self.held.extend_from_slice(bytes);
        let mut kept = 0;
        let mut chunks = self.held.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            out.push_str(chunk.valid());
            let bad = chunk.invalid();
            // Ill-formed bytes at the very end may be the beginning of a character.
            if chunks.peek().is_none() && is_beginning(bad) {
                kept = bad.len();
            } else if !bad.is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
        let done = self.held.len().saturating_sub(kept);
        self.held.drain(..done);
    }

    /// Ends the stream: what was held back will not be completed and becomes one U+FFFD.
    pub fn finish(&mut self, out: &mut String) {
        if !self.held.is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
        self.held.clear();
    }

    /// Bytes held back, at most 3.
    #[must_use]
    pub fn held(&self) -> &[u8] {
        &self.held
    }
}

/// Whether more bytes could complete these: the decoder would ask for more rather than refuse.
fn is_beginning(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests;
