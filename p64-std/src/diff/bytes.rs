//! Payloads compared byte for byte.

use crate::error::Result;
use crate::source::Payload;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Bytes compared at once.
const PIECE: u64 = 1 << 18;
/// Pieces that a thread takes at once.
const PIECES: u64 = 16;

/// Offset of the first byte in which two payloads of one length differ.
pub(super) fn first_difference(a: &dyn Payload, b: &dyn Payload) -> Result<Option<u64>> {
    let len = a.len().min(b.len());
    let shares = len.div_ceil(PIECE * PIECES);
    let share = |scratch: &mut [Vec<u8>; 2], index: u64| {
        let first = index.saturating_mul(PIECE * PIECES);
        let end = first.saturating_add(PIECE * PIECES).min(len);
        let mut start = first;
        while start < end {
            let size = end.saturating_sub(start).min(PIECE);
            let [here, there] = scratch;
            let (x, y) = (piece(a, start, size, here)?, piece(b, start, size, there)?);
            if x != y {
                let at = x.iter().zip(y).position(|(x, y)| x != y).unwrap_or(0);
                return Ok(Some(start.saturating_add(at as u64)));
            }
            start = start.saturating_add(size);
        }
        Ok(None)
    };
    if shares <= 1 {
        return share(&mut Default::default(), 0);
    }
    let shares = usize::try_from(shares).unwrap_or(usize::MAX);
    let found: Result<Vec<Option<u64>>> =
        (0..shares).into_par_iter().map_init(Default::default, |scratch, index| share(scratch, index as u64)).collect();
    Ok(found?.into_iter().flatten().min())
}

/// CRC-32C of a payload.
pub(super) fn checksum(payload: &dyn Payload) -> Result<u64> {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    let mut scratch = Vec::new();
    let mut start = 0;
    while start < payload.len() {
        let size = payload.len().saturating_sub(start).min(PIECE);
        digest.update(piece(payload, start, size, &mut scratch)?);
        start = start.saturating_add(size);
    }
    Ok(digest.finalize())
}

/// Bytes of a payload, where they lie if they can be had there.
fn piece<'b>(payload: &'b dyn Payload, start: u64, size: u64, scratch: &'b mut Vec<u8>) -> Result<&'b [u8]> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let in_place = payload.bytes().and_then(|all| all.get(usize::try_from(start).ok()?..)?.get(..size));
    if let Some(bytes) = in_place {
        return Ok(bytes);
    }
    scratch.resize(size, 0);
    payload.read_at(start, scratch)?;
    Ok(scratch)
}
