//! A bounded reader over untrusted bytes: it never runs past the end and says where it stopped.
#![forbid(unsafe_code)]

use crate::error::{Code, Error, Place, Result};

/// Reads little-endian values from a slice, front to back.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    /// File offset of the first byte of `rest`.
    offset: u64,
    /// What a missing byte is reported as.
    truncated: Code,
    place: Place,
}

impl<'a> Cursor<'a> {
    /// A reader of `bytes`, which stand at file offset `offset`; running out of them is an error of `truncated` at `place`.
    #[must_use]
    pub const fn new(bytes: &'a [u8], offset: u64, truncated: Code, place: Place) -> Self {
        Self { rest: bytes, offset, truncated, place }
    }

    /// Bytes not yet read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// File offset of the next byte.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Reports what follows at another place.
    pub const fn set_place(&mut self, place: Place) {
        self.place = place;
    }

    /// An error of `code` at the next byte.
    #[must_use]
    pub const fn error(&self, code: Code) -> Error {
        Error::new(code, self.place).at(self.offset)
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// The cursor's own code when fewer are left: expected is what is missing, found what is there.
    pub fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let have = self.rest.len() as u64;
        let split = usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len));
        let Some((taken, rest)) = split else {
            return Err(self.error(self.truncated).values(len, have));
        };
        self.rest = rest;
        self.offset = self.offset.saturating_add(len);
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N as u64)?;
        Ok(taken.first_chunk().copied().unwrap_or([0; N]))
    }

    /// The next byte.
    ///
    /// # Errors
    /// As [`Cursor::take`].
    pub fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// The next two bytes.
    ///
    /// # Errors
    /// As [`Cursor::take`].
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next four bytes.
    ///
    /// # Errors
    /// As [`Cursor::take`].
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next eight bytes.
    ///
    /// # Errors
    /// As [`Cursor::take`].
    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_stops_with_the_place() {
        let mut cursor = Cursor::new(&[1, 2, 0, 3], 100, Code::MetadataTruncated, Place::Key(4));
        assert_eq!(cursor.u8(), Ok(1));
        assert_eq!(cursor.u16(), Ok(2));
        let error = cursor.u32().expect_err("one byte is left");
        assert_eq!(error, Error::new(Code::MetadataTruncated, Place::Key(4)).at(103).values(4, 1));
        assert_eq!(cursor.take(u64::MAX).expect_err("far too many").expected, u64::MAX);
        assert_eq!(cursor.u8(), Ok(3));
        assert!(cursor.rest().is_empty());
    }
}
