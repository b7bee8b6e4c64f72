//! Pre-tokenizers: how byte-pair encoding splits text into words before it merges inside them.
//!
//! Each is a short list of steps ([`patterns`]); every step splits the pieces that the one before it left, matches and the
//! text between matches alike. GGUF names them in `tokenizer.ggml.pre` ([`names`]).
//!
//! Most originals end in `\s+(?!\S)|\s+`: a run of white space leaves its last character to the word that follows. That and
//! the grouping of digits are the only look-arounds in them, so they are done in code ([`stage`]) and the patterns run on
//! `regex` (the most frequent are code of their own, [`words`]), whose matching time is linear in the text by construction; an engine with look-around would need a backtracking
//! limit and so an error for long runs of white space.

mod names;
mod patterns;
mod stage;
mod words;

use super::error::TokenizerError;
use names::Row;
use stage::Stage;

pub(super) use names::Units;

/// A known pre-tokenizer: a row of the table of names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pre(&'static Row);

impl PartialEq for Pre {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Pre {}

impl Pre {
    /// The pre-tokenizer of a name.
    ///
    /// # Errors
    /// [`TokenizerError::UnknownPre`] with the names that pass: another pre-tokenizer's words would give wrong tokens.
    pub(crate) fn from_name(name: &str) -> Result<Self, TokenizerError> {
        let row = names::ROWS.iter().find(|row| row.names.contains(&name));
        row.map(Self).ok_or_else(|| {
            let known: Vec<&str> = Self::names().collect();
            TokenizerError::UnknownPre { found: TokenizerError::shown(name), known: known.join(", ") }
        })
    }

    /// Every name, in the order of the table.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        names::ROWS.iter().flat_map(|row| row.names.iter().copied())
    }

    /// One name of every row.
    pub(crate) fn first_names() -> impl Iterator<Item = &'static str> {
        names::ROWS.iter().filter_map(|row| row.names.first().copied())
    }

    /// Whether a word that is a token as a whole is taken as it is.
    pub(super) const fn ignores_merges(self) -> bool {
        self.0.ignores_merges
    }

    /// Whether BOS is added where the file does not say.
    pub(crate) const fn adds_bos(self) -> bool {
        self.0.adds_bos
    }

    /// Whether BOS is added whatever the file says.
    pub(super) const fn always_adds_bos(self) -> bool {
        self.0.always_adds_bos
    }

    /// Whether the model has a BOS where the file names none.
    pub(crate) const fn has_default_bos(self) -> bool {
        self.0.has_default_bos
    }

    /// Whether detokenised text is cleaned up.
    pub(super) const fn cleans_spaces(self) -> bool {
        self.0.cleans_spaces
    }

    /// What the symbols are that merging begins with.
    pub(super) const fn units(self) -> Units {
        self.0.units
    }

    /// Whether a space before `<mask>` belongs to it.
    pub(super) const fn strips_before_mask(self) -> bool {
        self.0.strips_before_mask
    }

    /// Whether the model has no tokens for white space, and so leaves the case of letters alone.
    pub(super) const fn drops_spaces(self) -> bool {
        matches!(self.0.units, Units::Characters)
    }

    /// Whether a word of line breaks alone that is a token is taken as it is.
    pub(super) const fn keeps_line_breaks(self) -> bool {
        self.0.keeps_line_breaks
    }

    /// The steps, compiled.
    pub(super) fn splitter(self) -> Splitter {
        Splitter { stages: self.0.steps.iter().map(Stage::compile).collect() }
    }
}

/// A pre-tokenizer that is ready to split.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    stages: Vec<Stage>,
}

impl Splitter {
    /// Calls `word` with the words of `text` in order; together they are `text`.
    pub(super) fn split<'t>(&self, text: &'t str, word: &mut dyn FnMut(&'t str)) {
        stage::split(&self.stages, text, word);
    }
}

#[cfg(test)]
mod tests;
