//! The files of a source: their SHA-256, and whether they stayed as they were.

use super::source::hex;
use super::{Phase, Progress};
use crate::error::{Error, Result};
use crate::files;
use crate::gguf::GgufFile;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

/// Bytes that are read at once. They stay in a core's own cache on their way to the checksum and the file: with 4 MiB a
/// conversion took a quarter more CPU time.
pub(super) const PIECE: usize = 256 << 10;

/// A file of a source, open.
pub(super) struct Input<'s> {
    path: &'s Path,
    len: u64,
    changed: Option<SystemTime>,
    bytes: Bytes<'s>,
}

enum Bytes<'s> {
    File(File),
    Gguf(&'s GgufFile),
}

impl<'s> Input<'s> {
    pub fn open(path: &'s Path) -> Result<Self> {
        let (file, len) = files::open(path)?;
        let changed = files::metadata(&file, path)?.modified().ok();
        Ok(Self { path, len, changed, bytes: Bytes::File(file) })
    }

    pub fn of_gguf(part: &'s GgufFile) -> Result<Self> {
        let changed = match part.file() {
            Some(file) => files::metadata(file, part.path())?.modified().ok(),
            None => None,
        };
        Ok(Self { path: part.path(), len: part.gguf().file_len(), changed, bytes: Bytes::Gguf(part) })
    }

    pub const fn path(&self) -> &'s Path {
        self.path
    }

    pub const fn len(&self) -> u64 {
        self.len
    }

    /// # Errors
    /// [`Error::SourceChanged`] when length or time of the last change are not what they were at the beginning.
    pub fn check_unchanged(&self) -> Result<()> {
        let file = match &self.bytes {
            Bytes::File(file) => file,
            Bytes::Gguf(part) => match part.file() {
                Some(file) => file,
                None => return Ok(()),
            },
        };
        let about = files::metadata(file, self.path)?;
        if (about.len(), about.modified().ok()) == (self.len, self.changed) {
            return Ok(());
        }
        Err(Error::SourceChanged { path: self.path.to_owned() })
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        match &self.bytes {
            Bytes::File(file) => files::read_at(file, self.path, offset, out),
            Bytes::Gguf(part) => part.read_at(offset, out),
        }
    }
}

/// How often the progress of a digest is told that is waited for.
const TICK: Duration = Duration::from_millis(100);

/// What a digest that runs beside other work shares with it.
#[derive(Default)]
struct Shared {
    /// Bytes read so far.
    done: AtomicU64,
    /// Nobody needs the digest any more.
    stop: AtomicBool,
}

/// The SHA-256 of each input, which another thread is summing up.
pub(super) struct Digesting<'d> {
    inputs: &'d [Input<'d>],
    shared: &'d Shared,
    /// `None` where the system gave no thread: the one that waits does the work.
    receiver: Option<Receiver<Result<Vec<String>>>>,
}

impl<'d> Digesting<'d> {
    /// Calls `work` while another thread reads the inputs. It is the longest single task of a conversion that changes no
    /// payload, so that it begins before the source is even understood.
    pub fn beside<T>(inputs: &'d [Input<'d>], work: impl FnOnce(&Digesting<'_>) -> Result<T>) -> Result<T> {
        let shared = Shared::default();
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(1);
            let progressed = &shared;
            let thread = thread::Builder::new().name("p64-sha256".to_owned()).spawn_scoped(scope, move || {
                // Nobody listens any more when the work failed.
                let _ = sender.send(digests(inputs, progressed));
            });
            let digesting = Digesting { inputs, shared: progressed, receiver: thread.is_ok().then_some(receiver) };
            let worked = work(&digesting);
            shared.stop.store(true, Ordering::Relaxed);
            worked
        })
    }

    pub const fn inputs(&self) -> &'d [Input<'d>] {
        self.inputs
    }

    /// The digests, when the other thread has them, in lower-case hexadecimal digits; to be asked for once. Where there are
    /// files, the last of the progress is told in any case, so that who shows it sees this phase end.
    pub fn wait(&self, progress: &mut dyn FnMut(Progress)) -> Result<Vec<String>> {
        let total = self.inputs.iter().map(Input::len).sum();
        let mut told = |done| progress(Progress { phase: Phase::Digest, done, total });
        let digests = loop {
            match self.receiver.as_ref().map(|receiver| receiver.recv_timeout(TICK)) {
                Some(Ok(digests)) => break digests?,
                Some(Err(RecvTimeoutError::Timeout)) => told(self.shared.done.load(Ordering::Relaxed)),
                // It panicked, and the scope will say so; until then its work is done here.
                Some(Err(RecvTimeoutError::Disconnected)) | None => break digests(self.inputs, &Shared::default())?,
            }
        };
        if total > 0 {
            told(total);
        }
        Ok(digests)
    }
}

/// SHA-256 of each file, in lower-case hexadecimal digits; fewer than there are files when told to stop.
fn digests(inputs: &[Input<'_>], shared: &Shared) -> Result<Vec<String>> {
    let mut buffer = Vec::new();
    let mut digests = Vec::new();
    for input in inputs {
        let mut sha = Sha256::new();
        let mut at = 0u64;
        while at < input.len {
            if shared.stop.load(Ordering::Relaxed) {
                return Ok(digests);
            }
            let left = usize::try_from(input.len.saturating_sub(at)).unwrap_or(PIECE);
            buffer.resize(left.min(PIECE), 0);
            input.read_at(at, &mut buffer)?;
            sha.update(&buffer);
            at = at.saturating_add(buffer.len() as u64);
            shared.done.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        }
        digests.push(hex(&sha.finalize()));
    }
    Ok(digests)
}
