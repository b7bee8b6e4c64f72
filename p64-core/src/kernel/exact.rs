//! Row kernels of the exact path: weights dequantised a tile at a time, multiplied with `f32` activations.
#![forbid(unsafe_code)]

use super::matrix::{Matrix, is_supported};
use super::{ExactRows, Rows};
use crate::layout::dtype::DType;

/// Elements decoded at a time: a multiple of every type's block.
const TILE: usize = 256;

/// Independent partial sums of one output, so that a compiler can keep them in vector registers.
const LANES: usize = 8;

/// Positions that share one decoded tile.
const POSITIONS: usize = 4;

/// One kernel serves every type: decoding is the type's, and the rest is `f32`.
pub(super) fn rows(dtype: DType) -> Option<Rows> {
    is_supported(dtype).then_some(Rows::Exact(product as ExactRows))
}

fn product(w: &Matrix<'_>, first: usize, x: &[f32], n: usize, out: &mut [f32]) {
    if w.cols() == 0 || n == 0 {
        return out.fill(0.0);
    }
    for (out, row) in out.chunks_exact_mut(n).zip(first..) {
        let (groups, rest) = out.as_chunks_mut::<POSITIONS>();
        let mut positions = x.chunks_exact(w.cols());
        for out in groups {
            *out = dot(w, row, next(&mut positions));
        }
        for out in rest {
            [*out] = dot(w, row, next(&mut positions));
        }
    }
}

fn next<'x, const P: usize>(positions: &mut impl Iterator<Item = &'x [f32]>) -> [&'x [f32]; P] {
    core::array::from_fn(|_| positions.next().unwrap_or_default())
}

/// One weight row with `P` positions. Every position is summed in the same order whatever `P` is.
fn dot<const P: usize>(w: &Matrix<'_>, row: usize, mut x: [&[f32]; P]) -> [f32; P] {
    let mut sums = [[0.0f32; LANES]; P];
    let mut buffer = [0.0f32; TILE];
    let mut start = 0;
    while start < w.cols() {
        let len = TILE.min(w.cols() - start);
        let (tile, _) = buffer.split_at_mut(len);
        w.decode(row, start, tile);
        for (sums, x) in sums.iter_mut().zip(&mut x) {
            let (now, later) = x.split_at(len.min(x.len()));
            multiply(tile, now, sums);
            *x = later;
        }
        start += len;
    }
    sums.map(total)
}

#[inline]
fn multiply(weights: &[f32], x: &[f32], sums: &mut [f32; LANES]) {
    let (weights, weights_rest) = weights.as_chunks::<LANES>();
    let (x, x_rest) = x.as_chunks::<LANES>();
    for (weights, x) in weights.iter().zip(x) {
        for ((sum, weight), x) in sums.iter_mut().zip(weights).zip(x) {
            *sum += weight * x;
        }
    }
    for ((sum, weight), x) in sums.iter_mut().zip(weights_rest).zip(x_rest) {
        *sum += weight * x;
    }
}

/// The sum of the lanes, in the order that every level keeps.
#[inline(always)]
pub(super) fn total(sums: [f32; LANES]) -> f32 {
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}
