//! The formats of sixteen unequal steps: IQ4_NL and IQ4_XS.

use super::k_symmetric::for_blocks;
use super::lanes::{Lanes, byte};
use super::pack::{nibbles, stored};
use super::symmetric::{Levels, fit, quantize};
use super::weights::Weights;

/// The steps of `p64_core::quant::iq4_nl`.
const STEPS: [f32; 16] =
    [-127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0];

/// Between each step and the next: where the nearer one changes, and how much the step does.
const RISES: [(f32, f32); 15] = {
    let mut rises = [(0.0, 0.0); 15];
    let mut at = 0;
    while at < rises.len() {
        let (step, next) = (STEPS[at], STEPS[at + 1]);
        rises[at] = (0.5 * (step + next), next - step);
        at += 1;
    }
    rises
};

/// The steps as levels.
struct Unequal;

impl Levels for Unequal {
    const LOW: f32 = STEPS[0];
    const HIGH: f32 = STEPS[15];
    const BEYOND: Lanes = [0.0, -8.0, -4.0, 4.0, 8.0, 12.0, 16.0, 20.0];

    #[inline(always)]
    fn nearest(v: f32) -> f32 {
        RISES.iter().fold(STEPS[0], |step, (at, rise)| step + if v > *at { *rise } else { 0.0 })
    }
}

/// IQ4_NL.
pub(super) fn iq4_nl(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    let weights = Weights::new(row, importance);
    let blocks = row.as_chunks::<32>().0.iter().zip(out.as_chunks_mut::<18>().0);
    for ((values, out), start) in blocks.zip((0..).step_by(32)) {
        let (bytes, scale) = stored(fit::<Unequal, 32>(values, &weights.block(start, values)));
        let [d0, d1, packed @ ..] = out;
        [*d0, *d1] = bytes;
        *packed = nibbles(&indices(&quantize::<Unequal, 32>(values, scale)));
    }
}

/// IQ4_XS.
pub(super) fn iq4_xs(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    for_blocks::<Unequal, 8, 32, 136>(row, importance, out, (-32.0, 31.0), |block, out| {
        let [d0, d1, u0, u1, rest @ ..] = out;
        let (lower, quants) = rest.split_at_mut(4);
        let scales = block.scales.map(|scale| byte(scale + 32.0));
        [*d0, *d1] = stored(block.d).0;
        let upper = scales.iter().rev().fold(0u16, |bits, scale| bits << 2 | u16::from(scale >> 4 & 3));
        [*u0, *u1] = upper.to_le_bytes();
        for (packed, [low, high]) in lower.iter_mut().zip(scales.as_chunks::<2>().0) {
            *packed = low & 0x0f | high << 4;
        }
        for (packed, levels) in quants.as_chunks_mut::<16>().0.iter_mut().zip(&block.levels) {
            *packed = nibbles(&indices(levels));
        }
    });
}

/// The positions of steps among [`STEPS`].
fn indices(levels: &[f32; 32]) -> [u8; 32] {
    levels.map(|level| byte(RISES.iter().fold(0.0, |index, (at, _)| index + if level > *at { 1.0 } else { 0.0 })))
}
