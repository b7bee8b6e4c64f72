//! SentencePiece's precompiled normalisation: which beginnings of a text are replaced by what.
//!
//! ```text
//! u32            bytes of the double array
//! n x u32        the double array, XOR-compressed (Kanda 2018): a trie whose edges are bytes
//!                bits 10..30 offset to the children, bit 9 the offset times 256, bit 8 a replacement ends here,
//!                bits 0..7 and 31 the label; with a replacement's node, bits 0..30 its place
//! rest           the replacements, each ended by a zero byte
//! ```

/// Bytes of the longest beginning that is looked for, and of the longest replacement. Those of NFKC end at 18 and 33. A file
/// may hold a double array whose walks never end, and one replacement for every character that is as long as the file: these
/// bound the work and the memory for each byte of a text.
const MOST: usize = 128;

/// A double array and its replacements.
#[derive(Clone, Default, Debug)]
pub(super) struct CharsMap {
    nodes: Vec<u32>,
    replacements: Vec<u8>,
}

impl CharsMap {
    /// Reads a blob; `None` when the double array does not end before it, or when a replacement has more than [`MOST`] bytes.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (len, rest) = bytes.split_first_chunk()?;
        let (nodes, replacements) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
        if replacements.is_empty() || replacements.split(|&byte| byte == 0).any(|one| one.len() > MOST) {
            return None;
        }
        let (nodes, _) = nodes.as_chunks();
        let nodes = nodes.iter().map(|node| u32::from_le_bytes(*node)).collect();
        Some(Self { nodes, replacements: replacements.to_vec() })
    }

    /// The longest beginning of `text` that is replaced: its length and the replacement. A walk that leaves the double array,
    /// or a replacement that never ends, counts as no match.
    pub(super) fn longest(&self, text: &[u8]) -> Option<(usize, &[u8])> {
        let node = |at: u32| usize::try_from(at).ok().and_then(|at| self.nodes.get(at)).copied();
        let base = |packed: u32| (packed >> 10) << ((packed & (1 << 9)) >> 6);
        let mut at = base(node(0)?);
        let mut found = None;
        for (len, &byte) in (1..=MOST).zip(text) {
            at ^= u32::from(byte);
            let Some(packed) = node(at).filter(|_| byte != 0) else { break };
            if packed & (1 << 31 | 0xff) != u32::from(byte) {
                break;
            }
            at ^= base(packed);
            if packed >> 8 & 1 != 0 {
                found = node(at).map(|packed| (len, packed & (u32::MAX >> 1)));
            }
        }
        let (len, place) = found?;
        let replacement = self.replacements.get(usize::try_from(place).ok()?..)?;
        let end = replacement.iter().position(|&byte| byte == 0)?;
        Some((len, replacement.get(..end)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A double array by hand: `a` becomes `xy`, `ab` becomes nothing.
    fn example() -> Vec<u8> {
        let mut nodes = vec![1_u32 << 31; 512];
        // The root's children are at 256 ^ byte, a's at 128 ^ byte, and a replacement at the children's place itself.
        nodes[0] = 256 << 10;
        nodes[256 ^ 0x61] = ((256 ^ 0x61 ^ 128) << 10) | 1 << 8 | 0x61;
        nodes[128] = 1 << 31;
        nodes[128 ^ 0x62] = ((128 ^ 0x62 ^ 64) << 10) | 1 << 8 | 0x62;
        nodes[64] = 1 << 31 | 3;
        let mut bytes = 2048_u32.to_le_bytes().to_vec();
        nodes.iter().for_each(|node| bytes.extend(node.to_le_bytes()));
        bytes.extend(b"xy\0\0");
        bytes
    }

    #[test]
    fn finds_the_longest() {
        let map = CharsMap::parse(&example()).unwrap();
        assert_eq!(map.longest(b"ac"), Some((1, &b"xy"[..])));
        assert_eq!(map.longest(b"abc"), Some((2, &b""[..])));
        assert_eq!([map.longest(b"b"), map.longest(b""), map.longest(b"\0")], [None; 3]);
    }

    #[test]
    fn a_replacement_as_long_as_the_file_is_refused() {
        let mut bytes = example();
        bytes.splice(bytes.len() - 4.., [b'x'; MOST].into_iter().chain([0]));
        assert!(CharsMap::parse(&bytes).is_some());
        bytes.splice(bytes.len() - 1.., [b'x', 0]);
        assert!(CharsMap::parse(&bytes).is_none());
    }

    /// Every node leads to itself: a walk would be as long as the text, for every byte of it.
    #[test]
    fn a_walk_without_an_end_is_cut_short() {
        let mut nodes = vec![1_u32 << 31; 256];
        nodes[0x61] = 0x61 << 10 | 0x61;
        let mut bytes = 1024_u32.to_le_bytes().to_vec();
        nodes.iter().for_each(|node| bytes.extend(node.to_le_bytes()));
        bytes.extend(b"xy\0\0");
        let map = CharsMap::parse(&bytes).unwrap();
        let text = vec![b'a'; 2_000_000];
        assert!((0..text.len()).all(|from| map.longest(&text[from..]).is_none()));
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        assert!(CharsMap::parse(&[]).is_none() && CharsMap::parse(&[0; 4]).is_none());
        assert!(CharsMap::parse(&[9, 0, 0, 0, 1, 2, 3]).is_none());
        let mut bytes = example();
        for at in 0..bytes.len() {
            bytes[at] ^= 0xff;
            if let Some(map) = CharsMap::parse(&bytes) {
                for text in [&b"abab"[..], b"\xff\xff\xff", b"b"] {
                    let _ = map.longest(text);
                }
            }
            bytes[at] ^= 0xff;
        }
    }
}
