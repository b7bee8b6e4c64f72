//! Weights that are no blocks: a column of a tile is one number of each row.

use super::super::floats::{BF16, F16, F32};
use super::super::tall::Tall;
use crate::kernel::Matrix;
use crate::quant::tile::ROWS;

/// Partial sums, as the portable kernel has them: element `i` goes to sum `i mod 8`.
const SUMS: usize = 8;

/// Numbers of sixteen rows, `BYTES` in all.
pub(in super::super) trait Column<const BYTES: usize> {
    fn load<T: Tall>(t: T, column: &[u8; BYTES]) -> T::Floats;
}

impl Column<64> for F32 {
    #[inline(always)]
    fn load<T: Tall>(t: T, column: &[u8; 64]) -> T::Floats {
        t.floats(column)
    }
}

impl Column<32> for F16 {
    #[inline(always)]
    fn load<T: Tall>(t: T, column: &[u8; 32]) -> T::Floats {
        t.halves(column)
    }
}

impl Column<32> for BF16 {
    #[inline(always)]
    fn load<T: Tall>(t: T, column: &[u8; 32]) -> T::Floats {
        t.upper_halves(column)
    }
}

/// `out[r][p] = sum over c of W[first + r][c] * x[p][c]` for `n` positions, two at a time.
#[inline(always)]
pub(in super::super) fn product<T: Tall, F: Column<BYTES>, const BYTES: usize>(
    t: T,
    w: &Matrix<'_>,
    first: usize,
    x: &[f32],
    n: usize,
    out: &mut [f32],
) {
    let cols = w.cols();
    if cols == 0 || n == 0 {
        return out.fill(0.0);
    }
    // The first and the last tile may be there in part only.
    let (mut row, mut rest) = (first, out);
    while !rest.is_empty() {
        let (tile, lane) = (row / ROWS, row % ROWS);
        let here = (ROWS - lane).min(rest.len() / n);
        let (now, later) = rest.split_at_mut(here * n);
        let columns = w.tile(tile).as_chunks::<BYTES>().0;
        let mut p = 0;
        while p < n {
            let left = &x[p * cols..];
            if n - p > 1 {
                let sums = sum::<_, F, BYTES, 2>(t, columns, [&left[..cols], &left[cols..2 * cols]]);
                put(now, n, p, &sums[0][lane..]);
                put(now, n, p + 1, &sums[1][lane..]);
                p += 2;
            } else {
                let sums = sum::<_, F, BYTES, 1>(t, columns, [&left[..cols]]);
                put(now, n, p, &sums[0][lane..]);
                p += 1;
            }
        }
        (row, rest) = (row + here, later);
    }
}

/// Rows' results of one position.
#[inline(always)]
fn put(out: &mut [f32], n: usize, p: usize, sums: &[f32]) {
    for (out, sum) in out.iter_mut().skip(p).step_by(n).zip(sums) {
        *out = *sum;
    }
}

/// The sums of a tile's rows for `P` positions.
#[inline(always)]
fn sum<T: Tall, F: Column<BYTES>, const BYTES: usize, const P: usize>(
    t: T,
    columns: &[[u8; BYTES]],
    x: [&[f32]; P],
) -> [[f32; ROWS]; P] {
    let mut sums = [[t.splat_float(0.0); SUMS]; P];
    let (runs, rest) = columns.as_chunks::<SUMS>();
    for (r, run) in runs.iter().enumerate() {
        for (i, column) in run.iter().enumerate() {
            let weights = F::load(t, column);
            for (sums, x) in sums.iter_mut().zip(&x) {
                sums[i] = t.add_floats(sums[i], t.mul_floats(weights, t.splat_float(x[r * SUMS + i])));
            }
        }
    }
    for (i, column) in rest.iter().enumerate() {
        let weights = F::load(t, column);
        for (sums, x) in sums.iter_mut().zip(&x) {
            sums[i] = t.add_floats(sums[i], t.mul_floats(weights, t.splat_float(x[runs.len() * SUMS + i])));
        }
    }
    let mut totals = [[0.0; ROWS]; P];
    for (total, [a, b, c, d, e, f, g, h]) in totals.iter_mut().zip(sums) {
        let even = t.add_floats(t.add_floats(a, e), t.add_floats(c, g));
        let odd = t.add_floats(t.add_floats(b, f), t.add_floats(d, h));
        *total = t.store_floats(t.add_floats(even, odd));
    }
    totals
}
