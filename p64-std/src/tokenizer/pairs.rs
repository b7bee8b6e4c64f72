//! The map of merges.

use std::collections::HashMap;

use super::hash::Folding;

/// (left, right) -> (rank, merged symbol). The lower rank merges first.
#[derive(Clone, Default, Debug)]
pub(super) struct Pairs(HashMap<u64, (u32, u32), Folding>);

impl Pairs {
    /// An empty map with room for some pairs.
    pub(super) fn with_capacity(pairs: usize) -> Self {
        Self(HashMap::with_capacity_and_hasher(pairs, Folding::default()))
    }

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
