//! NVFP4: 4-bit floats with an 8-bit float scale for each 16, 64 values (GGML type 40).
//!
//! ```text
//! 0..4    u8 x 4     scales of 16 elements: 4-bit exponent, bias 7, and 3-bit fraction; the uppermost bit has no meaning
//! 4..36   u8 x 8 x 4 for each scale, low nibble: the first 8 elements, high nibble: the last 8; a nibble as in MXFP4
//! value = (scale / 2) * (twice the float)
//! ```
//!
//! The scale 0x7f, NaN in other formats, is 0 as in GGML; 0xff is 480. A model may come with one more factor for a whole
//! tensor, which is a tensor of its own.
#![forbid(unsafe_code)]

use super::group::Group;
use super::mxfp4::doubled_fp4;
use zerocopy::{FromBytes, Immutable, transmute_ref};

block_format!(elements: 64, bytes: 36, scales per group: 2);

#[derive(FromBytes, Immutable)]
#[repr(C)]
struct Raw {
    scales: [[u8; 2]; 2],
    quants: [[u8; 16]; 2],
}

/// The integers of one block and their factors.
#[inline(always)]
#[must_use]
pub fn unpack(block: &[u8; BYTES]) -> [Group<2>; 2] {
    let raw: &Raw = transmute_ref!(block);
    let mut groups = [Group::ZERO; 2];
    for (group, (packed, scales)) in groups.iter_mut().zip(raw.quants.iter().zip(raw.scales)) {
        let quants = super::scales::nibbles(packed).map(doubled_fp4);
        // The low nibbles of both halves, then the high ones.
        for (out, at) in group.quants.as_chunks_mut::<8>().0.iter_mut().zip([0, 2, 1, 3]) {
            *out = quants.as_chunks::<8>().0[at];
        }
        group.scales = scales.map(half_scale);
    }
    groups
}

/// Half of an 8-bit float without a sign.
#[inline(always)]
fn half_scale(bits: u8) -> f32 {
    let (exponent, fraction) = (u32::from(bits >> 3 & 15), u32::from(bits & 7));
    match exponent {
        0 => f32::from(bits & 7) * (1.0 / 1024.0),
        _ if bits == 0x7f => 0.0,
        _ => f32::from_bits((exponent + 127 - 7 - 1) << 23 | fraction << 20),
    }
}
