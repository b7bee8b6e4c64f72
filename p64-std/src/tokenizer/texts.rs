//! The texts of a vocabulary: one arena of bytes, and an index from bytes to ids.

use p64_core::limits::MAX_VOCABULARY;
use p64_core::metadata::Array;

use super::hash::Folding;

/// `n` byte strings in one allocation, found by id or by content.
///
/// ```text
/// bytes  every text, `gap` bytes before each
/// ends   n x u32: where text i ends in `bytes`
/// slots  a power of two >= 2 n of tag << 20 | id + 1, or 0 for a free one: open addressing, linear probing
/// ```
///
/// The tag is a part of the hash, so that looking for a text that is not there, the common case of merging, touches one
/// cache line and not the arena. The hash is keyed at random: a file cannot choose texts that collide.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    /// 8 where `bytes` are an array's as it stands in a file, each text behind its length.
    gap: usize,
    ends: Vec<u32>,
    slots: Vec<u32>,
    hasher: Folding,
    longest: usize,
    repeats: bool,
}

/// The bits of a slot that hold an id: enough for the most tokens that a vocabulary may have.
const ID: u32 = (1 << 20) - 1;
const _: () = assert!(MAX_VOCABULARY < ID);

impl Texts {
    /// Collects texts; the id of each is its place. `None` when they pass 4 GiB or [`MAX_VOCABULARY`].
    ///
    /// An empty text has an id but is never found by content; of equal texts the lowest id is found.
    pub(super) fn collect<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for text in texts {
            bytes.extend_from_slice(text);
            ends.push(u32::try_from(bytes.len()).ok()?);
        }
        Self::index(bytes, 0, ends)
    }

    /// The same of an array of strings, whose bytes are copied as a whole.
    pub(super) fn of_array(array: &Array<'_>) -> Option<Self> {
        const LENGTH: usize = size_of::<u64>();
        u32::try_from(array.bytes().len()).ok()?;
        let mut ends = Vec::with_capacity(usize::try_from(array.len()).ok()?);
        let mut end = 0;
        for text in array.strings() {
            end += LENGTH + text.len();
            ends.push(u32::try_from(end).ok()?);
        }
        Self::index(array.bytes().to_vec(), LENGTH, ends)
    }

    fn index(bytes: Vec<u8>, gap: usize, ends: Vec<u32>) -> Option<Self> {
        let count = u32::try_from(ends.len()).ok().filter(|&n| n <= MAX_VOCABULARY)?;
        let slots = vec![0; ends.len().checked_mul(2)?.next_power_of_two()];
        let mut all = Self { bytes, gap, ends, slots, hasher: Folding::default(), longest: 0, repeats: false };
        for id in 0..count {
            all.insert(id);
        }
        Some(all)
    }

    fn insert(&mut self, id: u32) {
        let Some(text) = self.get(id).filter(|text| !text.is_empty()) else { return };
        let len = text.len();
        let hash = self.hasher.of(text);
        match self.probe(hash, text) {
            Err(free) => {
                if let Some(slot) = self.slots.get_mut(free) {
                    *slot = tag(hash) | (id + 1);
                }
            }
            Ok(_) => self.repeats = true,
        }
        self.longest = self.longest.max(len);
    }

    /// The id of `text`, or the free slot where it would stand. The hash's lower half says where to begin, its upper bits are
    /// compared there.
    fn probe(&self, hash: u64, text: &[u8]) -> Result<u32, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = (hash & 0xffff_ffff) as usize & mask;
        // Half of the slots are free, so the walk ends.
        while let Some(&slot) = self.slots.get(at).filter(|slot| **slot != 0) {
            let id = (slot & ID).wrapping_sub(1);
            if slot & !ID == tag(hash) && self.get(id) == Some(text) {
                return Ok(id);
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
        self.bytes.get(start + self.gap..end)
    }

    /// The lowest id whose text is `text`.
    pub(super) fn find(&self, text: &[u8]) -> Option<u32> {
        if text.is_empty() || text.len() > self.longest {
            return None;
        }
        self.probe(self.hasher.of(text), text).ok()
    }

    /// Whether two texts are equal, so that an id's text may be found under a lower one.
    pub(super) const fn repeats(&self) -> bool {
        self.repeats
    }

    /// The texts in the order of their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        (0..).map_while(|id| self.get(id).map(|text| (id, text)))
    }
}

/// The upper twelve bits of a hash, as they stand in a slot.
const fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32 & !ID
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
    fn an_array_is_the_same_as_its_texts() {
        let mut pairs = crate::write::Pairs::new();
        let words = ["", "a", "bc", "a", "", "a longer one than sixteen bytes", "\u{2581}"];
        pairs.str_array("words", &words);
        let area = pairs.to_area();
        let metadata = p64_core::metadata::Metadata::parse(&area, 0).unwrap();
        let array = metadata.array("words").unwrap().unwrap();
        let [texts, others] =
            [Texts::of_array(&array).unwrap(), Texts::collect(words.iter().map(|w| w.as_bytes())).unwrap()];
        assert!(texts.iter().eq(others.iter()) && texts.repeats() && others.repeats());
        assert_eq!((texts.longest(), others.longest()), (31, 31));
        for word in words {
            assert_eq!(texts.find(word.as_bytes()), others.find(word.as_bytes()));
        }
        assert_eq!((texts.find(b"a"), texts.find(b"bc"), texts.get(7)), (Some(1), Some(2), None));
    }

    #[test]
    fn equal_texts_keep_their_ids_and_the_lowest_is_found() {
        let texts = Texts::collect([&b"b"[..], b"a", b"", b"a"].into_iter()).unwrap();
        assert_eq!((texts.find(b"a"), texts.get(3), texts.get(2)), (Some(1), Some(&b"a"[..]), Some(&b""[..])));
        assert!(Texts::collect(std::iter::empty()).unwrap().find(b"a").is_none());
    }
}
