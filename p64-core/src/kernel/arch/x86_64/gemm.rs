//! The product with many positions: a position in each lane, four rows side by side.
//!
//! ```text
//! 64 positions, 256 columns     the activations, turned so that a vector holds 16 positions: 38 KiB on the stack
//!   4 rows                      their integers unpacked once for all 64 positions
//!     32 positions              8 sums of integers in registers, one load of activations for four rows
//! ```
//!
//! The running sums lie in the output between one run of 256 columns and the next.

use super::wide::Wide;
use crate::kernel::Matrix;
use crate::quant::{ActivationBlock, Group, Packed};
use zerocopy::transmute;

/// Positions that share unpacked rows.
const POSITIONS: usize = 64;

/// Rows that share loads of activations.
const ROWS: usize = 4;

/// Groups of 32 columns that are turned at once: those of the longest block.
const RUN: usize = 8;

/// The activations of some positions and columns, positions side by side.
struct Panel {
    /// Pairs of neighbouring quants.
    pairs: [[[i32; POSITIONS]; 16]; RUN],
    scales: [[f32; POSITIONS]; RUN],
    /// Sums of the halves of a group; the first is that of the whole where it has one scale.
    sums: [[[f32; POSITIONS]; 2]; RUN],
}

/// Four rows' integers and factors.
struct Unpacked<const S: usize> {
    pairs: [[[i32; 16]; ROWS]; RUN],
    scales: [[[f32; S]; ROWS]; RUN],
    mins: [[[f32; S]; ROWS]; RUN],
}

/// `out[r][p] = sum over c of W[first + r][c] * x[p][c]` for `n` positions.
#[inline(always)]
pub(super) fn gemm<L, F, const N: usize, const BYTES: usize, const GROUPS: usize, const S: usize, const MINS: bool>(
    l: L,
    w: &Matrix<'_>,
    first: usize,
    x: &[ActivationBlock],
    n: usize,
    out: &mut [f32],
) where
    L: Wide<N>,
    F: Packed<BYTES, GROUPS, S>,
{
    out.fill(0.0);
    let groups = w.cols() / 32;
    if groups == 0 || n == 0 {
        return;
    }
    let mut panel = Panel {
        pairs: [[[0; POSITIONS]; 16]; RUN],
        scales: [[0.0; POSITIONS]; RUN],
        sums: [[[0.0; POSITIONS]; 2]; RUN],
    };
    let mut rows =
        Unpacked { pairs: [[[0; 16]; ROWS]; RUN], scales: [[[0.0; S]; ROWS]; RUN], mins: [[[0.0; S]; ROWS]; RUN] };
    for (index, x) in x.chunks(groups * POSITIONS).enumerate() {
        let (begin, count) = (index * POSITIONS, x.len() / groups);
        // What is left of an earlier, longer batch is computed with and thrown away.
        for start in (0..groups).step_by(RUN) {
            let len = RUN.min(groups - start);
            for (p, x) in x.chunks_exact(groups).enumerate() {
                turn::<S>(&mut panel, p, &x[start..start + len]);
            }
            for (out, first) in out.chunks_mut(n * ROWS).zip((first..).step_by(ROWS)) {
                let in_tile = out.len() / n;
                for r in 0..ROWS {
                    unpack::<F, BYTES, GROUPS, S>(&mut rows, w, first + r.min(in_tile - 1), r, start, len);
                }
                for p in (0..count).step_by(2 * N) {
                    let mut sums = [[[0.0; N]; 2]; ROWS];
                    let here = (2 * N).min(count - p);
                    for (sums, out) in sums.iter_mut().zip(out.chunks_exact(n)) {
                        let to = sums.as_flattened_mut();
                        to[..here].copy_from_slice(&out[begin + p..begin + p + here]);
                    }
                    tile::<L, N, S, MINS>(l, &rows, &panel, len, p, &mut sums);
                    for (sums, out) in sums.iter().zip(out.chunks_exact_mut(n)) {
                        out[begin + p..begin + p + here].copy_from_slice(&sums.as_flattened()[..here]);
                    }
                }
            }
        }
    }
}

/// The activations of one position, into their lane.
#[inline(always)]
fn turn<const S: usize>(panel: &mut Panel, p: usize, x: &[ActivationBlock]) {
    for (g, x) in x.iter().enumerate() {
        let pairs: [i32; 16] = transmute!(x.quants);
        for (lanes, pair) in panel.pairs[g].iter_mut().zip(pairs) {
            lanes[p] = pair;
        }
        panel.scales[g][p] = x.scale;
        let [low, high] = x.sums;
        let sums = if S == 1 { [low + high, 0] } else { [low, high] };
        for (lanes, sum) in panel.sums[g].iter_mut().zip(sums) {
            lanes[p] = to_f32(sum);
        }
    }
}

/// Groups `start .. start + len` of a row.
#[inline(always)]
fn unpack<F, const BYTES: usize, const GROUPS: usize, const S: usize>(
    rows: &mut Unpacked<S>,
    w: &Matrix<'_>,
    row: usize,
    r: usize,
    start: usize,
    len: usize,
) where
    F: Packed<BYTES, GROUPS, S>,
{
    let blocks = w.row(row).as_chunks::<BYTES>().0;
    let blocks = blocks.get(start / GROUPS..(start + len) / GROUPS).unwrap_or_default();
    for (b, block) in blocks.iter().enumerate() {
        for (g, group) in F::unpack(block).into_iter().enumerate() {
            let Group { quants, scales, mins } = group;
            let g = b * GROUPS + g;
            rows.pairs[g][r] = transmute!(quants);
            rows.scales[g][r] = scales;
            rows.mins[g][r] = mins;
        }
    }
}

/// Adds `len` groups of four rows and two vectors of positions to their sums.
#[inline(always)]
fn tile<L, const N: usize, const S: usize, const MINS: bool>(
    l: L,
    rows: &Unpacked<S>,
    panel: &Panel,
    len: usize,
    p: usize,
    sums: &mut [[[f32; N]; 2]; ROWS],
) where
    L: Wide<N>,
{
    let mut running = [[l.splat(0.0); 2]; ROWS];
    for (running, sums) in running.iter_mut().zip(sums.iter()) {
        for (running, sums) in running.iter_mut().zip(sums) {
            *running = l.load(sums);
        }
    }
    let vector = p / N;
    for g in 0..len {
        let (pairs, scales) = (&panel.pairs[g], panel.scales[g].as_chunks::<N>().0);
        let mut terms = [[l.splat(0.0); 2]; ROWS];
        for h in 0..S {
            let mut dots = [[l.zero_i32(); 2]; ROWS];
            for k in h * 16 / S..(h + 1) * 16 / S {
                let x = pairs[k].as_chunks::<N>().0;
                let (x0, x1) = (l.load_i32(&x[vector]), l.load_i32(&x[vector + 1]));
                for (dots, pairs) in dots.iter_mut().zip(&rows.pairs[g]) {
                    let w = l.splat_i32(pairs[k]);
                    dots[0] = l.dot_add_pairs(dots[0], x0, w);
                    dots[1] = l.dot_add_pairs(dots[1], x1, w);
                }
            }
            let totals = panel.sums[g][h].as_chunks::<N>().0;
            for r in 0..ROWS {
                for v in 0..2 {
                    let mut term = l.mul(l.splat(rows.scales[g][r][h]), l.to_float(dots[r][v]));
                    if MINS {
                        term = l.sub(term, l.mul(l.splat(rows.mins[g][r][h]), l.load(&totals[vector + v])));
                    }
                    terms[r][v] = if h == 0 { term } else { l.add(terms[r][v], term) };
                }
            }
        }
        for (running, terms) in running.iter_mut().zip(terms) {
            for v in 0..2 {
                running[v] = l.add(running[v], l.mul(l.load(&scales[vector + v]), terms[v]));
            }
        }
    }
    for (running, sums) in running.iter().zip(sums) {
        for (running, sums) in running.iter().zip(sums) {
            l.store(*running, sums);
        }
    }
}

/// The nearest `f32`, as the portable kernel rounds it.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "one rounding, that of the portable kernel")]
fn to_f32(sum: i32) -> f32 {
    sum as f32
}
