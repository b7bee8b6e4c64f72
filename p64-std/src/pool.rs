//! Threads: [`Pool`] for the many short jobs of the forward pass, and rayon for long tasks of unequal length.

mod shares;
mod tasks;
mod team;

pub(crate) use tasks::{Tasks, with_threads};

use crate::error::{Error, Result};
use p64_core::kernel::workers::Job;
use p64_core::kernel::{Serial, Workers};
use shares::Shares;
use std::fmt;
use team::Team;

/// Floats below which an output is not worth telling another thread of.
const WORTH_SHARING: usize = 128;

/// Units that stay together where there are many: kernels take rows by eights and write whole cache lines of 16.
const TOGETHER: usize = 16;

/// Most threads of a pool: asked for 100,000, a machine of two cores had not started a job after 20 seconds.
const MAX_THREADS: usize = 1024;

/// Runs core's jobs on a fixed number of threads, of which the caller's is one.
pub struct Pool {
    threads: usize,
    /// `None` for one thread: the caller's own.
    team: Option<Team>,
}

impl Pool {
    /// A pool of `threads` threads; 0 means one per core.
    ///
    /// # Errors
    /// [`Error::Usage`] for more than 1024 threads, and when the system gives no more.
    pub fn new(threads: usize) -> Result<Self> {
        let threads = count(threads)?;
        let start = || {
            Team::new(threads - 1)
                .map_err(|error| Error::Usage { reason: format!("cannot start {threads} threads: {error}") })
        };
        Ok(Self { threads, team: (threads > 1).then(start).transpose()? })
    }

    /// Runs `job` over `out`, the pieces being multiples of `together` units.
    fn run(&self, out: &mut [f32], unit: usize, together: usize, job: Job<'_>) {
        let Some(team) = self.team.as_ref().filter(|_| out.len() >= WORTH_SHARING) else {
            return Serial.for_each_chunk(out, unit, job);
        };
        let shares = Shares::new(out, unit.max(1), together, self.threads);
        team.run(&|thread| shares.work(thread, job));
    }
}

/// How many threads are meant: at least one; 0 means one per core.
fn count(threads: usize) -> Result<usize> {
    if threads > MAX_THREADS {
        let reason = format!("{threads} threads are too many; ask for at most {MAX_THREADS} (-t)");
        return Err(Error::Usage { reason });
    }
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
    Ok(if threads == 0 { cores().min(MAX_THREADS) } else { threads })
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl Workers for Pool {
    fn for_each_chunk(&self, out: &mut [f32], unit: usize, job: Job<'_>) {
        self.run(out, unit, TOGETHER, job);
    }

    fn for_each_unit(&self, out: &mut [f32], unit: usize, job: Job<'_>) {
        self.run(out, unit, 1, job);
    }

    fn threads(&self) -> usize {
        self.threads
    }
}

#[cfg(test)]
mod tests;
