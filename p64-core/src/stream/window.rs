//! The caller's buffer as a window of the file.
#![forbid(unsafe_code)]

use super::{MIN_BUFFER, ReadAt};
use crate::error::{Code, Error, Place, Result};
use crate::num;
use crate::validate::{Checked, Stop};
use zerocopy::FromBytes;

/// A reader with the bytes it gave last.
#[derive(Debug)]
pub(super) struct Window<'b, R> {
    reader: R,
    buffer: &'b mut [u8],
    /// File offset of the buffer's first byte.
    start: u64,
    /// Bytes of the buffer that hold the file's.
    filled: usize,
    /// Why the last answer was [`Stop`].
    fault: Option<Error>,
}

impl<'b, R: ReadAt> Window<'b, R> {
    pub(super) fn new(reader: R, buffer: &'b mut [u8]) -> Result<Self> {
        if buffer.len() < MIN_BUFFER {
            return Err(Error::buffer_too_small(MIN_BUFFER, buffer.len()));
        }
        Ok(Self { reader, buffer, start: 0, filled: 0, fault: None })
    }

    /// Length of the file.
    pub(super) fn len(&self) -> u64 {
        self.reader.len()
    }

    /// The bytes from `offset` on, at least `need` of them (at most [`MIN_BUFFER`]), none from `end` on. Reads a whole
    /// buffer where it has to read.
    #[inline(never)]
    pub(super) fn ahead(&mut self, offset: u64, end: u64, need: usize) -> Checked<&[u8]> {
        let want = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let held = self.held(offset).unwrap_or(self.filled);
        if self.filled.saturating_sub(held) < need.min(want) {
            let len = want.min(self.buffer.len());
            self.filled = 0;
            let buffer = self.buffer.get_mut(..len).unwrap_or_default();
            let read = read(&mut self.reader, offset, buffer);
            self.keep(read)?;
            (self.start, self.filled) = (offset, len);
        }
        let held = self.held(offset).unwrap_or(self.filled);
        let bytes = self.buffer.get(held..self.filled).unwrap_or_default();
        Ok(bytes.get(..want).unwrap_or(bytes))
    }

    /// Some of the bytes from `offset` on, at least one where `end` is not reached.
    pub(super) fn some(&mut self, offset: u64, end: u64) -> Checked<&[u8]> {
        self.ahead(offset, end, 1)
    }

    /// A record among others of its kind that end at `end`: what is read goes ahead of it.
    pub(super) fn next_record<T: FromBytes>(&mut self, offset: u64, end: u64) -> Checked<T> {
        let record = T::read_from_prefix(self.ahead(offset, end, size_of::<T>())?).map(|(record, _)| record);
        record.ok().ok_or_else(|| self.changed(offset))
    }

    /// A record by itself; the window stays where it is.
    pub(super) fn record<T: FromBytes>(&mut self, offset: u64) -> Checked<T> {
        let mut bytes = [0; MIN_BUFFER];
        let bytes = bytes.get_mut(..size_of::<T>()).unwrap_or_default();
        self.aside(offset, bytes)?;
        T::read_from_bytes(bytes).ok().ok_or_else(|| self.changed(offset))
    }

    /// Fills `out` with the bytes from `offset` on; the window stays where it is.
    #[inline(never)]
    pub(super) fn aside(&mut self, offset: u64, out: &mut [u8]) -> Checked<()> {
        let held = self.held(offset).and_then(|held| self.buffer.get(held..self.filled)).unwrap_or_default();
        if let Some(bytes) = held.get(..out.len()) {
            out.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            return Ok(());
        }
        let read = read(&mut self.reader, offset, out);
        self.keep(read)
    }

    /// The offset and value of the first byte of `at..end` that is not zero, looked for in one buffer; and where to go on.
    #[inline(never)]
    pub(super) fn first_nonzero(&mut self, at: u64, end: u64) -> Checked<(u64, Option<(u64, u64)>)> {
        let bytes = self.some(at, end)?;
        match crate::validate::first_nonzero(bytes, at) {
            // Only the first is told.
            Some(found) => Ok((end, Some(found))),
            None => Ok((at.saturating_add(num::wide(bytes.len())), None)),
        }
    }

    /// The source does not hold still.
    pub(super) fn changed(&mut self, offset: u64) -> Stop {
        self.refuse(changed(offset))
    }

    /// Remembers why it goes no further.
    #[inline(never)]
    pub(super) fn refuse(&mut self, error: Error) -> Stop {
        self.fault = Some(error);
        Stop
    }

    fn keep(&mut self, read: Result<()>) -> Checked<()> {
        read.map_err(|error| self.refuse(error))
    }

    /// Why the last answer was [`Stop`], where the window gave it.
    pub(super) fn take_fault(&mut self) -> Option<Error> {
        self.fault.take()
    }

    /// What work on the window alone came to, as the error it met.
    pub(super) fn outcome<T>(&mut self, checked: Checked<T>) -> Result<T> {
        checked.map_err(|Stop| self.take_fault().unwrap_or(changed(0)))
    }

    /// Where in the buffer the byte at `offset` is held.
    fn held(&self, offset: u64) -> Option<usize> {
        let at = offset.checked_sub(self.start)?;
        usize::try_from(at).ok().filter(|at| *at < self.filled)
    }
}

#[inline(never)]
fn read(reader: &mut impl ReadAt, offset: u64, buffer: &mut [u8]) -> Result<()> {
    // A file that has become shorter is not asked for what it no longer has.
    let inside = offset.checked_add(num::wide(buffer.len())).is_some_and(|end| end <= reader.len());
    if !inside {
        return Err(changed(offset));
    }
    reader
        .read_at(offset, buffer)
        .map_err(|fault| Error::new(Code::ReadFailed, Place::File).at(offset).values(0, u64::from(fault.0)))
}

fn changed(offset: u64) -> Error {
    Error::new(Code::ReadChanged, Place::File).at(offset)
}
