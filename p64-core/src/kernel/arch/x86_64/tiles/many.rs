//! The product with many positions: a block's integers are unpacked once for all of them.
//!
//! ```text
//! 32 positions, 1,024 columns     the activations in order: 84 KiB on the stack, which the second cache holds
//!   16 rows                       a tile's sums, a row in each lane
//!     32 columns                  eight vectors of integers in registers, and from there position after position
//! ```
//!
//! The running sums lie in the output between one run of columns and the next.

use super::{Blocks, Ordered, Tall, Tiles, group};
use crate::kernel::Matrix;
use crate::quant::ActivationBlock;
use crate::quant::tile::ROWS;
use zerocopy::FromBytes;

/// Positions that share unpacked blocks.
const POSITIONS: usize = 32;

/// Groups of 32 columns whose activations are put in order at once: pairs of the longest blocks.
const RUN: usize = 32;

/// What is on the stack.
struct Buffers {
    panel: [[Ordered; POSITIONS]; RUN],
    sums: [[f32; ROWS]; POSITIONS],
}

/// `out[r][p] = sum over c of W[first + r][c] * x[p][c]` for `n` positions.
#[inline(always)]
pub(in super::super) fn gemm<T, F, const BYTES: usize, const GROUPS: usize, const S: usize>(
    t: T,
    w: &Matrix<'_>,
    first: usize,
    x: &[ActivationBlock],
    n: usize,
    out: &mut [f32],
) where
    T: Tall,
    F: Tiles<BYTES, GROUPS, S>,
{
    let groups = w.cols() / 32;
    if groups == 0 || n == 0 {
        return out.fill(0.0);
    }
    let mut buffers = Buffers { panel: [[Ordered::ZERO; POSITIONS]; RUN], sums: [[0.0; ROWS]; POSITIONS] };
    for (index, x) in x.chunks(groups * POSITIONS).enumerate() {
        let (begin, count) = (index * POSITIONS, x.len() / groups);
        for start in (0..groups).step_by(RUN) {
            let len = RUN.min(groups - start);
            for (p, x) in x.chunks_exact(groups).enumerate() {
                for (ordered, x) in buffers.panel.iter_mut().zip(&x[start..start + len]) {
                    ordered[p] = Ordered::of::<_, S>(t, x, F::OFFSET);
                }
            }
            // The first and the last tile may be there in part only.
            let (mut row, mut rest) = (first, &mut *out);
            while !rest.is_empty() {
                let (tile, lane) = (row / ROWS, row % ROWS);
                let here = (ROWS - lane).min(rest.len() / n);
                let (now, later) = rest.split_at_mut(here * n);
                let sums = &mut buffers.sums[..count];
                sums.fill([0.0; ROWS]);
                if start > 0 {
                    for (lane, out) in (lane..).zip(now.chunks_exact(n)) {
                        for (sums, out) in sums.iter_mut().zip(&out[begin..]) {
                            sums[lane] = *out;
                        }
                    }
                }
                run::<_, F, BYTES, GROUPS, S>(
                    t,
                    w.tile(tile),
                    groups / GROUPS,
                    start / GROUPS,
                    &buffers.panel[..len],
                    sums,
                );
                for (lane, out) in (lane..).zip(now.chunks_exact_mut(n)) {
                    for (sums, out) in sums.iter().zip(&mut out[begin..]) {
                        *out = sums[lane];
                    }
                }
                (row, rest) = (row + here, later);
            }
        }
    }
}

/// Adds the products of a tile's blocks from `start` on, as many as the panel has columns for.
#[inline(always)]
fn run<T, F, const BYTES: usize, const GROUPS: usize, const S: usize>(
    t: T,
    tile: &[u8],
    blocks: usize,
    start: usize,
    panel: &[[Ordered; POSITIONS]],
    sums: &mut [[f32; ROWS]],
) where
    T: Tall,
    F: Tiles<BYTES, GROUPS, S>,
{
    let Ok((pairs, last)) = <[Blocks<F::Halves, F::Words, 2>]>::ref_from_prefix_with_elems(tile, blocks / 2) else {
        return;
    };
    let last = Blocks::<F::Halves, F::Words, 1>::ref_from_bytes(last);
    for (b, panel) in (start..).zip(panel.as_chunks::<GROUPS>().0) {
        let (halves, words) = match (pairs.get(b / 2), &last) {
            (Some(pair), _) => (&pair.halves[b % 2], &pair.words[b % 2]),
            (None, Ok(last)) => (&last.halves[0], &last.words[0]),
            (None, Err(_)) => return,
        };
        let factors = F::factors(t, halves, words);
        for (g, x) in panel.iter().enumerate() {
            let quads = F::quads(t, words, g);
            for (sums, x) in sums.iter_mut().zip(x) {
                *sums = t.store_floats(group::<_, F, BYTES, GROUPS, S>(t, &factors, &quads, g, x, t.load_floats(sums)));
            }
        }
    }
}
