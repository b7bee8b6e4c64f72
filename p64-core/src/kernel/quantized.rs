//! Row kernels of the production path in portable code: integer weights with 16-bit activations.
#![forbid(unsafe_code)]

#[cfg(feature = "all-types")]
mod rare;

use super::matrix::Matrix;
use super::{QuantizedRows, Rows, exact};
use crate::layout::dtype::DType;
use crate::quant::group;
use crate::quant::{ActivationBlock, Packed, q2_k, q3_k, q4_0, q4_1, q4_k, q4_k_soa, q5_0, q5_1, q5_k, q6_k, q8_0};

/// Positions that share one unpacked block.
const POSITIONS: usize = 4;

/// Weights that are not integers in groups of 32 are multiplied as on the exact path.
pub(super) fn rows(dtype: DType) -> Option<Rows> {
    let rows: QuantizedRows = match dtype {
        DType::Q4_0 => |w, first, x, n, out| product::<q4_0::Format, _, _, _>(w, first, x, n, out),
        DType::Q4_1 => |w, first, x, n, out| product::<q4_1::Format, _, _, _>(w, first, x, n, out),
        DType::Q5_0 => |w, first, x, n, out| product::<q5_0::Format, _, _, _>(w, first, x, n, out),
        DType::Q5_1 => |w, first, x, n, out| product::<q5_1::Format, _, _, _>(w, first, x, n, out),
        DType::Q8_0 => |w, first, x, n, out| product::<q8_0::Format, _, _, _>(w, first, x, n, out),
        DType::Q2_K => |w, first, x, n, out| product::<q2_k::Format, _, _, _>(w, first, x, n, out),
        DType::Q3_K => |w, first, x, n, out| product::<q3_k::Format, _, _, _>(w, first, x, n, out),
        DType::Q4_K => |w, first, x, n, out| product::<q4_k::Format, _, _, _>(w, first, x, n, out),
        DType::Q5_K => |w, first, x, n, out| product::<q5_k::Format, _, _, _>(w, first, x, n, out),
        DType::Q6_K => |w, first, x, n, out| product::<q6_k::Format, _, _, _>(w, first, x, n, out),
        DType::Q4KSoa => |w, first, x, n, out| product::<q4_k_soa::Format, _, _, _>(w, first, x, n, out),
        #[cfg(feature = "all-types")]
        other => match rare::rows(other) {
            Some(rows) => rows,
            None => return exact::rows(other),
        },
        #[cfg(not(feature = "all-types"))]
        other => return exact::rows(other),
    };
    Some(Rows::Quantized(rows))
}

#[inline(always)]
fn product<F: Packed<BYTES, GROUPS, S>, const BYTES: usize, const GROUPS: usize, const S: usize>(
    w: &Matrix<'_>,
    first: usize,
    x: &[ActivationBlock],
    n: usize,
    out: &mut [f32],
) {
    if w.cols() < 32 || n == 0 {
        return out.fill(0.0);
    }
    for (out, row) in out.chunks_exact_mut(n).zip(first..) {
        let (row, _) = w.row(row).as_chunks::<BYTES>();
        let (groups, rest) = out.as_chunks_mut::<POSITIONS>();
        let mut positions = x.chunks_exact(w.cols() / 32).map(|x| x.as_chunks::<GROUPS>().0);
        for out in groups {
            *out = dot::<F, _, _, _, _>(row, core::array::from_fn(|_| positions.next().unwrap_or_default()));
        }
        for out in rest {
            [*out] = dot::<F, _, _, _, _>(row, [positions.next().unwrap_or_default()]);
        }
    }
}

/// One weight row with `P` positions. Every position is summed in the same order whatever `P` is.
#[inline(always)]
fn dot<F: Packed<BYTES, GROUPS, S>, const BYTES: usize, const GROUPS: usize, const S: usize, const P: usize>(
    row: &[[u8; BYTES]],
    mut x: [&[[ActivationBlock; GROUPS]]; P],
) -> [f32; P] {
    let mut sums = [0.0; P];
    for block in row {
        let groups = F::unpack(block);
        for (sum, x) in sums.iter_mut().zip(&mut x) {
            if let Some((activations, later)) = x.split_first() {
                *sum = group::dot(&groups, activations, *sum);
                *x = later;
            }
        }
    }
    sums
}
