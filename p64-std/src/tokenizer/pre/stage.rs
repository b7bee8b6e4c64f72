//! One stage of splitting, compiled, and how stages follow each other.

use regex::Regex;

use super::patterns::{Spaces, Step, Words};
use super::words;

/// A stage that is ready to run.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// A pattern, and what becomes of its runs of white space.
    Pattern(Regex, Spaces),
    /// A pattern that is code.
    Words(Words),
    /// Digits in groups of three from the right; see [`digits_from_the_right`].
    DigitsFromTheRight(Regex),
    /// ASCII digits cut before every third from the right.
    Thousands(Regex),
}

impl Stage {
    /// Compiles a step. A set of patterns that are constants of this crate, so a failure is caught by the tests.
    pub(super) fn compile(step: &Step) -> Self {
        #[expect(clippy::expect_used, reason = "the patterns are constants, compiled by a test")]
        let regex = |pattern: &str| Regex::new(pattern).expect("a constant pattern");
        match step {
            Step::Pattern(pattern, spaces) => Self::Pattern(regex(pattern), *spaces),
            Step::Words(words) => Self::Words(*words),
            Step::DigitsFromTheRight => Self::DigitsFromTheRight(regex(r"\p{N}+")),
            Step::Thousands => Self::Thousands(regex("[0-9]+")),
        }
    }
}

/// Calls `word` with the pieces that the stages leave, in order; none is empty, and together they are `text`.
pub(super) fn split<'t>(stages: &[Stage], text: &'t str, word: &mut dyn FnMut(&'t str)) {
    if text.is_empty() {
        return;
    }
    let Some((stage, rest)) = stages.split_first() else { return word(text) };
    let cut = |from: usize, to: usize, word: &mut dyn FnMut(&'t str)| {
        split(rest, text.get(from..to).unwrap_or_default(), word);
    };
    match stage {
        Stage::Words(Words::Number) => {
            let mut at = 0;
            while let Some((start, end)) = words::number(text, at) {
                cut(at, start, word);
                cut(start, end, word);
                at = end;
            }
            cut(at, text.len(), word);
        }
        Stage::Words(Words::Lines) => {
            let line_breaks = |byte: &u8| *byte == b'\n';
            let mut at = 0;
            for line in text.as_bytes().chunk_by(|a, b| line_breaks(a) == line_breaks(b)) {
                cut(at, at + line.len(), word);
                at += line.len();
            }
        }
        Stage::Words(kind) => {
            let mut at = 0;
            while at < text.len() {
                let end = match kind {
                    Words::Llama3 => words::tiktoken(text, at, 3),
                    Words::Qwen2 => words::tiktoken(text, at, 1),
                    _ => words::gpt2(text, at),
                };
                cut(at, end, word);
                at = end;
            }
        }
        Stage::Pattern(pattern, spaces) => {
            let mut at = 0;
            while let Some(found) = pattern.find_at(text, at) {
                cut(at, found.start(), word);
                let last = found.end() == text.len();
                let end = if *spaces == Spaces::ByPowersOfTwo && is_run_of_spaces(found.as_str()) {
                    cut_by_powers_of_two(found.start(), found.as_str(), last, &mut |from, to| cut(from, to, word))
                } else {
                    let end = found.end() - spaces.given_back(found.as_str(), last);
                    cut(found.start(), end, word);
                    end
                };
                // No pattern matches the empty string; were one to, this ends the loop instead of repeating it.
                if end <= at {
                    return cut(end, text.len(), word);
                }
                at = end;
            }
            cut(at, text.len(), word);
        }
        Stage::DigitsFromTheRight(digits) => digits_from_the_right(digits, text, &mut |from, to| cut(from, to, word)),
        Stage::Thousands(digits) => {
            let mut at = 0;
            for run in digits.find_iter(text) {
                let mut next = run.end() - run.len() / 3 * 3;
                while next < run.end() {
                    cut(at, next, word);
                    at = next;
                    next += 3;
                }
            }
            cut(at, text.len(), word);
        }
    }
}

impl Spaces {
    /// Bytes of the last character of `matched` if it goes to what follows, else 0.
    fn given_back(self, matched: &str, at_end: bool) -> usize {
        let mut chars = matched.chars();
        let Some(last) = chars.next_back().filter(|_| !at_end) else { return 0 };
        let gives = match self {
            Self::Kept => false,
            Self::LastGoesOn => last.is_whitespace(),
            Self::LastGoesOnUnlessLineBreak | Self::ByPowersOfTwo => {
                last.is_whitespace() && !matches!(last, '\r' | '\n')
            }
        };
        // A run of one is kept whole.
        if gives && !chars.as_str().is_empty() { last.len_utf8() } else { 0 }
    }
}

/// Whether a match is white space that does not end in a line break.
fn is_run_of_spaces(matched: &str) -> bool {
    !matched.ends_with(['\r', '\n']) && matched.chars().all(char::is_whitespace)
}

/// Cuts a run of white space into 512s, then 256, 128 ... 4, then at most 2, then 1; without the last character, which goes
/// to what follows, unless the text ends here or nothing else is left. Returns where it came to.
fn cut_by_powers_of_two(start: usize, run: &str, at_end: bool, cut: &mut dyn FnMut(usize, usize)) -> usize {
    let bounds: Vec<usize> = run.char_indices().map(|(at, _)| start + at).chain([start + run.len()]).collect();
    let count = bounds.len() - 1;
    let mut left = if at_end { count } else { (count - 1).max(1) };
    let mut at = 0;
    let bound = |index: usize| bounds.get(index).copied().unwrap_or(start + run.len());
    while left > 0 {
        let take = if left < 4 { left.min(2) } else { (1 << left.ilog2()).min(512) };
        cut(bound(at), bound(at + take));
        (at, left) = (at + take, left - take);
    }
    bound(at)
}

/// Groups of three digits, counted from the right of their run. The first group of one or two, or of three where there is
/// none, stays with the text before it: so llama.cpp does it, and later stages separate the two.
fn digits_from_the_right(digits: &Regex, text: &str, cut: &mut dyn FnMut(usize, usize)) {
    let mut at = 0;
    for run in digits.find_iter(text) {
        let count = run.as_str().chars().count();
        // How many characters lie before the next cut.
        let mut group = if count % 3 == 0 { 3 } else { count % 3 };
        for (index, _) in run.as_str().char_indices() {
            if group == 0 {
                cut(at, run.start() + index);
                at = run.start() + index;
                group = 3;
            }
            group -= 1;
        }
        cut(at, run.end());
        at = run.end();
    }
    cut(at, text.len());
}
