//! The map of merges. Encoding looks up two pairs per byte of text, so their hash is one multiplication.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// (left, right) -> (rank, merged symbol). The lower rank merges first.
#[derive(Clone, Default, Debug)]
pub(super) struct Pairs(HashMap<u64, (u32, u32), Folding>);

impl Pairs {
    fn key(left: u32, right: u32) -> u64 {
        (u64::from(left) << 32) | u64::from(right)
    }

    pub(super) fn get(&self, left: u32, right: u32) -> Option<(u32, u32)> {
        self.0.get(&Self::key(left, right)).copied()
    }

    /// Adds a pair unless it is there: of equal merges the first counts.
    pub(super) fn add(&mut self, left: u32, right: u32, rank: u32, merged: u32) {
        self.0.entry(Self::key(left, right)).or_insert((rank, merged));
    }
}

/// A folded multiplication with a random key, so that a file cannot choose pairs that collide.
#[derive(Clone, Copy, Debug)]
struct Folding {
    hash: u64,
}

impl Default for Folding {
    fn default() -> Self {
        Self { hash: RandomState::new().hash_one(0_u64) }
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
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, value: u64) {
        let product = u128::from(value ^ self.hash) * 0x9e37_79b9_7f4a_7c15_u128;
        #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded into one")]
        let folded = product as u64 ^ (product >> 64) as u64;
        self.hash = folded;
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}
