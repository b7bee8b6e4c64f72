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
use crate::source::Payload;
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

/// Fills `out` with the bytes from `offset` on of what `convert` makes of `inner`, element by element. An element has
/// `from` bytes before and `to` after.
fn read_converted(
    inner: &dyn Payload,
    (from, to): (usize, usize),
    offset: u64,
    out: &mut [u8],
    mut convert: impl FnMut(&[u8], &mut Vec<u8>),
) -> Result<()> {
    let (mut raw, mut converted) = (Vec::new(), Vec::new());
    let mut at = offset;
    let mut rest = out;
    while !rest.is_empty() {
        // Whole elements around what is wanted.
        let skip = usize::try_from(at % to as u64).unwrap_or(0);
        let elements = skip.saturating_add(rest.len()).div_ceil(to).min(PIECE / 4);
        raw.resize(elements.saturating_mul(from), 0);
        inner.read_at((at / to as u64).saturating_mul(from as u64), &mut raw)?;
        converted.clear();
        convert(&raw, &mut converted);
        let ready = converted.get(skip..).unwrap_or_default();
        let len = ready.len().min(rest.len());
        let (now, later) = rest.split_at_mut(len);
        now.copy_from_slice(ready.get(..len).unwrap_or_default());
        at = at.saturating_add(len as u64);
        rest = later;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
