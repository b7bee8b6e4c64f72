//! Whether bytes are UTF-8, for all strings of a section at once.
//!
//! The standard library's check goes character by character, and most tokens have one that is not ASCII: of a vocabulary of
//! 262,144 tokens it takes several milliseconds. This one looks at each byte with the three before it, without a branch, so
//! that the compiler makes vector instructions of it.

/// Whether `bytes` are well-formed UTF-8 (Unicode 15, table 3-7).
pub(super) fn is_utf8(bytes: &[u8]) -> bool {
    // Without vectors the standard library's is the faster one, and there already.
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return core::str::from_utf8(bytes).is_ok();
    }
    let &[a, b, c, ..] = bytes else { return core::str::from_utf8(bytes).is_ok() };
    let mut wrong = is_wrong(a, 0, 0, 0) | is_wrong(b, a, 0, 0) | is_wrong(c, b, a, 0);
    let behind = |by: usize| bytes.get(by..).unwrap_or_default();
    let [third, second, first, byte] = [0, 1, 2, 3].map(behind);
    for (((byte, first), second), third) in byte.iter().zip(first).zip(second).zip(third) {
        wrong |= is_wrong(*byte, *first, *second, *third);
    }
    // No character may want a byte that is not there.
    let cut = matches!(bytes, [.., 0xf0..=0xff, _, _] | [.., 0xe0..=0xff, _] | [.., 0xc0..=0xff]);
    wrong == 0 && !cut
}

/// 1 for a byte that cannot stand behind `first`, which is behind `second`, which is behind `third`.
const fn is_wrong(byte: u8, first: u8, second: u8, third: u8) -> u8 {
    let continues = byte & 0xc0 == 0x80;
    let must_continue = (first >= 0xc0) | (second >= 0xe0) | (third >= 0xf0);
    // Overlong forms, surrogates, and what lies past U+10FFFF.
    let narrow = ((first == 0xe0) & (byte < 0xa0))
        | ((first == 0xed) & (byte > 0x9f))
        | ((first == 0xf0) & (byte < 0x90))
        | ((first == 0xf4) & (byte > 0x8f));
    let never = (byte == 0xc0) | (byte == 0xc1) | (byte >= 0xf5);
    if (continues != must_continue) | narrow | never { 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn agrees(bytes: &[u8]) {
        assert_eq!(is_utf8(bytes), core::str::from_utf8(bytes).is_ok(), "{bytes:x?}");
    }

    /// Every lead byte with every second byte, and the third and fourth at the edges of their ranges, behind and before text.
    #[test]
    fn agrees_with_the_standard_library() {
        let edges = [0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0xff];
        for first in 0..=255u8 {
            for second in 0..=255u8 {
                agrees(&[first, second]);
                for third in edges {
                    agrees(&[first, second, third]);
                    agrees(&[b'a', b'b', b'c', b'd', first, second, third, b'e']);
                    for fourth in edges {
                        agrees(&[first, second, third, fourth]);
                    }
                }
            }
        }
    }

    #[test]
    fn every_character_and_every_cut_of_it() {
        let mut utf8 = [0; 4];
        for c in ('\0'..=char::MAX).step_by(7).chain(['\u{7ff}', '\u{800}', '\u{ffff}', '\u{10000}', char::MAX]) {
            let text = c.encode_utf8(&mut utf8).as_bytes();
            let long: Vec<u8> = [&[b'x'; 70][..], text].concat();
            for len in 70..=long.len() {
                agrees(&long[..len]);
            }
            for len in 0..text.len() {
                agrees(&text[..len]);
                agrees(&text[len..]);
            }
        }
    }
}
