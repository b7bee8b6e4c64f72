//! Threads for the forward pass.

use crate::error::{Error, Result};
use p64_core::kernel::workers::Job;
use p64_core::kernel::{Serial, Workers};
use rayon::ThreadPool;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use std::fmt;

/// Floats below which an output is not worth waking another thread for.
const WORTH_SHARING: usize = 128;

/// Most threads of a pool: asked for 100,000, rayon had not started a job after 20 seconds on two cores.
const MAX_THREADS: usize = 1024;

/// Runs core's jobs on a fixed number of threads.
pub struct Pool {
    threads: usize,
    /// `None` for one thread: the caller's own.
    pool: Option<ThreadPool>,
}

impl Pool {
    /// A pool of `threads` threads; 0 means one per core.
    ///
    /// # Errors
    /// [`Error::Usage`] for more than 1024 threads, and when the system gives no more.
    pub fn new(threads: usize) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let threads = if threads == 0 { cores.min(MAX_THREADS) } else { threads };
        if threads > MAX_THREADS {
            let reason = format!("{threads} threads are too many; ask for at most {MAX_THREADS} (-t)");
            return Err(Error::Usage { reason });
        }
        if threads == 1 {
            return Ok(Self { threads, pool: None });
        }
        let built = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("p64-{i}")).build();
        let pool =
            built.map_err(|error| Error::Usage { reason: format!("cannot start {threads} threads: {error}") })?;
        Ok(Self { threads, pool: Some(pool) })
    }
}

impl Pool {
    /// What `each` makes of the items, in their order.
    pub(crate) fn map<T: Sync, R: Send>(&self, items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
        match &self.pool {
            None => items.iter().map(each).collect(),
            Some(pool) => pool.install(|| items.par_iter().with_max_len(1).map(&each).collect()),
        }
    }
}

/// Runs `job`, whose parallel iterators then use `threads` threads; 0 means one per core.
///
/// # Errors
/// As [`Pool::new`].
pub(crate) fn with_threads<R: Send>(threads: usize, job: impl FnOnce() -> R + Send) -> Result<R> {
    if let Pool { pool: Some(pool), .. } = Pool::new(threads)? {
        return Ok(pool.install(job));
    }
    let built = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = built.map_err(|error| Error::Usage { reason: format!("cannot start a thread: {error}") })?;
    Ok(pool.install(job))
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl Workers for Pool {
    fn for_each_chunk(&self, out: &mut [f32], unit: usize, job: Job<'_>) {
        let Some(pool) = self.pool.as_ref().filter(|_| out.len() >= WORTH_SHARING) else {
            return Serial.for_each_chunk(out, unit, job);
        };
        let units = out.len().div_ceil(unit.max(1));
        // Two chunks a thread: one that is late costs half a share.
        let per_chunk = units.div_ceil(self.threads.saturating_mul(2)).max(1);
        pool.install(|| {
            let chunks = out.par_chunks_mut(per_chunk.saturating_mul(unit.max(1))).enumerate();
            chunks.for_each(|(index, chunk)| job(index.saturating_mul(per_chunk), chunk));
        });
    }

    fn threads(&self) -> usize {
        self.threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_a_machine_can_start_are_refused_at_once() {
        for threads in [MAX_THREADS + 1, usize::MAX] {
            let error = Pool::new(threads).expect_err("too many");
            assert!(error.to_string().contains("at most 1024"), "{error}");
        }
    }

    #[test]
    fn every_unit_is_done_once_and_knows_its_place() {
        for threads in [1, 2, 3] {
            let pool = Pool::new(threads).expect("threads");
            for (units, unit) in [(1, 1), (7, 3), (128, 1), (1000, 4), (129, 7)] {
                let mut out = vec![0.0; units * unit];
                pool.for_each_chunk(&mut out, unit, &|first, chunk| {
                    for (index, values) in (first..).zip(chunk.chunks_mut(unit)) {
                        #[expect(clippy::cast_precision_loss, reason = "small")]
                        values.iter_mut().for_each(|value| *value += index as f32 + 1.0);
                    }
                });
                #[expect(clippy::cast_precision_loss, reason = "small")]
                let expected: Vec<f32> = (0..units).flat_map(|i| vec![i as f32 + 1.0; unit]).collect();
                assert_eq!(out, expected, "{threads} threads, {units} units of {unit}");
            }
        }
    }
}
