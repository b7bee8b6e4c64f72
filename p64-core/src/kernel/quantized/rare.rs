//! Row kernels for the formats that are not met often (feature `all-types`).
//!
//! Those of 256 values unpack through a pointer, with one copy of the loops for all that unpack alike. The call costs
//! little beside the products of a block, and an image with every type is smaller by 10 kB on a Cortex-M4.
//!
//! The loops are those of `quantized.rs` and stand here again on purpose. One text for both, generic in how a block unpacks,
//! was tried: the compiler then keeps the unpacked block in memory, and `--example kernels` gave Q4_0 0.40 and Q5_0 0.45 of
//! its speed.
#![forbid(unsafe_code)]

mod tiles;

use super::{POSITIONS, product};
use crate::kernel::QuantizedRows;
use crate::kernel::matrix::Matrix;
use crate::layout::dtype::DType;
use crate::quant::{
    ActivationBlock, Packed, Unpack, group, iq1_m, iq1_s, iq2_s, iq2_xs, iq2_xxs, iq3_s, iq3_xxs, iq4_nl, iq4_xs,
    mxfp4, nvfp4, q1_0, q2_0, tq1_0, tq2_0, unpack_from,
};

pub(super) fn rows(dtype: DType) -> Option<QuantizedRows> {
    Some(match dtype {
        DType::IQ1_M => |w, first, x, n, out| shared::<iq1_m::Format, _, _, _>(w, first, x, n, out),
        DType::IQ1_S => |w, first, x, n, out| shared::<iq1_s::Format, _, _, _>(w, first, x, n, out),
        DType::IQ2_S => |w, first, x, n, out| shared::<iq2_s::Format, _, _, _>(w, first, x, n, out),
        DType::IQ2_XS => |w, first, x, n, out| shared::<iq2_xs::Format, _, _, _>(w, first, x, n, out),
        DType::IQ2_XXS => |w, first, x, n, out| shared::<iq2_xxs::Format, _, _, _>(w, first, x, n, out),
        DType::IQ3_S => |w, first, x, n, out| shared::<iq3_s::Format, _, _, _>(w, first, x, n, out),
        DType::IQ3_XXS => |w, first, x, n, out| shared::<iq3_xxs::Format, _, _, _>(w, first, x, n, out),
        DType::IQ4_NL => |w, first, x, n, out| product::<iq4_nl::Format, _, _, _>(w, first, x, n, out),
        DType::IQ4_XS => |w, first, x, n, out| shared::<iq4_xs::Format, _, _, _>(w, first, x, n, out),
        DType::MXFP4 => |w, first, x, n, out| product::<mxfp4::Format, _, _, _>(w, first, x, n, out),
        DType::NVFP4 => |w, first, x, n, out| product::<nvfp4::Format, _, _, _>(w, first, x, n, out),
        DType::Q1_0 => |w, first, x, n, out| product::<q1_0::Format, _, _, _>(w, first, x, n, out),
        DType::Q2_0 => |w, first, x, n, out| product::<q2_0::Format, _, _, _>(w, first, x, n, out),
        DType::TQ1_0 => |w, first, x, n, out| shared::<tq1_0::Format, _, _, _>(w, first, x, n, out),
        DType::TQ2_0 => |w, first, x, n, out| shared::<tq2_0::Format, _, _, _>(w, first, x, n, out),
        tiled => return tiles::rows(tiled),
    })
}

fn shared<F: Packed<BYTES, GROUPS, S>, const BYTES: usize, const GROUPS: usize, const S: usize>(
    w: &Matrix<'_>,
    first: usize,
    x: &[ActivationBlock],
    n: usize,
    out: &mut [f32],
) {
    each_row(BYTES, unpack_from::<F, BYTES, GROUPS, S>, w, first, x, n, out);
}

/// A row kernel over blocks of `size` bytes.
#[inline(never)]
fn each_row<const GROUPS: usize, const S: usize>(
    size: usize,
    unpack: Unpack<GROUPS, S>,
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
        let row = || w.row(row).chunks_exact(size);
        let (groups, rest) = out.as_chunks_mut::<POSITIONS>();
        let mut positions = x.chunks_exact(w.cols() / 32).map(|x| x.as_chunks::<GROUPS>().0);
        for out in groups {
            *out = dot(row(), unpack, core::array::from_fn(|_| positions.next().unwrap_or_default()));
        }
        for out in rest {
            [*out] = dot(row(), unpack, [positions.next().unwrap_or_default()]);
        }
    }
}

/// One weight row with `P` positions. Every position is summed in the same order whatever `P` is.
#[inline(always)]
fn dot<'b, const GROUPS: usize, const S: usize, const P: usize>(
    row: impl Iterator<Item = &'b [u8]>,
    unpack: Unpack<GROUPS, S>,
    mut x: [&[[ActivationBlock; GROUPS]]; P],
) -> [f32; P] {
    let mut sums = [0.0; P];
    for block in row {
        let groups = unpack(block);
        for (sum, x) in sums.iter_mut().zip(&mut x) {
            if let Some((activations, later)) = x.split_first() {
                *sum = group::dot(&groups, activations, *sum);
                *x = later;
            }
        }
    }
    sums
}
