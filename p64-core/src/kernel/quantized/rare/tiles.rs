//! Row kernels for rows side by side: each block is gathered, and from there on it is one of the stock type.
#![forbid(unsafe_code)]

use super::super::POSITIONS;
use crate::kernel::QuantizedRows;
use crate::kernel::matrix::Matrix;
use crate::layout::dtype::DType;
use crate::quant::{
    ActivationBlock, Packed, group, iq4_nl, iq4_xs, q2_k, q3_k, q4_0, q4_1, q4_k, q5_0, q5_1, q5_k, q6_k, q8_0,
};

pub(super) fn rows(dtype: DType) -> Option<QuantizedRows> {
    Some(match dtype {
        DType::Q4_0_R16 => |w, first, x, n, out| product::<q4_0::Format, _, _, _>(w, first, x, n, out),
        DType::Q4_1_R16 => |w, first, x, n, out| product::<q4_1::Format, _, _, _>(w, first, x, n, out),
        DType::Q5_0_R16 => |w, first, x, n, out| product::<q5_0::Format, _, _, _>(w, first, x, n, out),
        DType::Q5_1_R16 => |w, first, x, n, out| product::<q5_1::Format, _, _, _>(w, first, x, n, out),
        DType::Q8_0_R16 => |w, first, x, n, out| product::<q8_0::Format, _, _, _>(w, first, x, n, out),
        DType::Q2_K_R16 => |w, first, x, n, out| product::<q2_k::Format, _, _, _>(w, first, x, n, out),
        DType::Q3_K_R16 => |w, first, x, n, out| product::<q3_k::Format, _, _, _>(w, first, x, n, out),
        DType::Q4_K_R16 => |w, first, x, n, out| product::<q4_k::Format, _, _, _>(w, first, x, n, out),
        DType::Q5_K_R16 => |w, first, x, n, out| product::<q5_k::Format, _, _, _>(w, first, x, n, out),
        DType::Q6_K_R16 => |w, first, x, n, out| product::<q6_k::Format, _, _, _>(w, first, x, n, out),
        DType::IQ4_NL_R16 => |w, first, x, n, out| product::<iq4_nl::Format, _, _, _>(w, first, x, n, out),
        DType::IQ4_XS_R16 => |w, first, x, n, out| product::<iq4_xs::Format, _, _, _>(w, first, x, n, out),
        _ => return None,
    })
}

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
        let (groups, rest) = out.as_chunks_mut::<POSITIONS>();
        let mut positions = x.chunks_exact(w.cols() / 32).map(|x| x.as_chunks::<GROUPS>().0);
        for out in groups {
            *out = dot::<F, _, _, _, _>(w, row, core::array::from_fn(|_| positions.next().unwrap_or_default()));
        }
        for out in rest {
            [*out] = dot::<F, _, _, _, _>(w, row, [positions.next().unwrap_or_default()]);
        }
    }
}

/// One weight row with `P` positions, summed in the order of the stock type.
fn dot<F: Packed<BYTES, GROUPS, S>, const BYTES: usize, const GROUPS: usize, const S: usize, const P: usize>(
    w: &Matrix<'_>,
    row: usize,
    x: [&[[ActivationBlock; GROUPS]]; P],
) -> [f32; P] {
    let mut sums = [0.0; P];
    for b in 0..w.cols() / (GROUPS * 32) {
        let groups = F::unpack(&w.gather(row, b));
        for (sum, x) in sums.iter_mut().zip(&x) {
            if let Some(activations) = x.get(b) {
                *sum = group::dot(&groups, activations, *sum);
            }
        }
    }
    sums
}
