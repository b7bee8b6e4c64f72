//! Reading a GGUF through: pieces of it, and the padding that no P64 carries.

use crate::error::{Error, Result};
use crate::gguf::{GgufFile, data_order};
use crate::write::CHUNK;
use p64_core::extent::Extent;
use std::fmt::Write as _;

/// Calls `take` with the bytes of a range of the file, in pieces.
pub(super) fn for_each_piece<E: From<Error>>(
    file: &GgufFile,
    range: Extent,
    buffer: &mut Vec<u8>,
    mut take: impl FnMut(&[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut at = range.start();
    while at < range.end() {
        let left = range.end().saturating_sub(at);
        let len = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        buffer.resize(buffer.len().max(len), 0);
        let piece = buffer.get_mut(..len).unwrap_or_default();
        file.read_at(at, piece)?;
        take(piece)?;
        at = at.saturating_add(len as u64);
    }
    Ok(())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// File offset of the first byte of padding that is not zero: between the table and the data, or between payloads.
pub(super) fn first_odd_padding(part: &GgufFile, buffer: &mut Vec<u8>) -> Result<Option<u64>> {
    let gguf = part.gguf();
    let mut end = gguf.info_end();
    for index in data_order(gguf.tensors()) {
        let Some(tensor) = gguf.tensors().get(index).filter(|tensor| tensor.size != 0) else { continue };
        let payload = gguf.extent(tensor);
        let gap = Extent::between(end, payload.start()).unwrap_or_default();
        let mut odd = None;
        let mut at = gap.start();
        for_each_piece(part, gap, buffer, |piece| -> Result<()> {
            odd = odd.or((at..).zip(piece).find(|(_, byte)| **byte != 0).map(|(offset, _)| offset));
            at = at.saturating_add(piece.len() as u64);
            Ok(())
        })?;
        if odd.is_some() {
            return Ok(odd);
        }
        end = payload.end();
    }
    Ok(None)
}
