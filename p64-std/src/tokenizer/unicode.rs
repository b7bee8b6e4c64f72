//! Characters as WordPiece sees them: general categories, simple lower case, and what is left without accents.

use std::sync::LazyLock;

use regex_syntax::hir::HirKind;

/// Inclusive ranges, ascending.
#[derive(Debug)]
pub(super) struct Set(Vec<(char, char)>);

impl Set {
    fn of(pattern: &str) -> Self {
        let parsed = regex_syntax::parse(pattern).map(|hir| hir.into_kind());
        let Ok(HirKind::Class(regex_syntax::hir::Class::Unicode(class))) = parsed else { return Self(Vec::new()) };
        Self(class.ranges().iter().map(|range| (range.start(), range.end())).collect())
    }

    /// Whether a character is of the set.
    pub(super) fn contains(&self, c: char) -> bool {
        let after = self.0.partition_point(|&(from, _)| from <= c);
        after.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|&(_, to)| c <= to)
    }
}

/// Control, format and private-use characters.
pub(super) static CONTROL: LazyLock<Set> = LazyLock::new(|| Set::of(r"[\p{Cc}\p{Cf}\p{Co}]"));
/// Combining marks.
pub(super) static MARK: LazyLock<Set> = LazyLock::new(|| Set::of(r"\p{M}"));
/// Punctuation, and ASCII's symbols but for DEL.
pub(super) static PUNCTUATION: LazyLock<Set> = LazyLock::new(|| Set::of(r"[\p{P}$+<=>\^`|~]"));

/// The lower-case form, one character: the first of its expansion.
pub(super) fn lower(c: char) -> char {
    if c.is_ascii() { c.to_ascii_lowercase() } else { c.to_lowercase().next().unwrap_or(c) }
}

/// The first character of the canonical decomposition. llama.cpp keeps this one alone: a letter without its accents, and of a
/// Hangul syllable only the first consonant.
pub(super) fn base(c: char) -> char {
    let mut first = None;
    if !c.is_ascii() {
        unicode_normalization::char::decompose_canonical(c, |part| {
            first.get_or_insert(part);
        });
    }
    first.unwrap_or(c)
}

/// Ideographs that stand as words of their own: the blocks of BERT's list, the fifth from where llama.cpp begins it.
pub(super) const fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}' | '\u{2a700}'..='\u{2b73f}'
        | '\u{2b740}'..='\u{2b81f}' | '\u{2b920}'..='\u{2ceaf}' | '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_case_and_accents() {
        assert!(CONTROL.contains('\u{1}') && CONTROL.contains('\u{200d}') && CONTROL.contains('\u{e000}'));
        assert!(!CONTROL.contains('a') && !CONTROL.contains('\u{378}'));
        assert!(MARK.contains('\u{301}') && !MARK.contains('\u{b4}'));
        assert!("!-/:@[`{~$+^|".chars().all(|c| PUNCTUATION.contains(c)) && !PUNCTUATION.contains('€'));
        assert_eq!(['A', 'É', 'İ', 'ß', 'Σ'].map(lower), ['a', 'é', 'i', 'ß', 'σ']);
        assert_eq!(['é', 'ệ', '가', 'a', '\u{301}', 'Ω'].map(base), ['e', 'e', '\u{1100}', 'a', '\u{301}', 'Ω']);
        assert!(is_ideograph('漢') && !is_ideograph('か'));
    }
}
