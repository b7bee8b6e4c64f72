//! The texts of a vocabulary: one arena of bytes, and an index from bytes to ids.

use std::hash::{BuildHasher, Hasher, RandomState};

/// `n` byte strings in one allocation, found by id or by content.
///
/// ```text
/// bytes  every text, one after the other
/// ends   n x u32: where text i ends in `bytes`
/// slots  a power of two >= 2 n of (tag, id): open addressing, linear probing
/// ```
///
/// The tag is a part of the hash, so that looking for a text that is not there, the common case of merging, touches one
/// cache line and not the arena. The hash is keyed at random: a file cannot choose texts that collide.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    slots: Vec<Slot>,
    hasher: RandomState,
    longest: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    tag: u32,
    id: u32,
}

const EMPTY: Slot = Slot { tag: 0, id: u32::MAX };

impl Texts {
    /// Collects texts; the id of each is its place. `None` when they pass 4 GiB or 2^32 - 1 texts.
    ///
    /// An empty text has an id but is never found by content; of equal texts the lowest id is found.
    pub(super) fn collect<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let (mut bytes, mut ends, mut longest) = (Vec::new(), Vec::new(), 0);
        for text in texts {
            bytes.extend_from_slice(text);
            ends.push(u32::try_from(bytes.len()).ok()?);
            longest = longest.max(text.len());
        }
        let count = u32::try_from(ends.len()).ok().filter(|&n| n < u32::MAX)?;
        let slots = vec![EMPTY; ends.len().checked_mul(2)?.next_power_of_two()];
        let mut all = Self { bytes, ends, slots, hasher: RandomState::new(), longest };
        for id in 0..count {
            all.insert(id);
        }
        Some(all)
    }

    fn insert(&mut self, id: u32) {
        let Some(text) = self.get(id).filter(|text| !text.is_empty()) else { return };
        let (at, tag) = self.place(text);
        if let Err(free) = self.probe(at, tag, text)
            && let Some(slot) = self.slots.get_mut(free)
        {
            *slot = Slot { tag, id };
        }
    }

    fn place(&self, text: &[u8]) -> (usize, u32) {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(text);
        let hash = hasher.finish();
        // The two halves: where to begin, and what to compare there.
        ((hash & 0xffff_ffff) as usize, (hash >> 32) as u32)
    }

    /// The id of `text`, or the free slot where it would stand.
    fn probe(&self, at: usize, tag: u32, text: &[u8]) -> Result<u32, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = at & mask;
        // Half of the slots are free, so the walk ends.
        while let Some(slot) = self.slots.get(at).filter(|slot| slot.id != EMPTY.id) {
            if slot.tag == tag && self.get(slot.id) == Some(text) {
                return Ok(slot.id);
            }
            at = at.wrapping_add(1) & mask;
        }
        Err(at)
    }

    /// Number of texts.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of the longest text.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// The text of an id.
    pub(super) fn get(&self, id: u32) -> Option<&[u8]> {
        let id = usize::try_from(id).ok()?;
        let end = *self.ends.get(id)? as usize;
        let start = id.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |&end| end as usize);
        self.bytes.get(start..end)
    }

    /// The lowest id whose text is `text`.
    pub(super) fn find(&self, text: &[u8]) -> Option<u32> {
        if text.is_empty() || text.len() > self.longest {
            return None;
        }
        let (at, tag) = self.place(text);
        self.probe(at, tag, text).ok()
    }

    /// The texts in the order of their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        (0..).map_while(|id| self.get(id).map(|text| (id, text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_it_holds_and_nothing_else() {
        let words: Vec<String> = (0..5000).map(|i| format!("w{}", i * 7)).collect();
        let texts = Texts::collect(words.iter().map(|w| w.as_bytes())).unwrap();
        assert_eq!((texts.len(), texts.longest()), (5000, 6));
        for (id, word) in (0..).zip(&words) {
            assert_eq!((texts.find(word.as_bytes()), texts.get(id)), (Some(id), Some(word.as_bytes())));
        }
        assert_eq!([texts.find(b"w1"), texts.find(b""), texts.find(b"w34993w34993")], [None; 3]);
        assert_eq!(texts.get(5000), None);
    }

    #[test]
    fn equal_texts_keep_their_ids_and_the_lowest_is_found() {
        let texts = Texts::collect([&b"b"[..], b"a", b"", b"a"].into_iter()).unwrap();
        assert_eq!((texts.find(b"a"), texts.get(3), texts.get(2)), (Some(1), Some(&b"a"[..]), Some(&b""[..])));
        assert!(Texts::collect(std::iter::empty()).unwrap().find(b"a").is_none());
    }
}
