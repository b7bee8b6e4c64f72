//! A set of texts as a trie: which of them does another text begin with?

/// Nodes in breadth-first order, so that the children of a node lie side by side, sorted by their byte.
///
/// ```text
/// node      0    the root
/// byte      n x u8    the byte that leads to a node
/// children  n x u32   where a node's children begin; they end where the next node's begin
/// value     n x u32   the id of the text that ends here, or NONE
/// ```
#[derive(Clone, Debug)]
pub(super) struct Trie {
    bytes: Vec<u8>,
    children: Vec<u32>,
    values: Vec<u32>,
}

/// No text ends at a node.
const NONE: u32 = u32::MAX;

impl Trie {
    /// Of equal texts the lowest id counts; an empty text is never met.
    pub(super) fn new<'a>(texts: impl Iterator<Item = (u32, &'a [u8])>) -> Self {
        let mut sorted: Vec<(&[u8], u32)> = texts.map(|(id, text)| (text, id)).collect();
        sorted.sort_unstable();
        let mut trie = Self { bytes: vec![0], children: Vec::new(), values: vec![NONE] };
        // The texts that pass a node, and how many bytes lead to it.
        let mut level = vec![(0, sorted.len())];
        let mut depth = 0;
        while !level.is_empty() {
            let mut next = Vec::new();
            for (from, to) in level {
                trie.children.push(u32::try_from(trie.bytes.len()).unwrap_or(NONE));
                let mut at = from;
                while let Some((text, _)) = sorted.get(at).filter(|_| at < to) {
                    let Some(&byte) = text.get(depth) else {
                        at += 1;
                        continue;
                    };
                    let rest = sorted.get(at..to).unwrap_or_default();
                    let end = at + rest.partition_point(|(text, _)| text.get(depth) == Some(&byte));
                    // The one that ends at the new node sorts before those that pass it.
                    let value = sorted.get(at).filter(|(text, _)| text.len() == depth + 1).map_or(NONE, |(_, id)| *id);
                    trie.bytes.push(byte);
                    trie.values.push(value);
                    next.push((at, end));
                    at = end;
                }
            }
            level = next;
            depth += 1;
        }
        trie.children.push(u32::try_from(trie.bytes.len()).unwrap_or(NONE));
        trie
    }

    fn child(&self, node: usize, byte: u8) -> Option<usize> {
        let (from, to) = (*self.children.get(node)? as usize, *self.children.get(node + 1)? as usize);
        let bytes = self.bytes.get(from..to)?;
        // Few nodes have many children.
        let at = if bytes.len() <= 8 { bytes.iter().position(|&b| b == byte) } else { bytes.binary_search(&byte).ok() };
        Some(from + at?)
    }

    /// Calls `found` with the length and id of every text that `text` begins with, shortest first. Returns how many bytes of
    /// `text` are the beginning of any.
    pub(super) fn prefixes(&self, text: &[u8], mut found: impl FnMut(usize, u32)) -> usize {
        let (mut node, mut depth) = (0, 0);
        for &byte in text {
            let Some(child) = self.child(node, byte) else { break };
            (node, depth) = (child, depth + 1);
            if let Some(&id) = self.values.get(node).filter(|&&id| id != NONE) {
                found(depth, id);
            }
        }
        depth
    }

    /// The longest text that `text` begins with: its length and id.
    pub(super) fn longest(&self, text: &[u8]) -> Option<(usize, u32)> {
        let mut longest = None;
        self.prefixes(text, |len, id| longest = Some((len, id)));
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_prefix() {
        let words = ["a", "ab", "abcd", "b", "", "ab", "\u{e9}"];
        let trie = Trie::new((0..).zip(words.iter().map(|word| word.as_bytes())));
        let all = |text: &str| {
            let mut found = Vec::new();
            let depth = trie.prefixes(text.as_bytes(), |len, id| found.push((len, id)));
            (depth, found)
        };
        assert_eq!(all("abcde"), (4, vec![(1, 0), (2, 1), (4, 2)]));
        assert_eq!(all("abcx"), (3, vec![(1, 0), (2, 1)]));
        assert_eq!(all("\u{e8}"), (1, vec![]));
        assert_eq!(all(""), (0, vec![]));
        assert_eq!(trie.longest("\u{e9}a".as_bytes()), Some((2, 6)));
        assert_eq!(Trie::new(std::iter::empty()).longest(b"a"), None);
    }

    #[test]
    fn many_children() {
        let words: Vec<[u8; 2]> = (0..=255).map(|byte| [b'x', byte]).collect();
        let trie = Trie::new((0..).zip(words.iter().map(|word| &word[..])));
        for byte in 0..=255 {
            assert_eq!(trie.longest(&[b'x', byte, 0]), Some((2, byte.into())));
        }
    }
}
