//! Readers of the embedded world's own traits.
#![forbid(unsafe_code)]

#[cfg(any(feature = "embedded-io", feature = "embedded-storage"))]
use super::{ReadAt, ReadFault};

/// A seekable stream of `embedded-io` as a source: a file of an SD card, a socket with a cache.
#[cfg(feature = "embedded-io")]
#[derive(Debug)]
pub struct Io<S> {
    stream: S,
    len: u64,
}

#[cfg(feature = "embedded-io")]
impl<S: embedded_io::Read + embedded_io::Seek> Io<S> {
    /// The whole stream, whose length is learnt by seeking to its end.
    ///
    /// # Errors
    /// The stream's own.
    pub fn new(mut stream: S) -> Result<Self, S::Error> {
        let len = stream.seek(embedded_io::SeekFrom::End(0))?;
        Ok(Self { stream, len })
    }
}

#[cfg(feature = "embedded-io")]
impl<S: embedded_io::Read + embedded_io::Seek> ReadAt for Io<S> {
    fn len(&self) -> u64 {
        self.len
    }

    /// # Errors
    /// The number of the stream's [`ErrorKind`](embedded_io::ErrorKind) in the order of its declaration, from 1; 0 when the
    /// stream ends early.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault> {
        self.stream.seek(embedded_io::SeekFrom::Start(offset)).map_err(fault)?;
        self.stream.read_exact(buffer).map_err(|error| match error {
            embedded_io::ReadExactError::UnexpectedEof => ReadFault(0),
            embedded_io::ReadExactError::Other(error) => fault(error),
        })
    }
}

#[cfg(feature = "embedded-io")]
fn fault(error: impl embedded_io::Error) -> ReadFault {
    use embedded_io::ErrorKind as K;
    // The enumeration may grow; what is not in it yet is "other".
    ReadFault(match error.kind() {
        K::NotFound => 2,
        K::PermissionDenied => 3,
        K::ConnectionRefused => 4,
        K::ConnectionReset => 5,
        K::ConnectionAborted => 6,
        K::NotConnected => 7,
        K::AddrInUse => 8,
        K::AddrNotAvailable => 9,
        K::BrokenPipe => 10,
        K::AlreadyExists => 11,
        K::InvalidInput => 12,
        K::InvalidData => 13,
        K::TimedOut => 14,
        K::Interrupted => 15,
        K::Unsupported => 16,
        K::OutOfMemory => 17,
        K::WriteZero => 18,
        _ => 1,
    })
}

/// A range of an `embedded-storage` device as a source: a partition of NOR flash.
#[cfg(feature = "embedded-storage")]
#[derive(Debug)]
pub struct Storage<S> {
    device: S,
    base: u32,
    len: u32,
}

#[cfg(feature = "embedded-storage")]
impl<S: embedded_storage::ReadStorage> Storage<S> {
    /// The `len` bytes from `base` on.
    #[must_use]
    pub const fn new(device: S, base: u32, len: u32) -> Self {
        Self { device, base, len }
    }
}

#[cfg(feature = "embedded-storage")]
impl<S: embedded_storage::ReadStorage> ReadAt for Storage<S> {
    fn len(&self) -> u64 {
        u64::from(self.len)
    }

    /// # Errors
    /// Fault 0 for an address past 32 bits, 1 when the device's read failed: its error type carries no number.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault> {
        let address = u32::try_from(offset).ok().and_then(|offset| self.base.checked_add(offset));
        self.device.read(address.ok_or(ReadFault(0))?, buffer).map_err(|_| ReadFault(1))
    }
}
