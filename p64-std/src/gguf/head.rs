//! Header, keys and layout of a GGUF.

use super::error::{Error, Place, Problem};
use super::tensors::{self, GgufTensor};
use crate::sniff::{Kind, SNIFF_LEN};
use p64_core::extent::{Extent, align_up};
use p64_core::metadata::{Metadata, Value, ValueKind};
use std::collections::HashMap;

/// Most bytes of keys and tensor table this reader takes in. The largest vocabularies in public models need 20 MB.
pub const MAX_HEAD: u64 = 1 << 30;

const HEADER: u64 = 24;
/// Smallest pair of the key-value area and smallest tensor record (rule G4).
const MIN_PAIR: u64 = 13;
const MIN_INFO: u64 = 32;
const DEFAULT_ALIGNMENT: u32 = 32;
const MAX_ALIGNMENT: u32 = 65_536;

/// Everything of a GGUF but its payloads, checked.
#[derive(Clone, Debug)]
pub struct Gguf<'a> {
    version: u32,
    alignment: u32,
    metadata: Metadata<'a>,
    tensors: Vec<GgufTensor<'a>>,
    by_name: HashMap<&'a str, u32>,
    info_end: u64,
    data_offset: u64,
    payload_end: u64,
    file_len: u64,
}

/// Why parsing stopped.
pub(super) enum Stop {
    /// `head` is only the front of the file, and the answer lies behind its end.
    NeedMore,
    /// A rule is broken.
    Refused(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl<'a> Gguf<'a> {
    /// Reads a whole GGUF that is in memory. What it describes lies inside `bytes`.
    ///
    /// # Errors
    /// The first broken rule of `docs/acceptance.md`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let file_len = bytes.len() as u64;
        let gguf = match Self::parse_head(bytes, file_len) {
            Ok(gguf) => gguf,
            Err(Stop::Refused(error)) => return Err(error),
            // `bytes` is the whole file, so there is nothing more to read.
            Err(Stop::NeedMore) => return Err(short(Place::Header, HEADER, file_len, 0)),
        };
        let tail = gguf.tail()?.of(bytes).unwrap_or_default();
        gguf.check_tail(tail)?;
        Ok(gguf)
    }

    /// Reads the front `head` of a file of `file_len` bytes. The tail is not looked at.
    pub(super) fn parse_head(head: &'a [u8], file_len: u64) -> Result<Self, Stop> {
        let mut reader = Reader { head, at: 0, file_len };
        let magic = reader.take(4.min(file_len), &Place::Header)?;
        if magic != b"GGUF" {
            let kind = Kind::of(head.get(..SNIFF_LEN).unwrap_or(head));
            // A file shorter than the magic is short, not foreign, as long as it begins as the magic does.
            if b"GGUF".starts_with(magic) {
                return Err(short(Place::Header, HEADER, file_len, 0).into());
            }
            let problem = if magic == b"FUGG" { Problem::BigEndian } else { Problem::NotGguf(kind) };
            return Err(Error::at(problem, Place::Header, 0).into());
        }
        if file_len < HEADER {
            return Err(short(Place::Header, HEADER, file_len, 0).into());
        }
        let version = reader.u32(&Place::Header)?;
        if version & 0xffff == 0 && version != 0 {
            return Err(Error::at(Problem::BigEndian, Place::Header, 4).into());
        }
        if !matches!(version, 2 | 3) {
            return Err(Error::at(Problem::Version(version), Place::Header, 4).into());
        }
        let tensor_count = reader.u64(&Place::Header)?;
        let key_count = reader.u64(&Place::Header)?;
        let room = file_len.saturating_sub(HEADER);
        if tensor_count > room / MIN_INFO || u32::try_from(tensor_count).is_err() {
            let problem = Problem::TensorCount { declared: tensor_count, room };
            return Err(Error::at(problem, Place::Header, 8).into());
        }
        if key_count > room / MIN_PAIR || u32::try_from(key_count).is_err() {
            return Err(Error::at(Problem::KeyCount { declared: key_count, room }, Place::Header, 16).into());
        }
        let metadata = read_pairs(&mut reader, key_count)?;
        check_pairs(&metadata)?;
        let alignment = read_alignment(&metadata)?;
        let (tensors, by_name) = tensors::read_infos(&mut reader, tensor_count, alignment)?;
        let info_end = reader.at;
        let data_offset = align_up(info_end, u64::from(alignment)).unwrap_or(info_end);
        let payload_end = tensors::check_layout(&tensors, alignment, info_end, data_offset, file_len)?;
        Ok(Self { version, alignment, metadata, tensors, by_name, info_end, data_offset, payload_end, file_len })
    }

    /// Version of the file, 2 or 3.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// `general.alignment`, or 32.
    #[must_use]
    pub const fn alignment(&self) -> u32 {
        self.alignment
    }

    /// The key-value area. All strings in it are UTF-8, no key stands twice.
    #[must_use]
    pub const fn metadata(&self) -> Metadata<'a> {
        self.metadata
    }

    /// The tensors in the order of the file's table.
    #[must_use]
    pub fn tensors(&self) -> &[GgufTensor<'a>] {
        &self.tensors
    }

    /// Place in the table of the tensor of this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// The tensor of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&GgufTensor<'a>> {
        self.tensors.get(usize::try_from(*self.by_name.get(name)?).ok()?)
    }

    /// File offset of the end of the tensor table, where padding to [`Gguf::data_offset`] begins.
    #[must_use]
    pub const fn info_end(&self) -> u64 {
        self.info_end
    }

    /// File offset that the tensors' offsets count from. It may lie past the end of a file without payloads.
    #[must_use]
    pub const fn data_offset(&self) -> u64 {
        self.data_offset
    }

    /// Bytes of the file.
    #[must_use]
    pub const fn file_len(&self) -> u64 {
        self.file_len
    }

    /// The file's bytes of a tensor of this GGUF.
    #[must_use]
    pub fn extent(&self, tensor: &GgufTensor<'_>) -> Extent {
        // `check_layout` has shown that the sum fits and lies inside the file.
        Extent::new(self.data_offset.saturating_add(tensor.offset), tensor.size).unwrap_or_default()
    }

    /// The bytes after the last payload (after the tensor table when no tensor has bytes), within rule G18's length.
    pub(super) fn tail(&self) -> Result<Extent, Error> {
        let alignment = u64::from(self.alignment);
        let limit = align_up(self.payload_end, alignment).and_then(|end| end.checked_add(alignment));
        let limit = limit.unwrap_or(u64::MAX).saturating_sub(self.payload_end);
        let found = self.file_len.saturating_sub(self.payload_end);
        if found > limit {
            return Err(Error::at(Problem::TailLength { found, limit }, Place::Tail, self.payload_end));
        }
        Ok(Extent::new(self.payload_end, found).unwrap_or_default())
    }

    /// Rule G18 on the bytes of [`Gguf::tail`].
    pub(super) fn check_tail(&self, tail: &[u8]) -> Result<(), Error> {
        match (self.payload_end..).zip(tail).find(|(_, byte)| **byte != 0) {
            Some((offset, &byte)) => Err(Error::at(Problem::TailNotZero { byte }, Place::Tail, offset)),
            None => Ok(()),
        }
    }
}

/// A cursor over the front of a file that knows where the file itself ends.
pub(super) struct Reader<'a> {
    head: &'a [u8],
    /// File offset of the next byte.
    pub at: u64,
    file_len: u64,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a [u8] {
        usize::try_from(self.at).ok().and_then(|at| self.head.get(at..)).unwrap_or_default()
    }

    /// Stops for a read of `need` bytes at `at` that `head` cannot serve: for good when the file cannot either.
    fn stop(&self, need: u64, at: u64, refuse: impl FnOnce() -> Error) -> Stop {
        let inside = at.checked_add(need).is_some_and(|end| end <= self.file_len);
        if inside && (self.head.len() as u64) < self.file_len { Stop::NeedMore } else { Stop::Refused(refuse()) }
    }

    pub fn take(&mut self, len: u64, place: &Place) -> Result<&'a [u8], Stop> {
        let rest = self.rest();
        let Some(taken) = usize::try_from(len).ok().and_then(|len| rest.get(..len)) else {
            let have = self.file_len.saturating_sub(self.at);
            return Err(self.stop(len, self.at, || short(place.clone(), len, have, self.at)));
        };
        self.at = self.at.saturating_add(len);
        Ok(taken)
    }

    pub fn u32(&mut self, place: &Place) -> Result<u32, Stop> {
        let bytes = self.take(4, place)?;
        Ok(u32::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default()))
    }

    pub fn u64(&mut self, place: &Place) -> Result<u64, Stop> {
        let bytes = self.take(8, place)?;
        Ok(u64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default()))
    }
}

fn short(place: Place, need: u64, have: u64, offset: u64) -> Error {
    Error::at(Problem::Short { need, have }, place, offset)
}

fn read_pairs<'a>(reader: &mut Reader<'a>, count: u64) -> Result<Metadata<'a>, Stop> {
    use p64_core::Code;
    let bytes = reader.rest();
    let error = match Metadata::parse_pairs(bytes, count, reader.at) {
        Ok((metadata, used)) => {
            reader.at = reader.at.saturating_add(used as u64);
            return Ok(metadata);
        }
        Err(error) => error,
    };
    let refuse = || {
        let index = match error.place {
            p64_core::error::Place::Key(index) => index,
            _ => 0,
        };
        Error::at(Problem::Metadata(error), Place::Key(index, key_name(bytes, index)), error.offset)
    };
    // Core saw only the front of the file: running out of it means nothing yet, unless the file ends there too.
    Err(match error.code {
        Code::MetadataTruncated => reader.stop(error.expected, error.offset, refuse),
        // `found` counts pairs or array elements, of one byte at least.
        Code::MetadataCount => reader.stop(error.found, error.offset, refuse),
        _ => Stop::Refused(refuse()),
    })
}

/// The name of pair `index`, as far as it can be read.
fn key_name(pairs: &[u8], index: u32) -> Option<String> {
    let (_, used) = Metadata::parse_pairs(pairs, u64::from(index), 0).ok()?;
    let (len, rest) = pairs.get(used..)?.split_first_chunk()?;
    let name = rest.get(..usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    let name = std::str::from_utf8(name).ok()?;
    // A key that is too long to be one is not repeated in a message.
    (!name.is_empty() && name.len() <= 256).then(|| name.to_owned())
}

/// Rules G5 (no key twice) and G8 (strings are UTF-8).
fn check_pairs(metadata: &Metadata<'_>) -> Result<(), Error> {
    let mut seen = HashMap::new();
    for (index, (key, value)) in (0u32..).zip(metadata.iter()) {
        let place = || Place::Key(index, Some(key.to_owned()));
        if let Some(first) = seen.insert(key, index) {
            return Err(Error::new(Problem::DuplicateKey { first }, place()));
        }
        let utf8 = match value {
            Value::String(bytes) => std::str::from_utf8(bytes).is_ok(),
            Value::Array(array) => array.strings().all(|bytes| std::str::from_utf8(bytes).is_ok()),
            _ => true,
        };
        if !utf8 {
            return Err(Error::new(Problem::ValueNotUtf8, place()));
        }
    }
    Ok(())
}

/// `general.alignment` by rule G9, or its default.
pub(crate) fn read_alignment(metadata: &Metadata<'_>) -> Result<u32, Error> {
    const KEY: &str = "general.alignment";
    let Some((index, (_, value))) = (0u32..).zip(metadata.iter()).find(|(_, (key, _))| *key == KEY) else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    let place = Place::Key(index, Some(KEY.to_owned()));
    match value {
        Value::U32(found) if found.is_power_of_two() && found <= MAX_ALIGNMENT => Ok(found),
        Value::U32(found) => Err(Error::new(Problem::Alignment(found), place)),
        other => Err(Error::new(Problem::AlignmentType { found: ValueKind::name(other.kind()) }, place)),
    }
}
