//! A new file in which long runs of zero bytes take no room.

use std::io::{self, Seek, SeekFrom, Write};

/// Length and alignment of what becomes a hole, a multiple of every block size in use.
const BLOCK: u64 = 64 << 10;

/// Writes to a file that was empty, and steps over each aligned 64 KiB of zeros instead of writing them: there the file has
/// a hole, which reads as zeros. Weights begin with another byte, so that looking costs nothing but where it pays.
///
/// [`Holes::finish`] gives the file its length, which a hole at its end does not.
#[derive(Debug)]
pub struct Holes<W> {
    out: W,
    at: u64,
    /// One past the last byte that was written.
    written: u64,
    /// One past the last byte that was written or stepped over.
    end: u64,
}

impl<W: Write + Seek> Holes<W> {
    /// Writes to `out`, which is empty and at its beginning.
    pub const fn new(out: W) -> Self {
        Self { out, at: 0, written: 0, end: 0 }
    }

    /// Makes the file as long as what was written to it.
    ///
    /// # Errors
    /// What the file answers.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(last) = self.end.checked_sub(1).filter(|_| self.written < self.end) {
            self.out.seek(SeekFrom::Start(last))?;
            self.out.write_all(&[0])?;
        }
        self.out.flush()
    }
}

impl<W: Write + Seek> Write for Holes<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let to_block = BLOCK.saturating_sub(self.at % BLOCK) % BLOCK;
        let (head, blocks) = bytes.split_at_checked(index(to_block)).unwrap_or((bytes, &[]));
        let run = |zero: bool| blocks.chunks(index(BLOCK)).take_while(|block| is_hole(block) == zero).count();
        let zeros = if head.is_empty() { run(true) } else { 0 };
        let len = if zeros > 0 {
            let len = (zeros as u64).saturating_mul(BLOCK);
            self.out.seek_relative(i64::try_from(len).map_err(io::Error::other)?)?;
            index(len)
        } else {
            let data = bytes.get(..head.len().saturating_add(run(false).saturating_mul(index(BLOCK))));
            let len = self.out.write(data.unwrap_or(bytes))?;
            self.written = self.written.max(self.at.saturating_add(len as u64));
            len
        };
        self.at = self.at.saturating_add(len as u64);
        self.end = self.end.max(self.at);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write + Seek> Seek for Holes<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.out.seek(to)?;
        Ok(self.at)
    }
}

fn index(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

/// Whether `block` is a whole one of zeros.
fn is_hole(block: &[u8]) -> bool {
    let zeros = |part: &[u8]| part.iter().fold(0, |all, byte| all | byte) == 0;
    block.len() as u64 == BLOCK && block.get(..64).is_some_and(zeros) && block.chunks(4096).all(zeros)
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
        let block = usize::try_from(BLOCK).expect("small");
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
                // Three blocks with something in them, the last 77 bytes and the one that was changed.
                assert_eq!(out.bytes, 3 * block + 77 + 1);
            }
        }
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
