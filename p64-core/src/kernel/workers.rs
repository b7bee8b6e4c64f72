//! How threads enter core: the caller spreads independent units of output over what it has.
#![forbid(unsafe_code)]

/// A job over part of an output: the index of the part's first unit, and the part.
pub type Job<'a> = &'a (dyn Fn(usize, &mut [f32]) + Sync);

/// Something that runs a job over all units of an output.
///
/// An implementation cuts `out` into chunks of whole units, runs the job on each exactly once, in any order and on any
/// thread, and returns when all are done. Results do not depend on the cut.
pub trait Workers {
    /// Runs `job` over `out`, whose length is a multiple of `unit`; `unit` is at least 1.
    fn for_each_chunk(&self, out: &mut [f32], unit: usize, job: Job<'_>);

    /// The same where every unit is work for a thread of its own: chunks may be as small as one unit.
    fn for_each_unit(&self, out: &mut [f32], unit: usize, job: Job<'_>) {
        self.for_each_chunk(out, unit, job);
    }

    /// How many chunks can run at the same time.
    fn threads(&self) -> usize;
}

/// The calling thread alone: one chunk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Workers for Serial {
    fn for_each_chunk(&self, out: &mut [f32], _unit: usize, job: Job<'_>) {
        job(0, out);
    }

    fn threads(&self) -> usize {
        1
    }
}
