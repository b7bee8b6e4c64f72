//! Payloads over other payloads: what a GGUF's tensors are to those of a Hugging Face folder.
//!
//! ```text
//! Permuted     rows in another order
//! Cast         f32 from f32, f16 or bf16, a number added
//! Narrowed     f16 or bf16 from f32
//! Joined       several payloads behind each other: experts, heads
//! Part         a run of bytes of one
//! Transposed   columns as rows
//! Made         bytes that no file has
//! ```
//!
//! Each reads what it is asked for and keeps nothing, so a conversion holds no more of a model than its buffers.

mod cast;
mod joined;
mod narrowed;
mod permuted;
mod transposed;

pub(super) use cast::Cast;
pub(super) use joined::{Joined, Made, Part};
pub(super) use narrowed::Narrowed;
pub(super) use permuted::{Order, Permuted};
pub(super) use transposed::Transposed;

use crate::error::{Error, Result};
use std::path::Path;

/// Bytes that an adapter reads at a time.
const PIECE: usize = 1 << 16;

/// The answer to a read that does not lie in a payload: a fault of the caller's, told as the end of a file is.
fn outside() -> Error {
    Error::io(Path::new("payload"), "read it", std::io::ErrorKind::UnexpectedEof.into())
}

/// Whether `len` bytes from `offset` on lie in a payload of `total` bytes.
fn check(offset: u64, len: usize, total: u64) -> Result<()> {
    match offset.checked_add(len as u64) {
        Some(end) if end <= total => Ok(()),
        _ => Err(outside()),
    }
}

#[cfg(test)]
mod tests;
