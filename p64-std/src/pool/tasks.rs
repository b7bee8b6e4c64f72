//! Threads for long tasks of unequal length: conversion, comparison, statistics.

use super::count;
use crate::error::{Error, Result};
use rayon::ThreadPool;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

/// Runs tasks on a fixed number of threads; whoever is done takes the next one.
pub(crate) struct Tasks {
    threads: usize,
    /// `None` for one thread: the caller's own.
    pool: Option<ThreadPool>,
}

impl Tasks {
    /// `threads` threads; 0 means one per core.
    ///
    /// # Errors
    /// As [`super::Pool::new`].
    pub(crate) fn new(threads: usize) -> Result<Self> {
        let threads = count(threads)?;
        let pool = if threads == 1 { None } else { Some(rayon(threads)?) };
        Ok(Self { threads, pool })
    }

    /// How many tasks can run at the same time.
    pub(crate) const fn threads(&self) -> usize {
        self.threads
    }

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
/// As [`super::Pool::new`].
pub(crate) fn with_threads<R: Send>(threads: usize, job: impl FnOnce() -> R + Send) -> Result<R> {
    Ok(rayon(count(threads)?)?.install(job))
}

fn rayon(threads: usize) -> Result<ThreadPool> {
    let built = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("p64-{i}")).build();
    built.map_err(|error| Error::Usage { reason: format!("cannot start {threads} threads: {error}") })
}
