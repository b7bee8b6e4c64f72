//! Pre-tokenizers: how byte-level BPE splits text into words before it merges inside them.
//!
//! Each is a short list of stages; every stage splits the pieces that the one before it left, matches and the text
//! between matches alike. The patterns are those of GGUF's `tokenizer.ggml.pre`, written as code: a regex engine would be
//! larger than the rest of this crate.

use super::unicode::{Class, chars, class, first_char};
use super::well_known::{GPT2_PRE, SMOLLM_PRE};
use crate::error::Result;

/// A pre-tokenizer that this module does exactly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pre {
    Default,
    Gpt2,
    Smollm,
}

/// A pattern.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// `[\p{P}$+<=>^~|]+`
    Punctuation,
    /// GPT-2's words; a run of white space leaves its last character to the word that follows.
    Words,
    /// `\p{N}+`
    Numbers,
    /// `\p{N}`
    Number,
    /// `[0-9][0-9][0-9]`
    ThreeDigits,
}

impl Pre {
    /// The pre-tokenizer of a name; `None` for one whose words this module would get wrong.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::Default),
            name if GPT2_PRE.contains(&name) => Some(Self::Gpt2),
            name if SMOLLM_PRE.contains(&name) => Some(Self::Smollm),
            _ => None,
        }
    }

    /// Calls `word` with the words of `text` in order; together they are `text`.
    pub(super) fn split(self, text: &[u8], word: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let stages: &[Stage] = match self {
            Self::Default => &[Stage::Punctuation, Stage::Words, Stage::Numbers, Stage::ThreeDigits],
            Self::Gpt2 => &[Stage::Words],
            Self::Smollm => &[Stage::Number, Stage::Words],
        };
        split(stages, text, word)
    }
}

/// As deep as there are stages: at most four.
fn split(stages: &[Stage], text: &[u8], word: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let Some((stage, later)) = stages.split_first() else { return word(text) };
    // `text[from..at]` is what no match has taken.
    let (mut from, mut at) = (0usize, 0usize);
    while let Some((_, first)) = text.get(at..).and_then(first_char) {
        let len = stage.matches(text.get(at..).unwrap_or_default());
        if len == 0 {
            at = at.saturating_add(first.len());
            continue;
        }
        let end = at.saturating_add(len);
        split(later, text.get(from..at).unwrap_or_default(), word)?;
        split(later, text.get(at..end).unwrap_or_default(), word)?;
        (from, at) = (end, end);
    }
    split(later, text.get(from..).unwrap_or_default(), word)
}

impl Stage {
    /// Bytes of the match at the front of `text`; 0 for none.
    fn matches(self, text: &[u8]) -> usize {
        let number = |c| class(c) == Class::Number;
        match self {
            Self::Punctuation => run(text, |c| class(c) == Class::Punctuation || "$+<=>^~|".contains(c)),
            Self::Words => words(text),
            Self::Numbers => run(text, number),
            Self::Number => first_char(text).filter(|(c, _)| number(*c)).map_or(0, |(_, bytes)| bytes.len()),
            Self::ThreeDigits => {
                let three = text.first_chunk::<3>().is_some_and(|digits| digits.iter().all(u8::is_ascii_digit));
                if three { 3 } else { 0 }
            }
        }
    }
}

/// Bytes of the characters at the front that `takes` takes.
fn run(text: &[u8], takes: impl Fn(char) -> bool) -> usize {
    chars(text).take_while(|(c, _)| takes(*c)).fold(0, |sum, (_, bytes)| bytes.len().saturating_add(sum))
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
fn words(text: &[u8]) -> usize {
    const SHORT: [&[u8]; 7] = [b"'s", b"'t", b"'re", b"'ve", b"'m", b"'ll", b"'d"];
    if let Some(short) = SHORT.iter().find(|short| text.starts_with(short)) {
        return short.len();
    }
    let after = text.strip_prefix(b" ").unwrap_or(text);
    if let Some((c, _)) = first_char(after).filter(|(c, _)| !c.is_whitespace()) {
        let kind = word_class(c);
        let len = run(after, |c| !c.is_whitespace() && word_class(c) == kind);
        return text.len().saturating_sub(after.len()).saturating_add(len);
    }
    let spaces = || chars(text).take_while(|(c, _)| c.is_whitespace());
    let len = run(text, char::is_whitespace);
    let last = spaces().last().map_or(0, |(_, bytes)| bytes.len());
    // A run that something follows gives its last character back, unless that is all it has.
    if len < text.len() && last < len { len.saturating_sub(last) } else { len }
}

/// Punctuation is like any other character here.
fn word_class(c: char) -> Class {
    match class(c) {
        Class::Punctuation => Class::Other,
        class => class,
    }
}
