//! Pre-tokenizers: how byte-level BPE splits text into words before it merges inside them.
//!
//! Each is a short list of patterns; every pattern splits the pieces that the one before it left, matches and the text
//! between matches alike. GGUF names them in `tokenizer.ggml.pre`.
//!
//! The originals end in `\s+(?!\S)|\s+`: a run of white space leaves its last character to the word that follows. That
//! is the only look-around in them, so it is done here in code ([`Stage::gives_back`]) and the patterns run on `regex`,
//! whose matching time is linear in the text by construction; an engine with look-around would need a backtracking limit
//! and so an error for long runs of white space.

use std::sync::LazyLock;

use p64_core::tokenizer::well_known::{GPT2_PRE, SMOLLM_PRE};
use regex::Regex;

use super::error::TokenizerError;

/// A known pre-tokenizer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pre {
    family: Family,
    /// Words that are tokens are not merged up from bytes.
    ignores_merges: bool,
    adds_bos: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    Default,
    Gpt2,
    Smollm,
    Llama3,
    Qwen2,
    Qwen35,
}

/// The names of each family; all names of one row split alike.
const NAMES: &[(Family, &[&str])] = &[
    (Family::Default, &["default"]),
    (Family::Gpt2, GPT2_PRE),
    (Family::Smollm, SMOLLM_PRE),
    (Family::Llama3, &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"]),
    (Family::Llama3, &["dbrx", "smaug-bpe"]),
    (Family::Qwen2, &["qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez", "kormo", "f2llmv2", "grok-2"]),
    (Family::Qwen35, &["qwen35"]),
];

/// The rows of [`NAMES`] whose models take whole words from the vocabulary first and begin with BOS by default.
const WHOLE_WORDS: &str = "llama-bpe";

impl Pre {
    /// The pre-tokenizer of a name.
    ///
    /// # Errors
    /// [`TokenizerError::UnknownPre`] with the names that pass: another pre-tokenizer's words would give wrong tokens.
    pub(super) fn from_name(name: &str) -> Result<Self, TokenizerError> {
        let row = NAMES.iter().find(|(_, names)| names.contains(&name));
        let (family, names) = row.ok_or_else(|| {
            let known: Vec<&str> = NAMES.iter().flat_map(|(_, names)| names.iter().copied()).collect();
            TokenizerError::UnknownPre { found: name.to_owned(), known: known.join(", ") }
        })?;
        let whole = names.contains(&WHOLE_WORDS);
        Ok(Self { family: *family, ignores_merges: whole, adds_bos: whole })
    }

    /// Whether a word that is a token as a whole is taken as it is.
    pub(super) const fn ignores_merges(self) -> bool {
        self.ignores_merges
    }

    /// Whether BOS is added where the file does not say.
    pub(super) const fn adds_bos(self) -> bool {
        self.adds_bos
    }

    /// Calls `word` with the words of `text` in order; together they are `text`.
    pub(super) fn split<'t>(self, text: &'t str, word: &mut dyn FnMut(&'t str)) {
        let stages: &[Stage] = match self.family {
            Family::Default => &*DEFAULT,
            Family::Gpt2 => &*GPT2,
            Family::Smollm => &*SMOLLM,
            Family::Llama3 => &*LLAMA3,
            Family::Qwen2 => &*QWEN2,
            Family::Qwen35 => &*QWEN35,
        };
        split(stages, text, word);
    }
}

/// One pattern.
struct Stage {
    pattern: Regex,
    gives_back: GivesBack,
}

/// Which runs of white space leave their last character to what follows (`\s+(?!\S)`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum GivesBack {
    /// None: the pattern has no such alternative.
    Nothing,
    /// Every run.
    Any,
    /// Those that do not end in a line break: `\s*[\r\n]+` comes first and keeps what it takes.
    NotLineBreaks,
}

impl Stage {
    /// Bytes of the last character of `matched` if it goes to what follows, else 0.
    fn gives_back(&self, matched: &str, at_end: bool) -> usize {
        let mut chars = matched.chars();
        let Some(last) = chars.next_back().filter(|_| !at_end) else { return 0 };
        let gives = match self.gives_back {
            GivesBack::Nothing => false,
            GivesBack::Any => last.is_whitespace(),
            GivesBack::NotLineBreaks => last.is_whitespace() && !matches!(last, '\r' | '\n'),
        };
        // A run of one is kept whole.
        if gives && !chars.as_str().is_empty() { last.len_utf8() } else { 0 }
    }
}

fn split<'t>(stages: &[Stage], text: &'t str, word: &mut dyn FnMut(&'t str)) {
    if text.is_empty() {
        return;
    }
    let Some((stage, rest)) = stages.split_first() else { return word(text) };
    let mut at = 0;
    while let Some(found) = stage.pattern.find_at(text, at) {
        let end = found.end() - stage.gives_back(found.as_str(), found.end() == text.len());
        // No pattern matches the empty string; were one to, this ends the loop instead of repeating it.
        if end <= at {
            break;
        }
        split(rest, text.get(at..found.start()).unwrap_or_default(), word);
        split(rest, text.get(found.start()..end).unwrap_or_default(), word);
        at = end;
    }
    split(rest, text.get(at..).unwrap_or_default(), word);
}

const WORDS_GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";
const WORDS_LLAMA3: &str = concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const WORDS_QWEN2: &str = concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const WORDS_QWEN35: &str = concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}",
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);

/// Compiles the patterns of one family, each on its first use.
fn stages<const N: usize>(patterns: [(&str, GivesBack); N]) -> [Stage; N] {
    #[expect(clippy::expect_used, reason = "the patterns are constants, compiled by a test")]
    patterns
        .map(|(pattern, gives_back)| Stage { pattern: Regex::new(pattern).expect("a constant pattern"), gives_back })
}

static DEFAULT: LazyLock<[Stage; 4]> = LazyLock::new(|| {
    stages([
        (r"[\p{P}$+<=>^~|]+", GivesBack::Nothing),
        (WORDS_GPT2, GivesBack::Any),
        (r"\p{N}+", GivesBack::Nothing),
        (r"[0-9][0-9][0-9]", GivesBack::Nothing),
    ])
});
static GPT2: LazyLock<[Stage; 1]> = LazyLock::new(|| stages([(WORDS_GPT2, GivesBack::Any)]));
static SMOLLM: LazyLock<[Stage; 2]> =
    LazyLock::new(|| stages([(r"\p{N}", GivesBack::Nothing), (WORDS_GPT2, GivesBack::Any)]));
static LLAMA3: LazyLock<[Stage; 1]> = LazyLock::new(|| stages([(WORDS_LLAMA3, GivesBack::NotLineBreaks)]));
static QWEN2: LazyLock<[Stage; 1]> = LazyLock::new(|| stages([(WORDS_QWEN2, GivesBack::NotLineBreaks)]));
static QWEN35: LazyLock<[Stage; 1]> = LazyLock::new(|| stages([(WORDS_QWEN35, GivesBack::NotLineBreaks)]));

#[cfg(test)]
mod tests;
