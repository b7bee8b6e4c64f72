//! Token ids back to bytes, one at a time, without allocation.
//!
//! A token may end inside a character; the bytes of all tokens together are the text.

use super::alphabet;
use super::encode::SPACE;
use super::unicode::chars;
use super::vocabulary::{Model, TokenType, Vocabulary, parse_byte};
use crate::error::{Code, Error, Place, Result};

/// Writes the bytes of one token to `out`, its leading space included, and says how many they are: what generation adds
/// to a text. No token's bytes are more than its text's.
///
/// Control and unknown tokens are written as their text with `render_special`, else not at all; unused tokens and those of
/// no type stand for nothing.
///
/// Cost: the token's length, and without an index a walk through the vocabulary up to it.
///
/// # Errors
/// [`Code::TokenRange`]; [`Code::BufferTooSmall`] with the number of all bytes, of which those that fit were written.
pub fn decode(vocabulary: &Vocabulary<'_>, id: u32, render_special: bool, out: &mut [u8]) -> Result<usize> {
    let mut bytes = Bytes { out, len: 0, skips_space: false };
    bytes.append(vocabulary, id, render_special)?;
    bytes.finish()
}

/// A sequence that is turned into bytes token by token. Where the model puts a space before a text, it is taken off again:
/// from the first token that is not a control token.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    render_special: bool,
    is_at_begin: bool,
}

impl Stream {
    /// A sequence at its beginning; control tokens are written as their text with `render_special`.
    #[must_use]
    pub const fn new(vocabulary: &Vocabulary<'_>, render_special: bool) -> Self {
        Self { render_special, is_at_begin: vocabulary.add_space_prefix }
    }

    /// As [`decode()`], for the next token of the sequence.
    ///
    /// # Errors
    /// As [`decode()`]; the stream is then where it was.
    pub fn next(&mut self, vocabulary: &Vocabulary<'_>, id: u32, out: &mut [u8]) -> Result<usize> {
        let is_first = self.is_at_begin && vocabulary.token_type(id) != Some(TokenType::Control);
        let mut bytes = Bytes { out, len: 0, skips_space: is_first };
        bytes.append(vocabulary, id, self.render_special)?;
        let len = bytes.finish()?;
        self.is_at_begin &= !is_first;
        Ok(len)
    }
}

/// The caller's bytes; goes on counting where they end.
struct Bytes<'o> {
    out: &'o mut [u8],
    len: usize,
    skips_space: bool,
}

impl Bytes<'_> {
    fn append(&mut self, vocabulary: &Vocabulary<'_>, id: u32, render_special: bool) -> Result<()> {
        let count = u64::from(vocabulary.token_count());
        let range = Error::new(Code::TokenRange, Place::File).values(count, u64::from(id));
        let text = vocabulary.text(id).ok_or(range)?;
        match vocabulary.kind(id, text) {
            TokenType::Control | TokenType::Unknown if !render_special => {}
            TokenType::Control | TokenType::Unknown | TokenType::UserDefined => self.extend(text),
            TokenType::Byte => self.extend(parse_byte(text).as_slice()),
            TokenType::Normal if vocabulary.model == Model::Spm => self.unescape_spaces(text),
            TokenType::Normal => self.spell_out(text),
            TokenType::Undefined | TokenType::Unused => {}
        }
        Ok(())
    }

    /// `▁` is a space.
    fn unescape_spaces(&mut self, mut text: &[u8]) {
        while let Some((first, rest)) = text.split_first() {
            text = match text.strip_prefix(SPACE) {
                Some(after) => {
                    self.extend(b" ");
                    after
                }
                None => {
                    self.extend(core::slice::from_ref(first));
                    rest
                }
            };
        }
    }

    /// Each character of the byte alphabet is its byte; what is outside of it stands for itself.
    fn spell_out(&mut self, text: &[u8]) {
        for (c, bytes) in chars(text) {
            match alphabet::byte_of(c) {
                Some(byte) => self.extend(&[byte]),
                None => self.extend(bytes),
            }
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if core::mem::take(&mut self.skips_space) && byte == b' ' {
                continue;
            }
            if let Some(slot) = self.out.get_mut(self.len) {
                *slot = byte;
            }
            self.len = self.len.saturating_add(1);
        }
    }

    const fn finish(self) -> Result<usize> {
        let Self { out, len, .. } = self;
        if len <= out.len() { Ok(len) } else { Err(Error::buffer_too_small(len, out.len())) }
    }
}
