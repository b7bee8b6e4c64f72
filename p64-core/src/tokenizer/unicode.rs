//! The classes of characters that pre-tokenizers split by: letters, numbers, punctuation.
//!
//! `core` knows white space and numbers but no general categories (its `is_alphabetic` takes in marks, so that Hindi or
//! Thai would be split elsewhere). So there is a table, 2 KB of runs in the order of the code points:
//!
//! ```text
//! run    LEB128 of   length << 2 | class      0 other, 1 letter, 2 number, 3 punctuation
//! ```
//!
//! A look-up walks it from the front: a few steps for Latin text, at most 2,000 for the last plane. The alternative was to
//! refuse text beyond ASCII, in half of the world's languages. The table is not linked unless text is encoded.
//! `tests/tests/unicode_classes.rs` writes it (`P64_BLESS=1`) and compares every character with the `regex` crate.

/// General category of a character, as far as pre-tokenizers care.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// None of the others.
    Other,
    /// `\p{L}`.
    Letter,
    /// `\p{N}`.
    Number,
    /// `\p{P}`.
    Punctuation,
}

static RUNS: &[u8] = include_bytes!("classes.bin");

/// The class of a character (Unicode 16.0).
#[must_use]
pub fn class(c: char) -> Class {
    runs().find(|(end, _)| u32::from(c) < *end).map_or(Class::Other, |(_, class)| class)
}

/// The table: for each run of characters of one class the code point after its last, and the class. What follows the last
/// run has none.
pub fn runs() -> impl Iterator<Item = (u32, Class)> {
    let (mut bytes, mut end) = (RUNS.iter(), 0u32);
    core::iter::from_fn(move || {
        let (mut run, mut shift) = (0u32, 0u32);
        loop {
            let byte = *bytes.next()?;
            run |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                break;
            }
            shift = shift.saturating_add(7);
        }
        end = end.saturating_add(run >> 2);
        let class = match run & 3 {
            1 => Class::Letter,
            2 => Class::Number,
            3 => Class::Punctuation,
            _ => Class::Other,
        };
        Some((end, class))
    })
}

/// The first character of a text and its bytes. A byte that is no part of a well-formed one counts as U+FFFD.
pub(super) fn first_char(text: &[u8]) -> Option<(char, &[u8])> {
    let len = match text.first()? {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let whole = text.get(..len).and_then(|bytes| Some((core::str::from_utf8(bytes).ok()?.chars().next()?, bytes)));
    whole.or_else(|| Some((char::REPLACEMENT_CHARACTER, text.get(..1)?)))
}

/// The characters of a text, with their bytes.
pub(super) fn chars(mut text: &[u8]) -> impl Iterator<Item = (char, &[u8])> + Clone {
    core::iter::from_fn(move || {
        let (c, bytes) = first_char(text)?;
        text = text.get(bytes.len()..)?;
        Some((c, bytes))
    })
}
