//! Finding texts and merges, by a walk or through an index that the caller's memory holds.
//!
//! ```text
//! index    u32 words
//!   offsets    one for each token: where its text stands
//!   order      the tokens' ids, sorted by text, then by id
//!   merges     where each merge stands, sorted by its halves, then by rank
//!   specials   ids of control, unknown and user-defined tokens: the longest text first, then the lowest id
//! ```
//!
//! A merge is known by its offset in the array: offsets ascend as ranks do, so that no table of ranks is needed.

use super::vocabulary::{TokenType, Vocabulary};
use crate::error::{Code, Error, Place, Result};
use crate::metadata::Array;
use crate::num;
use core::cmp::{Ordering, Reverse};

/// The strings of an array of the metadata.
#[derive(Clone, Copy, Debug)]
pub(super) struct Texts<'a> {
    bytes: &'a [u8],
    count: u32,
}

impl<'a> Texts<'a> {
    /// At most `limit` strings whose offsets fit 32 bits, else an error of `code`.
    pub(super) fn new(array: Array<'a>, limit: u32, code: Code) -> Result<Self> {
        let error = Error::new(code, Place::File).values(u64::from(limit), array.len());
        let count = u32::try_from(array.len()).ok().filter(|&count| count <= limit).ok_or(error)?;
        let bytes = array.bytes();
        u32::try_from(bytes.len()).map_err(|_| error)?;
        Ok(Self { bytes, count })
    }

    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// The text at an offset.
    pub(super) fn at(&self, offset: u32) -> Option<&'a [u8]> {
        let (len, rest) = self.bytes.get(num::index(offset)..)?.split_first_chunk()?;
        rest.get(..usize::try_from(u64::from_le_bytes(*len)).ok()?)
    }

    /// The texts, each with its offset.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &'a [u8])> + use<'a> {
        let (all, mut at) = (*self, 0u32);
        core::iter::from_fn(move || {
            let (offset, text) = (at, all.at(at)?);
            at = at.checked_add(num::count(text.len()))?.checked_add(8)?;
            Some((offset, text))
        })
    }
}

/// The merge list of byte-level BPE: each string is the two halves with a space between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Merges<'a>(Texts<'a>);

impl<'a> Merges<'a> {
    pub(super) const EMPTY: Self = Self(Texts { bytes: &[], count: 0 });

    /// Checks that every merge has two halves.
    pub(super) fn new(texts: Texts<'a>) -> Result<Self> {
        for ((_, text), rank) in texts.iter().zip(0u32..) {
            if halves(text).is_none_or(|(_, right)| right.is_empty()) {
                return Err(Error::new(Code::MetadataRange, Place::Merge(rank)));
            }
        }
        Ok(Self(texts))
    }

    fn iter(&self) -> impl Iterator<Item = (u32, (&'a [u8], &'a [u8]))> + use<'a> {
        self.0.iter().filter_map(|(offset, text)| Some((offset, halves(text)?)))
    }

    fn at(&self, offset: u32) -> (&'a [u8], &'a [u8]) {
        self.0.at(offset).and_then(halves).unwrap_or_default()
    }
}

/// Split at the first space after the first byte.
fn halves(merge: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = merge.iter().skip(1).position(|&byte| byte == b' ')?.checked_add(1)?;
    let (left, right) = merge.split_at_checked(space)?;
    Some((left, right.get(1..)?))
}

/// An index over a vocabulary, built earlier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Index<'a> {
    offsets: &'a [u32],
    order: &'a [u32],
    merges: &'a [u32],
    specials: &'a [u32],
}

impl Index<'_> {
    pub(super) fn offset(&self, id: u32) -> Option<u32> {
        self.offsets.get(num::index(id)).copied()
    }
}

impl<'a> Vocabulary<'a> {
    /// Words of an index: twice the tokens, once the merges, once the special tokens. Walks the vocabulary.
    #[must_use]
    pub fn index_len(&self) -> usize {
        let specials = self.iter().filter(|(id, text)| self.is_special(*id, text)).count();
        self.parts().iter().fold(specials, |sum, part| sum.saturating_add(*part))
    }

    fn parts(&self) -> [usize; 3] {
        let tokens = num::index(self.tokens.count());
        [tokens, tokens, num::index(self.merges.0.count)]
    }

    fn is_special(&self, id: u32, text: &[u8]) -> bool {
        !text.is_empty()
            && matches!(self.kind(id, text), TokenType::Control | TokenType::Unknown | TokenType::UserDefined)
    }

    /// Writes an index of [`index_len`](Self::index_len) words to the front of `out`, for
    /// [`with_index`](Self::with_index): four sorted lists, sorted in place without further memory. A longer `out` is cut.
    ///
    /// # Errors
    /// [`Code::BufferTooSmall`].
    pub fn build_index<'o>(&self, out: &'o mut [u32]) -> Result<&'o [u32]> {
        let (need, have) = (self.index_len(), out.len());
        let out = out.get_mut(..need).ok_or(Error::buffer_too_small(need, have))?;
        let [tokens, _, merges] = self.parts();
        {
            let (offsets, rest) = out.split_at_mut_checked(tokens).unwrap_or_default();
            let (order, rest) = rest.split_at_mut_checked(tokens).unwrap_or_default();
            let (merge_order, specials) = rest.split_at_mut_checked(merges).unwrap_or_default();
            for (slot, (offset, _)) in offsets.iter_mut().zip(self.tokens.iter()) {
                *slot = offset;
            }
            for (slot, id) in order.iter_mut().zip(0u32..) {
                *slot = id;
            }
            for (slot, (offset, _)) in merge_order.iter_mut().zip(self.merges.iter()) {
                *slot = offset;
            }
            for (slot, (id, _)) in specials.iter_mut().zip(self.iter().filter(|(id, text)| self.is_special(*id, text)))
            {
                *slot = id;
            }
            let text = |id: u32| offsets.get(num::index(id)).and_then(|&at| self.tokens.at(at)).unwrap_or_default();
            order.sort_unstable_by_key(|&id| (text(id), id));
            merge_order.sort_unstable_by_key(|&offset| (self.merges.at(offset), offset));
            specials.sort_unstable_by_key(|&id| (Reverse(text(id).len()), id));
        }
        Ok(out)
    }

    /// The same vocabulary with an index that [`build_index`](Self::build_index) wrote for it. One of another vocabulary
    /// gives wrong answers, never a panic.
    ///
    /// # Errors
    /// [`Code::LengthMismatch`] for a length that cannot be right.
    pub fn with_index(self, index: &'a [u32]) -> Result<Self> {
        let [tokens, _, merges] = self.parts();
        let least = self.parts().iter().fold(0usize, |sum, part| sum.saturating_add(*part));
        let error = Error::new(Code::LengthMismatch, Place::File).values(num::wide(least), num::wide(index.len()));
        let (offsets, rest) = index.split_at_checked(tokens).ok_or(error)?;
        let (order, rest) = rest.split_at_checked(tokens).ok_or(error)?;
        let (merges, specials) = rest.split_at_checked(merges).ok_or(error)?;
        let mut indexed = self;
        indexed.index = Some(Index { offsets, order, merges, specials });
        Ok(indexed)
    }

    /// The special tokens of an index, in the order in which they are cut out of a text.
    pub(super) fn indexed_specials(&self) -> Option<impl Iterator<Item = (u32, &'a [u8])> + use<'a, '_>> {
        let index = self.index.as_ref()?;
        Some(index.specials.iter().filter_map(|&id| Some((id, self.text(id)?))))
    }

    /// The lowest id with this text; an empty one is never found.
    pub(super) fn find_bytes(&self, text: impl Iterator<Item = u8> + Clone) -> Option<u32> {
        text.clone().next()?;
        let Some(index) = &self.index else {
            return self.iter().find(|(_, other)| text.clone().eq(other.iter().copied())).map(|(id, _)| id);
        };
        let of = |id: u32| self.text(id).unwrap_or_default().iter().copied();
        let at = index.order.partition_point(|&id| of(id).lt(text.clone()));
        index.order.get(at).copied().filter(|&id| of(id).eq(text))
    }

    /// The offset of the first merge of two texts: the lower, the earlier it merges.
    pub(super) fn find_merge<L, R>(&self, left: L, right: R) -> Option<u32>
    where
        L: Iterator<Item = u8> + Clone,
        R: Iterator<Item = u8> + Clone,
    {
        let order = |(a, b): (&[u8], &[u8])| -> Ordering {
            let first = a.iter().copied().cmp(left.clone());
            first.then_with(|| b.iter().copied().cmp(right.clone()))
        };
        let Some(index) = &self.index else {
            return self.merges.iter().find(|(_, pair)| order(*pair).is_eq()).map(|(offset, _)| offset);
        };
        let at = index.merges.partition_point(|&offset| order(self.merges.at(offset)).is_lt());
        index.merges.get(at).copied().filter(|&offset| order(self.merges.at(offset)).is_eq())
    }
}
