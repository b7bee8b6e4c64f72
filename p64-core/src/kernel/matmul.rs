//! The product of a weight matrix with one or more positions.
#![forbid(unsafe_code)]

use super::arch::{Eight, Task, dispatch};
use super::{Activations, Kernels, Matrix, Rows, Workers};
use crate::error::{Code, Error, Place, Result};
use crate::quant::activation::{self, ActivationBlock};

/// Buffers of the caller's that [`matmul`] works in.
#[derive(Debug)]
pub struct MatmulScratch<'a> {
    /// The quantised activations: at least [`activations_len`] blocks.
    pub activations: &'a mut [ActivationBlock],
    /// The result by rows before it is turned by positions: at least [`transposed_len`] values.
    pub transposed: &'a mut [f32],
}

/// Blocks that the activations of `n` positions of `cols` elements take.
#[must_use]
pub const fn activations_len(cols: usize, n: usize) -> usize {
    (cols / 32).saturating_mul(n)
}

/// Values that the result of `n` positions and `rows` rows takes before it is turned; one position needs no turning.
#[must_use]
pub const fn transposed_len(rows: usize, n: usize) -> usize {
    if n <= 1 { 0 } else { rows.saturating_mul(n) }
}

/// `y[p][r] = sum over c of W[r][c] * x[p][c]` for `n` positions.
///
/// `x` is `n` x `cols` and `y` is `n` x `rows`, both position after position. Each weight row is read from memory once
/// for all positions. A position's result does not depend on the others, nor on the workers.
///
/// # Errors
/// [`Code::LengthMismatch`] when `x` or `y` has not exactly that size, [`Code::BufferTooSmall`] when the scratch is
/// shorter than [`activations_len`] and [`transposed_len`] say.
pub fn matmul(
    w: &Matrix<'_>,
    x: &[f32],
    n: usize,
    y: &mut [f32],
    mode: Activations,
    scratch: &mut MatmulScratch<'_>,
    workers: &dyn Workers,
) -> Result<()> {
    check_len(x.len(), n, w.cols())?;
    check_len(y.len(), n, w.rows())?;
    if y.is_empty() {
        return Ok(());
    }
    if n == 1 {
        return by_rows(w, x, n, y, mode, scratch.activations, workers);
    }
    let transposed = at_least(scratch.transposed, transposed_len(w.rows(), n))?;
    by_rows(w, x, n, transposed, mode, scratch.activations, workers)?;
    turn(transposed, n, y, w.rows());
    Ok(())
}

/// `y[p][r] = by_rows[r][p]`, in strips of as many rows as fill a cache line of `y`: the lines of `by_rows` that a position
/// leaves are there for the next ones.
fn turn(by_rows: &[f32], n: usize, y: &mut [f32], rows: usize) {
    const STRIP: usize = 16;
    for (by_rows, first) in by_rows.chunks(STRIP * n).zip((0..).step_by(STRIP)) {
        for (p, y) in y.chunks_exact_mut(rows).enumerate() {
            let values = by_rows.iter().skip(p).step_by(n);
            for (y, value) in y.iter_mut().skip(first).zip(values) {
                *y = *value;
            }
        }
    }
}

/// [`matmul`] for one position: `y[r] = sum over c of W[r][c] * x[c]`.
///
/// # Errors
/// As [`matmul`].
pub fn gemv(
    w: &Matrix<'_>,
    x: &[f32],
    y: &mut [f32],
    mode: Activations,
    scratch: &mut MatmulScratch<'_>,
    workers: &dyn Workers,
) -> Result<()> {
    matmul(w, x, 1, y, mode, scratch, workers)
}

/// The product with the positions of one row side by side: `out[r][p]`.
fn by_rows(
    w: &Matrix<'_>,
    x: &[f32],
    n: usize,
    out: &mut [f32],
    mode: Activations,
    activations: &mut [ActivationBlock],
    workers: &dyn Workers,
) -> Result<()> {
    match Kernels::best(mode).rows(w.dtype()) {
        Some(Rows::Exact(rows)) => workers.for_each_chunk(out, n, &|first, out| rows(w, first, x, n, out)),
        Some(Rows::Quantized(rows)) => {
            let blocks = at_least(activations, activations_len(w.cols(), n))?;
            dispatch(Quantize { x, blocks });
            let blocks = &*blocks;
            workers.for_each_chunk(out, n, &|first, out| rows(w, first, blocks, n, out));
        }
        // No matrix has such a type.
        None => return Err(Error::new(Code::UnsupportedDType, Place::File).values(0, u64::from(w.dtype().id()))),
    }
    Ok(())
}

/// [`activation::quantize`] to come.
struct Quantize<'a> {
    x: &'a [f32],
    blocks: &'a mut [ActivationBlock],
}

impl Task for Quantize<'_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Eight>(self, _: E) {
        activation::quantize(self.x, self.blocks);
    }
}

fn at_least<T>(buffer: &mut [T], need: usize) -> Result<&mut [T]> {
    let have = buffer.len();
    buffer.get_mut(..need).ok_or(Error::buffer_too_small(need, have))
}

fn check_len(have: usize, n: usize, each: usize) -> Result<()> {
    let need = n.saturating_mul(each);
    if have == need {
        Ok(())
    } else {
        Err(Error::new(Code::LengthMismatch, Place::File).values(need as u64, have as u64))
    }
}
