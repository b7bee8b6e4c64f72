//! The patterns that most models split by, as code: no expression has to be compiled when a model is opened, and text in ASCII
//! is split by a table. `pre/tests.rs` compares them with the patterns themselves, run by `regex`.

use std::sync::LazyLock;

use p64_core::tokenizer::unicode::{self, Class};

/// GPT-2's words.
#[cfg(test)]
pub(super) const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";
/// One number.
#[cfg(test)]
pub(super) const NUMBER: &str = r"\p{N}";
/// Words of Llama 3, with numbers of up to three, and of Qwen 2, with single ones.
pub(super) const LLAMA3: &str = concat!(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
/// The other of the two.
#[cfg(test)]
pub(super) const QWEN2: &str = concat!(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);

/// What a character is to these patterns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Letter,
    Number,
    Space,
    Other,
}

const ASCII: [Kind; 128] = {
    let mut kinds = [Kind::Other; 128];
    let mut byte = 0u8;
    while byte < 128 {
        kinds[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Kind::Letter,
            b'0'..=b'9' => Kind::Number,
            b'\t'..=b'\r' | b' ' => Kind::Space,
            _ => Kind::Other,
        };
        byte += 1;
    }
    kinds
};

/// Core's table of runs, for a search instead of a walk.
static RUNS: LazyLock<Vec<(u32, Class)>> = LazyLock::new(|| unicode::runs().collect());

#[cold]
fn beyond_ascii(c: char) -> Kind {
    if c.is_whitespace() {
        return Kind::Space;
    }
    let at = RUNS.partition_point(|(end, _)| *end <= u32::from(c));
    match RUNS.get(at).map_or(Class::Other, |(_, class)| *class) {
        Class::Letter => Kind::Letter,
        Class::Number => Kind::Number,
        Class::Other | Class::Punctuation => Kind::Other,
    }
}

/// Kind and bytes of the character at `at`; `None` at the end.
fn kind(text: &str, at: usize) -> Option<(Kind, usize)> {
    let byte = *text.as_bytes().get(at)?;
    if let Some(kind) = ASCII.get(usize::from(byte)) {
        return Some((*kind, 1));
    }
    let c = text.get(at..)?.chars().next()?;
    Some((beyond_ascii(c), c.len_utf8()))
}

/// Where the characters of a kind end that begin at `at`.
fn run(text: &str, mut at: usize, of: Kind) -> usize {
    while let Some((_, len)) = kind(text, at).filter(|(kind, _)| *kind == of) {
        at += len;
    }
    at
}

/// Where the next number at or behind `at` begins and ends.
pub(super) fn number(text: &str, mut at: usize) -> Option<(usize, usize)> {
    loop {
        let (kind, len) = kind(text, at)?;
        if kind == Kind::Number {
            return Some((at, at + len));
        }
        at += len;
    }
}

/// Where the word of [`GPT2`] ends that begins at `at`, before the text's end. A run of white space leaves its last character to
/// what follows.
pub(super) fn gpt2(text: &str, at: usize) -> usize {
    let Some((first, len)) = kind(text, at) else { return at };
    let bytes = text.as_bytes().get(at..).unwrap_or_default();
    match bytes {
        [b'\'', b's' | b't' | b'm' | b'd', ..] => return at + 2,
        [b'\'', b'r' | b'v', b'e', ..] | [b'\'', b'l', b'l', ..] => return at + 3,
        _ => {}
    }
    if first != Kind::Space {
        return run(text, at + len, first);
    }
    match kind(text, at + 1).filter(|_| bytes.first() == Some(&b' ')) {
        Some((second, len)) if second != Kind::Space => run(text, at + 1 + len, second),
        _ => give_back(text, at, run(text, at, Kind::Space)),
    }
}

/// The same of [`LLAMA3`], with up to `numbers` numbers to a word.
pub(super) fn tiktoken(text: &str, at: usize, numbers: usize) -> usize {
    let Some((first, len)) = kind(text, at) else { return at };
    let bytes = text.as_bytes().get(at..).unwrap_or_default();
    match bytes {
        [b'\'', b's' | b'S' | b't' | b'T' | b'm' | b'M' | b'd' | b'D', ..] => return at + 2,
        [b'\'', b'r' | b'R' | b'v' | b'V', b'e' | b'E', ..] | [b'\'', b'l' | b'L', b'l' | b'L', ..] => return at + 3,
        _ => {}
    }
    let second = || kind(text, at + len);
    match first {
        Kind::Letter => run(text, at, Kind::Letter),
        Kind::Number => {
            let mut end = at;
            for _ in 0..numbers {
                let Some((_, len)) = kind(text, end).filter(|(kind, _)| *kind == Kind::Number) else { break };
                end += len;
            }
            end
        }
        _ if !matches!(bytes, [b'\r' | b'\n', ..]) && second().is_some_and(|(kind, _)| kind == Kind::Letter) => {
            run(text, at + len, Kind::Letter)
        }
        Kind::Other => line_breaks(text, run(text, at, Kind::Other)),
        Kind::Space => {
            if bytes.first() == Some(&b' ') && second().is_some_and(|(kind, _)| kind == Kind::Other) {
                return line_breaks(text, run(text, at + 1, Kind::Other));
            }
            let end = run(text, at, Kind::Space);
            let spaces = text.get(at..end).unwrap_or_default();
            // `\s*[\r\n]+` ends with the last line break of the run.
            match spaces.rfind(['\r', '\n']) {
                Some(last) => at + last + 1,
                None => give_back(text, at, end),
            }
        }
    }
}

fn line_breaks(text: &str, mut at: usize) -> usize {
    while let Some(b'\r' | b'\n') = text.as_bytes().get(at) {
        at += 1;
    }
    at
}

/// The end of a run of white space without its last character, unless the text ends there or nothing else is in it.
fn give_back(text: &str, at: usize, end: usize) -> usize {
    let last = text.get(at..end).and_then(|spaces| spaces.chars().next_back()).map_or(0, char::len_utf8);
    if end < text.len() && end - last > at { end - last } else { end }
}
