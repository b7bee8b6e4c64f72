//! A P64 that is read, not mapped: the same validation through small reads into a buffer of the caller's.
//!
//! ```text
//! ReadAt          flash, a file, a network: bytes at an offset        stream.rs, stream/embedded.rs
//! Validator       every check of crate::validate, a step at a time    stream/validator.rs
//! StreamContainer what the file holds, read when it is asked for      stream/container.rs
//! ```
//!
//! The checks, their order and their errors are those of [`Container::open_with`](crate::Container::open_with); the
//! tests compare both on every fixture and for several buffer sizes. [`Validator::step`] reads at most one buffer (one
//! name, where names are longer), so that a watchdog can be fed and other work done between steps.
//!
//! The source must hold still: what is read twice is compared with what was validated only as far as a wrong answer could
//! do harm. Nothing here allocates, recurses, indexes or formats.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::unwrap_used,
        clippy::expect_used
    )
)]

mod container;
mod embedded;
mod index;
mod names;
mod schedule;
mod tokenizer;
mod utf8;
mod validator;
mod window;

pub use container::{StreamContainer, StreamTensor};
#[cfg(feature = "embedded-io")]
pub use embedded::Io;
#[cfg(feature = "embedded-storage")]
pub use embedded::Storage;
pub use tokenizer::TokenizerInfo;
pub use validator::{Step, Validator};

/// Shortest buffer that a stream works with, in bytes. Longer ones make fewer reads.
pub const MIN_BUFFER: usize = 64;

/// Bytes at an offset: flash behind a bus, a file, a range of a larger image.
pub trait ReadAt {
    /// Length of the file in bytes.
    fn len(&self) -> u64;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` with the bytes from `offset` on. The whole range lies below [`ReadAt::len`].
    ///
    /// # Errors
    /// [`ReadFault`] with a code of the reader's own; it comes back as [`Code::ReadFailed`](crate::Code::ReadFailed).
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault>;
}

/// A read that failed, with a code of the reader's own (an `errno`, a bus status).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadFault(pub u32);

impl<R: ReadAt + ?Sized> ReadAt for &mut R {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault> {
        (**self).read_at(offset, buffer)
    }
}

impl ReadAt for &[u8] {
    fn len(&self) -> u64 {
        crate::num::wide((*self).len())
    }

    /// # Errors
    /// Fault 0 for a range past the end.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault> {
        let range = crate::extent::Extent::new(offset, crate::num::wide(buffer.len()));
        let bytes = range.and_then(|range| range.of(self)).ok_or(ReadFault(0))?;
        buffer.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Ok(())
    }
}
