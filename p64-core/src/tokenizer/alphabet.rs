//! The printable alphabet of byte-level BPE: one character per byte (GPT-2's `encoder.py`).
//!
//! Bytes that print in Latin-1 (`!`..=`~`, `¡`..=`¬`, `®`..=`ÿ`) stand for themselves; the other 68, in order, are U+0100
//! and up. The space is thus `Ġ` (U+0120) and the newline `Ċ` (U+010A).

/// Whether the byte is its own character.
const fn prints(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

/// How many bytes below `byte` do not print.
const fn rank(byte: u8) -> u8 {
    match byte {
        0..=0x20 => byte,
        0x7f..=0xa0 => byte.wrapping_sub(0x7f - 33),
        _ => 67, // U+00AD, the soft hyphen
    }
}

/// The character that stands for a byte.
#[must_use]
pub fn char_of(byte: u8) -> char {
    if prints(byte) { char::from(byte) } else { char::from_u32(0x100 | u32::from(rank(byte))).unwrap_or('\u{fffd}') }
}

/// The byte that a character stands for; `None` outside the alphabet.
#[must_use]
pub fn byte_of(c: char) -> Option<u8> {
    match u32::from(c) {
        code @ 0..=0xff => u8::try_from(code).ok().filter(|&byte| prints(byte)),
        code @ 0x100..=0x120 => u8::try_from(code & 0xff).ok(),
        code @ 0x121..=0x142 => u8::try_from((code & 0xff).wrapping_add(0x7f - 33)).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// The UTF-8 of the characters of `bytes`.
pub(super) fn utf8(bytes: impl Iterator<Item = u8> + Clone) -> impl Iterator<Item = u8> + Clone {
    bytes.flat_map(|byte| {
        let (mut utf8, c) = ([0; 4], char_of(byte));
        c.encode_utf8(&mut utf8);
        utf8.into_iter().take(c.len_utf8())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_bijection_with_gpt2s_landmarks() {
        assert!((0..=255).all(|byte| byte_of(char_of(byte)) == Some(byte)));
        let bytes = [b' ', b'\n', 0, 0x7f, 0xa0, 0xad, b'a', 0xff];
        assert_eq!(bytes.map(char_of), ['Ġ', 'Ċ', 'Ā', 'ġ', 'ł', 'Ń', 'a', 'ÿ']);
        // The 68 that do not print fill U+0100..=U+0143 without a gap.
        let high: std::collections::BTreeSet<char> = (0..=255).map(char_of).filter(|&c| c >= 'Ā').collect();
        assert_eq!(high, ('Ā'..='\u{143}').collect());
        assert_eq!(['\u{144}', ' ', '\n', '▁', '\u{ad}'].map(byte_of), [None; 5]);
    }
}
