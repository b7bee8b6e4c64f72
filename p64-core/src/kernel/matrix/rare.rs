//! Decoding of the formats that are not met often (feature `all-types`).
#![forbid(unsafe_code)]

use super::{Decode, Matrix, packed};
use crate::layout::dtype::DType;
use crate::quant::tile::{self, Units};
use crate::quant::{
    Packed, Unpack, group, iq1_m, iq1_s, iq2_s, iq2_xs, iq2_xxs, iq3_s, iq3_xxs, iq4_nl, iq4_xs, mxfp4, nvfp4, q1_0,
    q2_0, tq1_0, tq2_0, unpack_from,
};

pub(super) fn decoder(dtype: DType) -> Option<Decode> {
    Some(match dtype {
        DType::IQ1_M => |bytes, out| shared::<iq1_m::Format, _, _, _>(bytes, out),
        DType::IQ1_S => |bytes, out| shared::<iq1_s::Format, _, _, _>(bytes, out),
        DType::IQ2_S => |bytes, out| shared::<iq2_s::Format, _, _, _>(bytes, out),
        DType::IQ2_XS => |bytes, out| shared::<iq2_xs::Format, _, _, _>(bytes, out),
        DType::IQ2_XXS => |bytes, out| shared::<iq2_xxs::Format, _, _, _>(bytes, out),
        DType::IQ3_S => |bytes, out| shared::<iq3_s::Format, _, _, _>(bytes, out),
        DType::IQ3_XXS => |bytes, out| shared::<iq3_xxs::Format, _, _, _>(bytes, out),
        DType::IQ4_NL => |bytes, out| packed::<iq4_nl::Format, _, _, _>(bytes, out),
        DType::IQ4_XS => |bytes, out| shared::<iq4_xs::Format, _, _, _>(bytes, out),
        DType::MXFP4 => |bytes, out| packed::<mxfp4::Format, _, _, _>(bytes, out),
        DType::NVFP4 => |bytes, out| packed::<nvfp4::Format, _, _, _>(bytes, out),
        DType::Q1_0 => |bytes, out| packed::<q1_0::Format, _, _, _>(bytes, out),
        DType::Q2_0 => |bytes, out| packed::<q2_0::Format, _, _, _>(bytes, out),
        DType::TQ1_0 => |bytes, out| shared::<tq1_0::Format, _, _, _>(bytes, out),
        DType::TQ2_0 => |bytes, out| shared::<tq2_0::Format, _, _, _>(bytes, out),
        tiled if tiled.is_tiled() => return super::decoder(tiled.stock()),
        _ => return None,
    })
}

/// The longest block of a type with rows side by side.
const LONGEST: usize = 210;

/// [`Matrix::decode`] where sixteen rows are side by side: a row's blocks are gathered one by one.
#[inline(never)]
pub(super) fn decode_tiled(w: &Matrix<'_>, row: usize, start: usize, out: &mut [f32]) {
    let (Some(units), Some(decode)) = (Units::of(w.dtype()), super::decoder(w.dtype())) else { return };
    let Some(values) = w.dtype().block().and_then(|block| usize::try_from(block.elements).ok()) else { return };
    let mut block = [0; LONGEST];
    let (block, _) = block.split_at_mut(units.block_len().min(LONGEST));
    let tile = w.tile(row / tile::ROWS);
    for (at, out) in (start / values..).zip(out.chunks_exact_mut(values)) {
        units.gather(tile, row % tile::ROWS, at, block);
        decode(block, out);
    }
}

fn shared<F: Packed<BYTES, GROUPS, S>, const BYTES: usize, const GROUPS: usize, const S: usize>(
    bytes: &[u8],
    out: &mut [f32],
) {
    each_block(BYTES, unpack_from::<F, BYTES, GROUPS, S>, bytes, out);
}

/// One copy of the loop for all formats whose blocks unpack alike.
#[inline(never)]
fn each_block<const GROUPS: usize, const S: usize>(
    size: usize,
    unpack: Unpack<GROUPS, S>,
    bytes: &[u8],
    out: &mut [f32],
) {
    for (block, out) in bytes.chunks_exact(size).zip(out.chunks_exact_mut(GROUPS * 32)) {
        group::dequantize(&unpack(block), out);
    }
}
