//! Sends a growing file to its device while it grows, so that the flush at its end finds little left to do.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Bytes after which another flush begins, if the one before has ended.
const STRIDE: u64 = 32 << 20;
/// Bytes that a flush of their own would cost more than it spares.
const LITTLE: u64 = 1 << 20;

/// A file that another thread flushes now and then.
pub(super) struct Early<'f> {
    file: &'f File,
    since: u64,
    /// Wakes the other thread; `None` where the system gave none.
    wake: Option<SyncSender<()>>,
}

impl Early<'_> {
    fn wake(&mut self) {
        if let Some(wake) = &self.wake {
            // When it is busy still, its next round takes these bytes too.
            let _ = wake.try_send(());
        }
        self.since = 0;
    }
}

impl Write for Early<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.since = self.since.saturating_add(written as u64);
        if self.since >= STRIDE {
            self.wake();
        }
        Ok(written)
    }

    /// To be called before a pause: the other thread makes use of it. A little is left to the flush at the end.
    fn flush(&mut self) -> io::Result<()> {
        if self.since >= LITTLE {
            self.wake();
        }
        self.file.flush()
    }
}

impl Seek for Early<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Calls `write` with `file`. `failed` makes an error of a flush that failed: the system tells of a failure once, so that the
/// flush at the end would not.
pub(super) fn flushed<T, E>(
    file: &File,
    failed: impl FnOnce(io::Error) -> E,
    write: impl FnOnce(&mut Early<'_>) -> Result<T, E>,
) -> Result<T, E> {
    thread::scope(|scope| {
        let (wake, woken) = sync_channel(1);
        let flush = move || woken.iter().try_for_each(|()| file.sync_data());
        let flusher = thread::Builder::new().name("p64-flush".to_owned()).spawn_scoped(scope, flush).ok();
        let mut early = Early { file, since: 0, wake: flusher.is_some().then_some(wake) };
        let written = write(&mut early);
        // Nobody wakes it any more, so that it ends.
        drop(early);
        let flushed = flusher.map_or(Ok(()), |flusher| flusher.join().unwrap_or(Ok(())));
        let written = written?;
        flushed.map_err(failed)?;
        Ok(written)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn the_bytes_are_those_that_were_written() {
        let mut file = tempfile::tempfile().expect("a file");
        let piece: Vec<u8> = (0..1 << 20).map(|at: u32| u8::try_from(at % 251).expect("a byte")).collect();
        let pieces = 80;
        let end = flushed(
            &file,
            |error| error,
            |out| {
                (0..pieces).try_for_each(|_| out.write_all(&piece))?;
                out.seek(SeekFrom::Start(3))?;
                out.write_all(b"x")?;
                out.seek(SeekFrom::End(0))
            },
        );
        assert_eq!(end.expect("written"), pieces << 20);
        let mut expected = piece.repeat(80);
        expected[3] = b'x';
        file.seek(SeekFrom::Start(0)).expect("sought");
        let mut found = Vec::new();
        file.read_to_end(&mut found).expect("read");
        assert!(found == expected);
    }

    #[test]
    fn what_the_writer_says_comes_first() {
        let file = tempfile::tempfile().expect("a file");
        let result = flushed(&file, |_| "flush", |_| -> Result<(), _> { Err("write") });
        assert_eq!(result, Err("write"));
    }
}
