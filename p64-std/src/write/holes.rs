//! A new file in which long runs of zero bytes take no room.

use super::writer::zeros;
use std::io::{self, Seek, SeekFrom, Write};

/// Shortest run that becomes a hole; a multiple of every block size in use.
const RUN: u64 = 64 << 10;
/// In pieces of this many bytes the runs are looked for.
const PIECE: usize = 16 << 10;

/// Writes to a file that was empty, and steps over runs of 64 KiB of zeros and more instead of writing them: there the file
/// has a hole, which reads as zeros. Weights begin with another byte, so that looking costs nothing but where it pays.
///
/// [`Holes::finish`] gives the file its length, which a hole at its end does not.
#[derive(Debug)]
pub struct Holes<W> {
    out: W,
    /// Position of `out`.
    at: u64,
    /// Zeros that follow there and are not written yet.
    pending: u64,
    /// One past the last byte that was written.
    written: u64,
    /// One past the last byte that was written or stepped over.
    end: u64,
}

impl<W: Write + Seek> Holes<W> {
    /// Writes to `out`, which is empty and at its beginning.
    pub const fn new(out: W) -> Self {
        Self { out, at: 0, pending: 0, written: 0, end: 0 }
    }

    /// Makes the file as long as what was written to it.
    ///
    /// # Errors
    /// What the file answers.
    pub fn finish(&mut self) -> io::Result<()> {
        self.settle()?;
        if let Some(last) = self.end.checked_sub(1).filter(|_| self.written < self.end) {
            self.out.seek(SeekFrom::Start(last))?;
            self.data(&[0])?;
        }
        self.out.flush()
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Writes or steps over the zeros that are due.
    fn settle(&mut self) -> io::Result<()> {
        let due = std::mem::take(&mut self.pending);
        if due < RUN {
            zeros(&mut self.out, due)?;
            if due > 0 {
                self.written = self.written.max(self.at.saturating_add(due));
            }
        } else {
            self.out.seek_relative(i64::try_from(due).map_err(io::Error::other)?)?;
        }
        self.at = self.at.saturating_add(due);
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.out.write(bytes)?;
        self.at = self.at.saturating_add(len as u64);
        self.written = self.written.max(self.at);
        self.end = self.end.max(self.at);
        Ok(len)
    }
}

impl<W: Write + Seek> Write for Holes<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = zero_pieces(bytes);
        if len > 0 {
            self.pending = self.pending.saturating_add(len as u64);
            self.end = self.end.max(self.at.saturating_add(self.pending));
            return Ok(len);
        }
        self.settle()?;
        self.data(bytes.get(..other_pieces(bytes)).unwrap_or(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.settle()?;
        self.out.flush()
    }
}

impl<W: Write + Seek> Seek for Holes<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.settle()?;
        self.at = self.out.seek(to)?;
        Ok(self.at)
    }
}

/// Length of the pieces of zeros that `bytes` begin with.
fn zero_pieces(bytes: &[u8]) -> usize {
    bytes.chunks(PIECE).take_while(|piece| is_zero(piece)).map(<[u8]>::len).sum()
}

/// Length of the pieces before the first one of zeros.
fn other_pieces(bytes: &[u8]) -> usize {
    bytes.chunks(PIECE).take_while(|piece| !is_zero(piece)).map(<[u8]>::len).sum()
}

fn is_zero(bytes: &[u8]) -> bool {
    let zero = |part: &[u8]| part.iter().fold(0, |all, byte| all | byte) == 0;
    let (head, rest) = bytes.split_at_checked(64).unwrap_or((bytes, &[]));
    zero(head) && rest.chunks(4096).all(zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Counts what reaches the file.
    struct Counted {
        file: Cursor<Vec<u8>>,
        bytes: usize,
    }

    impl Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes += bytes.len();
            self.file.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Counted {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.file.seek(to)
        }
    }

    #[test]
    fn the_file_reads_as_it_was_written_and_zeros_are_not() {
        let block = usize::try_from(RUN).expect("small");
        let mut content = vec![0u8; 9 * block + 77];
        content[3] = 1;
        content[4 * block + 5] = 2;
        content[6 * block - 1] = 3;
        // In one piece, in pieces that are no whole blocks, and in pieces of several.
        for piece in [content.len(), 1000, block, 3 * block + 1] {
            let mut out = Counted { file: Cursor::new(Vec::new()), bytes: 0 };
            let mut holes = Holes::new(&mut out);
            content.chunks(piece).for_each(|piece| holes.write_all(piece).expect("written"));
            holes.seek(SeekFrom::Start(1)).expect("there");
            holes.write_all(&[9]).expect("written");
            holes.finish().expect("finished");
            let mut expected = content.clone();
            expected[1] = 9;
            assert!(out.file.get_ref() == &expected, "pieces of {piece}");
            if piece == content.len() {
                // Three pieces with something in them, the last byte and the one that was changed: every run between
                // them is long enough.
                assert_eq!(out.bytes, 3 * PIECE + 1 + 1);
            }
        }
    }

    /// Zeros behind a seek back, too few for a hole: the file reaches as far as before.
    #[test]
    fn zeros_written_in_the_middle_move_no_end() {
        let mut file = Cursor::new(Vec::new());
        let mut holes = Holes::new(&mut file);
        let table = 36_000;
        for (byte, count) in [(b'F', 640), (0, table), (b'D', 1000)] {
            holes.write_all(&vec![byte; count]).expect("written");
        }
        holes.seek(SeekFrom::Start(640)).expect("there");
        let mut crcs = vec![0; table];
        crcs[0] = 1;
        crcs[table - 1] = 2;
        holes.write_all(&crcs).expect("written");
        holes.finish().expect("finished");
        let bytes = file.into_inner();
        assert!(bytes[640..640 + table] == crcs && bytes[640 + table..].iter().all(|byte| *byte == b'D'));
        assert_eq!(bytes.len(), 640 + table + 1000);
    }

    #[test]
    fn a_hole_at_the_end_counts() {
        let mut file = Cursor::new(Vec::new());
        let mut holes = Holes::new(&mut file);
        holes.write_all(&vec![0; 1 << 20]).expect("written");
        holes.finish().expect("finished");
        assert_eq!(file.into_inner(), vec![0; 1 << 20]);
        let mut nothing = Cursor::new(Vec::new());
        Holes::new(&mut nothing).finish().expect("finished");
        assert!(nothing.into_inner().is_empty());
    }
}
