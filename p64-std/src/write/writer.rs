//! Writes a planned container.

use super::plan::Plan;
use crc_fast::{CrcAlgorithm, Digest};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

/// Largest piece in which payloads pass through memory.
pub const CHUNK: usize = 4 << 20;

const ZEROS: [u8; 4096] = [0; 4096];

/// Takes one tensor's payload, in pieces of any size, and sums up its checksum.
pub struct BlobSink<'w> {
    out: &'w mut dyn Write,
    digest: Digest,
    left: u64,
}

impl std::fmt::Debug for BlobSink<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlobSink").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Write for BlobSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the payload is longer than its plan"));
        }
        self.out.write_all(bytes)?;
        self.digest.update(bytes);
        self.left = self.left.saturating_sub(bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes the container to `out` from its position 0. `payload` is called once per tensor in file order with the
/// tensor's position in the model that was planned, and writes exactly its planned bytes.
///
/// # Errors
/// What `out` or `payload` answer, and [`io::ErrorKind::InvalidInput`] when a payload has another length than planned.
pub fn write<W: Write + Seek, E: From<io::Error>>(
    plan: &Plan,
    out: &mut W,
    mut payload: impl FnMut(usize, &mut BlobSink<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut checksums = Vec::new();
    let mut front = new_digest();
    front.update(&plan.front);
    push_checksum(&mut checksums, &front)?;

    let mut buffered = BufWriter::with_capacity(1 << 18, &mut *out);
    buffered.write_all(&plan.front)?;
    zeros(&mut buffered, plan.checksum_table_len())?;
    let mut at = (plan.front.len() as u64).saturating_add(plan.checksum_table_len());
    for (index, range) in &plan.blobs {
        zeros(&mut buffered, range.start.saturating_sub(at))?;
        let left = range.end.saturating_sub(range.start);
        let mut sink = BlobSink { out: &mut buffered, digest: new_digest(), left };
        payload(*index, &mut sink)?;
        if sink.left != 0 {
            let short = "the payload is shorter than its plan";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, short).into());
        }
        push_checksum(&mut checksums, &sink.digest)?;
        at = range.end;
    }
    zeros(&mut buffered, plan.file_len().saturating_sub(at))?;
    buffered.flush()?;
    drop(buffered);
    out.seek(SeekFrom::Start(plan.front.len() as u64))?;
    out.write_all(&checksums)?;
    out.flush()?;
    Ok(())
}

fn new_digest() -> Digest {
    Digest::new(CrcAlgorithm::Crc32Iscsi)
}

fn push_checksum(table: &mut Vec<u8>, digest: &Digest) -> io::Result<()> {
    let crc = u32::try_from(digest.finalize()).map_err(|_| io::Error::other("a CRC-32 of more than 32 bits"))?;
    table.extend_from_slice(&crc.to_le_bytes());
    Ok(())
}

/// Writes `count` zero bytes.
pub(crate) fn zeros(out: &mut dyn Write, mut count: u64) -> io::Result<()> {
    while count > 0 {
        let piece = ZEROS.get(..usize::try_from(count).unwrap_or(ZEROS.len())).unwrap_or(&ZEROS);
        out.write_all(piece)?;
        count = count.saturating_sub(piece.len() as u64);
    }
    Ok(())
}
