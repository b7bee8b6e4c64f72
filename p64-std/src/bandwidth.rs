//! How fast this machine reads memory: the roof over every product with one position, which reads each weight once.
//!
//! Threads sum parts of one buffer that no cache holds. The loads are what the compiler makes of a safe loop with
//! independent sums; pages are what an allocation gets, which is what a mapped file has unless huge pages are switched on
//! for everything ([`huge_pages`]).

use crate::error::{Error, Result};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Least bytes to read: several times what caches of processors with few cores hold.
pub const LEAST_BYTES: usize = 256 << 20;

/// Independent sums of a thread: as vectors of 16 bytes they fill half of the registers.
const SUMS: usize = 16;

/// Most threads, as for a pool of the forward pass.
const MAX_THREADS: usize = 1024;

/// What was read, and how fast in each pass.
#[derive(Clone, PartialEq, Debug)]
pub struct Bandwidth {
    /// Threads that read, each a part of its own.
    pub threads: usize,
    /// Bytes that one pass reads.
    pub bytes: usize,
    /// Bytes a second, pass after pass.
    pub passes: Vec<f64>,
}

impl Bandwidth {
    /// Bytes a second of the middle pass (the slower of the middle two).
    #[must_use]
    pub fn median(&self) -> f64 {
        let mut sorted = self.passes.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default()
    }

    /// Bytes a second of the best pass: nearest to what the machine can do, when others use it too.
    #[must_use]
    pub fn best(&self) -> f64 {
        self.passes.iter().copied().fold(0.0, f64::max)
    }
}

/// Bytes that no cache of this machine holds a large part of: [`LEAST_BYTES`], or four times the last level where the
/// system says how large that is.
#[must_use]
pub fn uncached_bytes() -> usize {
    let size = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size").unwrap_or_default();
    let cache = size.trim().strip_suffix('K').and_then(|size| size.parse().ok()).unwrap_or(0usize);
    cache.saturating_mul(4 << 10).max(LEAST_BYTES)
}

/// When the system gives memory huge pages: `always`, `madvise` (to those who ask, which nothing here does) or `never`.
/// `None` where it does not say.
#[must_use]
pub fn huge_pages() -> Option<String> {
    let text = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    chosen(&text).map(str::to_owned)
}

/// The word in brackets.
fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

/// Reads `bytes` bytes `passes` times, after once to warm up, with `threads` threads; 0 means one per core.
///
/// # Errors
/// [`Error::Usage`] for more than 1024 threads, and when the system gives no more threads or memory.
pub fn measure(threads: usize, bytes: usize, passes: usize) -> Result<Bandwidth> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { cores.min(MAX_THREADS) } else { threads };
    if threads > MAX_THREADS {
        let reason = format!("{threads} threads are too many; ask for at most {MAX_THREADS} (-t)");
        return Err(Error::Usage { reason });
    }
    let (done, finished) = mpsc::channel();
    let mut readers = Vec::with_capacity(threads);
    let each = (bytes / threads / size_of::<u64>()).next_multiple_of(SUMS);
    for _ in 0..threads {
        let (begin, begun) = mpsc::channel();
        let mut part = Vec::new();
        part.try_reserve_exact(each)
            .map_err(|_| Error::Usage { reason: format!("there is no memory for {bytes} bytes to read") })?;
        let done = done.clone();
        let reader = move || read(part, each, &begun, &done);
        thread::Builder::new()
            .spawn(reader)
            .map_err(|error| Error::Usage { reason: format!("cannot start {threads} threads: {error}") })?;
        readers.push(begin);
    }
    drop(done);
    let bytes = each.saturating_mul(size_of::<u64>()).saturating_mul(threads);
    let mut times = Vec::new();
    // Filling, which is not timed, and the warm-up come first.
    for _ in 0..passes.saturating_add(2) {
        readers.iter().for_each(|begin| {
            // Readers end when `begin` is dropped, not before.
            let _ = begin.send(());
        });
        let spans: Vec<(Instant, Instant)> = finished.iter().take(threads).collect();
        let first = spans.iter().map(|(start, _)| *start).min();
        let last = spans.iter().map(|(_, end)| *end).max();
        times.push(first.zip(last).map_or(Duration::ZERO, |(first, last)| last.duration_since(first)));
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate of a few digits")]
    let rate = |time: &Duration| bytes as f64 / time.as_secs_f64().max(1e-9);
    Ok(Bandwidth { threads, bytes, passes: times.iter().skip(2).map(rate).collect() })
}

/// A thread: fills its part when it is first told to begin, so that the pages are its own, and from then on sums it. Memory that nothing
/// was written to is one page of zeros, again and again.
fn read(mut part: Vec<u64>, len: usize, begun: &mpsc::Receiver<()>, done: &mpsc::Sender<(Instant, Instant)>) {
    while begun.recv().is_ok() {
        let start = Instant::now();
        if part.is_empty() {
            part.resize(len, 0x0123_4567_89ab_cdef);
        } else {
            std::hint::black_box(sum(&part));
        }
        if done.send((start, Instant::now())).is_err() {
            break;
        }
    }
}

fn sum(part: &[u64]) -> u64 {
    let mut sums = [0u64; SUMS];
    for values in part.as_chunks::<SUMS>().0 {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.wrapping_add(*value);
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_read_in_every_pass() {
        for threads in [1, 3] {
            let found = measure(threads, 3 << 20, 4).expect("threads and memory");
            assert_eq!((found.threads, found.passes.len()), (threads, 4));
            assert!((3 << 20..4 << 20).contains(&found.bytes), "{}", found.bytes);
            assert!(found.median() > 0.0 && found.median() <= found.best());
        }
        assert!(measure(MAX_THREADS + 1, 1 << 20, 1).expect_err("too many").to_string().contains("at most 1024"));
    }

    #[test]
    fn the_sum_is_one() {
        let values: Vec<u64> = (0..SUMS as u64 * 100).collect();
        assert_eq!(sum(&values), values.iter().sum::<u64>());
    }

    #[test]
    fn the_middle_and_the_best() {
        let of = |passes: &[f64]| Bandwidth { threads: 1, bytes: 1, passes: passes.to_vec() };
        assert!((of(&[3.0, 1.0, 2.0]).median() - 2.0).abs() < 1e-12);
        assert!((of(&[4.0, 1.0, 3.0, 2.0]).median() - 2.0).abs() < 1e-12);
        assert!((of(&[3.0, 4.0, 2.0]).best() - 4.0).abs() < 1e-12);
        assert!(of(&[]).median().abs() < 1e-12);
    }

    #[test]
    fn the_chosen_word_has_brackets() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("always"), None);
        assert!(uncached_bytes() >= LEAST_BYTES);
    }
}
