//! An output cut into pieces, a share of them for each thread.
//!
//! ```text
//! out      | piece | piece | piece | piece | piece | piece | piece | piece |
//! shares   |           thread 0            |           thread 1            |
//! ```
//!
//! A thread does its own share from the front, so that it reads one stretch of the weights, the same one every time the product
//! comes round. Then it helps the others, from the back: a thread that is late leaves its pieces to those that are not.

use p64_core::kernel::workers::Job;
use std::sync::{Mutex, PoisonError};

/// Pieces for each thread: what a late thread has begun, and the others have to wait for, is a fourth of its share.
const PIECES: usize = 4;

/// A piece and the number of its first unit, until somebody takes it.
type Piece<'a> = Mutex<Option<(usize, &'a mut [f32])>>;

/// The pieces that nobody has begun.
pub(super) struct Shares<'a> {
    threads: usize,
    pieces: Vec<Piece<'a>>,
}

impl<'a> Shares<'a> {
    /// Cuts `out` into whole units of `unit` values, at multiples of `together` units.
    pub(super) fn new(out: &'a mut [f32], unit: usize, together: usize, threads: usize) -> Self {
        let step = unit.saturating_mul(together).max(1);
        let steps = out.len().div_ceil(step);
        let count = steps.min(threads.saturating_mul(PIECES));
        let mut rest = out;
        let mut pieces = Vec::with_capacity(count);
        for index in 0..count {
            // Of each length there are as many as it takes: 36 steps in 8 pieces are 4, 5, 4, 5 and so on.
            let (first, end) = (index * steps / count, (index + 1) * steps / count);
            let len = ((end - first) * step).min(rest.len());
            let (piece, after) = std::mem::take(&mut rest).split_at_mut(len);
            rest = after;
            pieces.push(Mutex::new(Some((first * together, piece))));
        }
        Self { threads, pieces }
    }

    /// Does the pieces of a thread's share, then what is left of the others'.
    pub(super) fn work(&self, thread: usize, job: Job<'_>) {
        let bound = |thread: usize| thread * self.pieces.len() / self.threads;
        let (own, others) = (bound(thread)..bound(thread + 1), bound(thread + 1)..self.pieces.len());
        let before = 0..own.start;
        for piece in own.chain(others.rev()).chain(before.rev()) {
            // A lock is held for as long as taking lasts, in which nothing can panic.
            let taken = self.pieces[piece].lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some((first, out)) = taken {
                job(first, out);
            }
        }
    }
}
