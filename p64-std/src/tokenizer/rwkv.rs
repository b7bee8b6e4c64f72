//! RWKV's World vocabulary: the longest token that fits, from the front. Its tokens are bytes, written with escapes.

use super::trie::Trie;
use super::vocab::Vocabulary;

/// The tokens by their bytes.
#[derive(Clone, Debug)]
pub(super) struct Rwkv {
    trie: Trie,
    unknown: Option<u32>,
}

impl Rwkv {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let texts: Vec<(u32, Vec<u8>)> = vocabulary.texts.iter().map(|(id, text)| (id, unescape(text))).collect();
        let trie = Trie::new(texts.iter().map(|(id, text)| (*id, &text[..])));
        Self { trie, unknown: vocabulary.unknown() }
    }

    /// Appends the tokens of a fragment; a byte that begins no token is the unknown token, or nothing where there is none.
    pub(super) fn encode(&self, mut text: &[u8], out: &mut Vec<u32>) {
        while !text.is_empty() {
            let (len, id) = self.trie.longest(text).map_or((1, self.unknown), |(len, id)| (len, Some(id)));
            out.extend(id);
            text = text.get(len..).unwrap_or_default();
        }
    }
}

/// `\t`, `\n`, `\r`, `\xNN` with lower-case digits; any other character after a backslash is itself.
pub(super) fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    let digit = |byte: u8| if byte >= b'a' { byte - b'a' + 10 } else { byte.wrapping_sub(b'0') };
    while let Some(&byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b't') => out.push(b'\t'),
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b'x') => {
                if let (Some(&high), Some(&low)) = (bytes.next(), bytes.next()) {
                    out.push((digit(high) << 4).wrapping_add(digit(low)));
                }
            }
            Some(&other) => out.push(other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        assert_eq!(unescape(br"a\t\n\r\\\'\x00\xffb\x1"), b"a\t\n\r\\'\0\xffb");
        assert_eq!(unescape(b"\\"), b"");
    }
}
