//! Model metadata: the GGUF v3 key-value area, read in place (spec §17).
//!
//! ```text
//! count        u64
//! pair         repeated `count` times
//!   key        u64 length, UTF-8 bytes
//!   type       u32   (ValueKind)
//!   value      by type; a string is u64 length + bytes, an array is u32 kind, u64 length, elements
//! ```
//!
//! The same bytes stand in a GGUF after its header, and in a P64 as the blob of the tensor `p64.metadata`.
//! [`Metadata::parse`] checks every length once; afterwards iteration and look-up cannot fail. Nothing is allocated, so
//! look-up walks the keys, but not the elements of their arrays.
#![forbid(unsafe_code)]

mod value;

pub use value::{Array, Strings, Value, ValueKind};

use crate::bytes::Cursor;
use crate::error::{Code, Error, Place, Result};
use crate::limits::MAX_STRING;
use crate::num;

/// A key-value area whose every length has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'a> {
    count: u32,
    pairs: &'a [u8],
    long: Long,
}

/// Where long arrays of strings lie, so that a walk over the keys does not walk over a vocabulary each time: for up to two,
/// the offset of the first element in the pairs, and the bytes of all. Models have two, tokens and merges. What lies past 4 GiB is
/// walked over.
#[derive(Clone, Copy, Default, Debug)]
struct Long([(u32, u32); 2]);

impl Long {
    /// Elements from which on an array is long.
    const LEAST: u64 = 256;

    fn note(&mut self, value: &Value<'_>, end: u64) {
        let Value::Array(array) = value else { return };
        if array.kind() != ValueKind::String || array.len() < Self::LEAST {
            return;
        }
        let len = num::wide(array.bytes().len());
        let place = (u32::try_from(end.saturating_sub(len)), u32::try_from(len));
        if let (Some(slot), (Ok(start), Ok(len))) = (self.0.iter_mut().find(|slot| slot.1 == 0), place) {
            *slot = (start, len);
        }
    }

    /// Bytes of the long array whose elements begin at `offset`.
    fn at(&self, offset: u64) -> Option<u64> {
        self.0.iter().find(|(start, len)| u64::from(*start) == offset && *len != 0).map(|(_, len)| u64::from(*len))
    }
}

/// Most keys among which [`Metadata::parse`] looks for duplicates.
pub const MAX_CHECKED_KEYS: u32 = 1024;
/// Smallest pair: an empty key's length, a type, one byte of value. Bounds `count` before anything is walked.
const MIN_PAIR: u64 = 8 + 4 + 1;

impl<'a> Metadata<'a> {
    /// An area without pairs.
    pub const EMPTY: Self = Self { count: 0, pairs: &[], long: Long([(0, 0); 2]) };

    /// Reads a whole area: the count, then exactly that many pairs. `offset` is the file offset of `bytes`.
    ///
    /// Duplicate keys are refused among up to [`MAX_CHECKED_KEYS`] (real models have about forty); beyond that, and for
    /// [`Metadata::parse_pairs`], finding them takes the caller's memory, and look-up answers with the first.
    ///
    /// # Errors
    /// The `Metadata*` codes with the key's position and the file offset.
    pub fn parse(bytes: &'a [u8], offset: u64) -> Result<Self> {
        let mut cursor = cursor(bytes, offset);
        let count = cursor.u64()?;
        let metadata = Self::read_pairs(&mut cursor, count)?;
        metadata.check_unique()?;
        match cursor.rest().len() {
            0 => Ok(metadata),
            left => Err(cursor.error(Code::MetadataTrailing).values(0, left as u64)),
        }
    }

    /// Reads `count` pairs from the front of `bytes` and says how many bytes they took: the form of a GGUF, whose count
    /// stands in its header and whose tensor infos follow.
    ///
    /// # Errors
    /// As [`Metadata::parse`].
    pub fn parse_pairs(bytes: &'a [u8], count: u64, offset: u64) -> Result<(Self, usize)> {
        let mut cursor = cursor(bytes, offset);
        let metadata = Self::read_pairs(&mut cursor, count)?;
        Ok((metadata, metadata.pairs.len()))
    }

    fn read_pairs(cursor: &mut Cursor<'a>, count: u64) -> Result<Self> {
        let (before, start) = (cursor.rest(), cursor.offset());
        let mut long = Long::default();
        let room = before.len() as u64;
        let count = u32::try_from(count)
            .ok()
            .filter(|&n| u64::from(n) <= room / MIN_PAIR)
            .ok_or_else(|| cursor.error(Code::MetadataCount).values(room, count))?;
        for index in 0..count {
            cursor.set_place(Place::Key(index));
            let key = read_key(cursor)?;
            let value = Value::read(cursor)?;
            long.note(&value, cursor.offset().saturating_sub(start));
            check_key(cursor, key)?;
        }
        let used = before.len().saturating_sub(cursor.rest().len());
        Ok(Self { count, pairs: before.get(..used).unwrap_or_default(), long })
    }

    /// Compares keys window by window, so that a kilobyte of stack does.
    fn check_unique(&self) -> Result<()> {
        const WINDOW: usize = 64;
        if self.count > MAX_CHECKED_KEYS {
            return Ok(());
        }
        for first in (0..self.count).step_by(WINDOW) {
            let mut window = [""; WINDOW];
            let keys = (0u32..).zip(self.iter()).skip(num::index(first));
            for ((index, (key, _)), at) in keys.zip(0usize..) {
                if let Some((other, _)) = (first..index).zip(window.iter()).find(|(_, other)| **other == key) {
                    let error = Error::new(Code::MetadataDuplicateKey, Place::Key(index));
                    return Err(error.values(u64::from(other), 0));
                }
                if let Some(slot) = window.get_mut(at) {
                    *slot = key;
                }
            }
        }
        Ok(())
    }

    /// Number of pairs.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// Whether there is no pair.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The bytes of the pairs, without the count.
    #[must_use]
    pub const fn pair_bytes(&self) -> &'a [u8] {
        self.pairs
    }

    /// The pairs in file order.
    #[must_use]
    pub fn iter(&self) -> Iter<'a> {
        Iter { cursor: cursor(self.pairs, 0), left: self.count, long: self.long }
    }

    /// The value of the first pair with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.find(key).map(|(_, value)| value)
    }

    fn find(&self, key: &str) -> Option<(u32, Value<'a>)> {
        (0..).zip(self.iter()).find(|(_, (name, _))| *name == key).map(|(index, (_, value))| (index, value))
    }

    fn typed<T>(&self, key: &str, kind: ValueKind, read: impl FnOnce(Value<'a>) -> Option<T>) -> Result<Option<T>> {
        let Some((index, value)) = self.find(key) else { return Ok(None) };
        let wrong = Error::new(Code::MetadataWrongType, Place::Key(index));
        read(value).map(Some).ok_or(wrong.values(u64::from(kind.id()), u64::from(value.kind().id())))
    }

    /// A key that holds an unsigned number of any width (signed ones that are not negative pass too).
    ///
    /// # Errors
    /// [`Code::MetadataWrongType`] when the key is there with another type, or the number passes 32 bits.
    pub fn u32(&self, key: &str) -> Result<Option<u32>> {
        self.typed(key, ValueKind::U32, |value| value.as_u64().and_then(|v| u32::try_from(v).ok()))
    }

    /// A key that holds a float of either width.
    ///
    /// # Errors
    /// [`Code::MetadataWrongType`] when the key is there with another type.
    pub fn f32(&self, key: &str) -> Result<Option<f32>> {
        self.typed(key, ValueKind::F32, Value::as_f32)
    }

    /// A key that holds a boolean.
    ///
    /// # Errors
    /// [`Code::MetadataWrongType`] when the key is there with another type.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, ValueKind::Bool, Value::as_bool)
    }

    /// A key that holds UTF-8 text.
    ///
    /// # Errors
    /// [`Code::MetadataWrongType`] when the key is there with another type or is not UTF-8.
    pub fn str(&self, key: &str) -> Result<Option<&'a str>> {
        self.typed(key, ValueKind::String, Value::as_str)
    }

    /// A key that holds an array.
    ///
    /// # Errors
    /// [`Code::MetadataWrongType`] when the key is there with another type.
    pub fn array(&self, key: &str) -> Result<Option<Array<'a>>> {
        self.typed(key, ValueKind::Array, Value::as_array)
    }
}

impl<'a> IntoIterator for &Metadata<'a> {
    type Item = (&'a str, Value<'a>);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The pairs of a [`Metadata`] in file order.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    cursor: Cursor<'a>,
    left: u32,
    long: Long,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let key = read_key(&mut self.cursor).ok()?;
        let value = Value::read_known(&mut self.cursor, |offset| self.long.at(offset)).ok()?;
        Some((core::str::from_utf8(key).ok()?, value))
    }
}

const fn cursor(bytes: &[u8], offset: u64) -> Cursor<'_> {
    Cursor::new(bytes, offset, Code::MetadataTruncated, Place::Section(crate::error::Section::Metadata))
}

fn read_key<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let len = cursor.u64()?;
    cursor.take(len)
}

fn check_key(cursor: &Cursor<'_>, key: &[u8]) -> Result<()> {
    let len = key.len() as u64;
    if key.is_empty() {
        return Err(cursor.error(Code::MetadataEmptyKey));
    }
    if len > u64::from(MAX_STRING) {
        return Err(cursor.error(Code::MetadataKeyTooLong).values(u64::from(MAX_STRING), len));
    }
    if core::str::from_utf8(key).is_err() {
        return Err(cursor.error(Code::MetadataNotUtf8).values(0, len));
    }
    if key.contains(&0) {
        return Err(cursor.error(Code::MetadataKeyNul));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
