//! What every export writes with: pieces of payloads, and the digest of what passes through.

use crate::convert::source::hex;
use crate::error::{Error, Result};
use crate::source::Payload;
use crate::write::CHUNK;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::Path;

/// Sums up the digest and length of what passes through.
pub(super) struct Hashed<W> {
    out: W,
    sha: Sha256,
    bytes: u64,
}

impl<W: Write> Hashed<W> {
    pub fn new(out: W) -> Self {
        Self { out, sha: Sha256::new(), bytes: 0 }
    }

    /// Bytes written so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Length and SHA-256, in lower-case hexadecimal digits, of all that was written.
    pub fn finish(mut self) -> io::Result<(u64, String)> {
        self.out.flush()?;
        Ok((self.bytes, hex(&self.sha.finalize())))
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.sha.update(bytes.get(..written).unwrap_or_default());
        self.bytes = self.bytes.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes a whole payload, in pieces. `path` is the output's, for messages; `progress` is told the bytes of each piece.
pub(super) fn copy(
    payload: &dyn Payload,
    out: &mut dyn Write,
    path: &Path,
    buffer: &mut Vec<u8>,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let failed = |error| Error::io(path, "write it", error);
    let mut at = 0u64;
    while at < payload.len() {
        let left = usize::try_from(payload.len().saturating_sub(at)).unwrap_or(CHUNK);
        buffer.resize(left.min(CHUNK), 0);
        payload.read_at(at, buffer)?;
        out.write_all(buffer).map_err(failed)?;
        at = at.saturating_add(buffer.len() as u64);
        progress(buffer.len() as u64);
    }
    Ok(())
}
