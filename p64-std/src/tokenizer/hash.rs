//! The hash of the tokenizer's tables. Building a vocabulary hashes every token, and encoding looks up two pairs per byte of
//! text, so it is one multiplication for each 16 bytes.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Folded multiplications with random keys, so that a file cannot choose texts or pairs that collide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folding {
    keys: [u64; 2],
    hash: u64,
}

impl Default for Folding {
    fn default() -> Self {
        let random = RandomState::new();
        let keys = [0_u64, 1].map(|n| random.hash_one(n));
        Self { keys, hash: keys[0] }
    }
}

impl Folding {
    /// The hash of some bytes and their number.
    pub(super) fn of(&self, bytes: &[u8]) -> u64 {
        let [mut hash, key] = self.keys;
        let (chunks, rest) = bytes.as_chunks::<16>();
        for chunk in chunks {
            let value = u128::from_le_bytes(*chunk);
            hash = fold(low(value) ^ key, low(value >> 64) ^ hash);
        }
        // The ends of what is left, which overlap or leave nothing between them.
        let (first, last) = if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
            (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
        } else if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
            (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into())
        } else {
            (rest.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)), 0)
        };
        hash = fold(first ^ key, last ^ hash);
        fold(hash ^ bytes.len() as u64, 0x9e37_79b9_7f4a_7c15)
    }
}

impl BuildHasher for Folding {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        *self
    }
}

impl Hasher for Folding {
    fn write(&mut self, bytes: &[u8]) {
        self.hash ^= self.of(bytes);
    }

    fn write_u64(&mut self, value: u64) {
        self.hash = fold(value ^ self.hash, 0x9e37_79b9_7f4a_7c15);
    }

    fn write_u8(&mut self, value: u8) {
        self.hash = self.hash.rotate_left(8) ^ u64::from(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    low(product) ^ low(product >> 64)
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves are taken one by one")]
const fn low(value: u128) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Texts that differ in one byte, in their length alone, or in the order of their parts.
    #[test]
    fn near_texts_differ() {
        let folding = Folding::default();
        let mut texts: Vec<Vec<u8>> = (0..70).flat_map(|len| [vec![0; len], vec![b'x'; len]]).collect();
        for len in [1, 3, 4, 7, 8, 15, 16, 17, 31, 40] {
            for at in 0..len {
                for byte in 1..=255 {
                    let mut text = vec![0; len];
                    text[at] = byte;
                    texts.push(text);
                }
            }
        }
        texts.sort();
        texts.dedup();
        let hashes: HashSet<u64> = texts.iter().map(|text| folding.of(text)).collect();
        assert_eq!(hashes.len(), texts.len());
        assert_eq!(folding.of(b"abc"), folding.of(&b"xabc"[1..]));
    }
}
