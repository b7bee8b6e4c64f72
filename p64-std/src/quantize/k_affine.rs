//! The formats of 256 values with scales and minima that are integers themselves: Q2_K, Q4_K, Q5_K.
//!
//! ```text
//! value = (d * scale) * q - (dmin * minimum)      d, dmin: F16; scale, minimum: 4 or 6 bits for each group
//! ```
//!
//! 1. Each group gets its own best line (`affine::Group::fit`).
//! 2. `d` and `dmin` make integers of the lines. Each group tries the four scales around its own, and with each the four
//!    minima around the one that makes up best for it; the pair of least error stays.
//! 3. With all integers given, the best `d` and `dmin` are the solution of two linear equations. They are rounded to F16,
//!    and 2 is done again with them, as long as the error falls.

use super::affine::{Group, Inwards, Line, Lines, Minimum};
use super::lanes::{LANES, byte, clamp, largest, total};
use super::pack::{bit_planes, nibble_runs, six_bit_pairs, stored, two_bit_runs};
use super::symmetric::inverse;
use super::weights::Weights;

/// Q4_K.
pub(super) fn q4_k(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    for_blocks::<8, 32, 144>(row, importance, out, &SIX_BITS_OF_4, |block, out| {
        let [d0, d1, m0, m1, rest @ ..] = out;
        let (scales, quants) = rest.split_at_mut(12);
        [*d0, *d1, *m0, *m1] = block.factors();
        scales.copy_from_slice(&six_bit_pairs(&block.scales.map(byte), &block.mins.map(byte)));
        quants.copy_from_slice(nibble_runs(&block.quants()).as_flattened());
    });
}

/// Q5_K.
pub(super) fn q5_k(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    for_blocks::<8, 32, 176>(row, importance, out, &SIX_BITS_OF_5, |block, out| {
        let [d0, d1, m0, m1, rest @ ..] = out;
        let (scales, rest) = rest.split_at_mut(12);
        let (fifth, quants) = rest.split_at_mut(32);
        [*d0, *d1, *m0, *m1] = block.factors();
        scales.copy_from_slice(&six_bit_pairs(&block.scales.map(byte), &block.mins.map(byte)));
        fifth.copy_from_slice(&bit_planes::<4>(&block.quants()));
        quants.copy_from_slice(nibble_runs(&block.quants()).as_flattened());
    });
}

/// Q2_K.
pub(super) fn q2_k(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    for_blocks::<16, 16, 84>(row, importance, out, &FOUR_BITS_OF_2, |block, out| {
        let (scales, rest) = out.split_at_mut(16);
        let (quants, factors) = rest.split_at_mut(64);
        for (packed, (scale, min)) in scales.iter_mut().zip(block.scales.iter().zip(&block.mins)) {
            *packed = byte(*scale) | byte(*min) << 4;
        }
        quants.copy_from_slice(two_bit_runs::<0>(&block.quants()).as_flattened());
        factors.copy_from_slice(&block.factors());
    });
}

/// What differs between the formats.
struct Format<'a> {
    /// Largest integer of a value.
    high: f32,
    /// Largest scale and minimum of a group.
    largest: f32,
    /// How far the ends of a group's range are moved inwards, in steps.
    tries: &'a Inwards,
}

const SIX_BITS_OF_4: Format<'static> = Format { high: 15.0, largest: 63.0, tries: &FINE };
const SIX_BITS_OF_5: Format<'static> = Format { high: 31.0, largest: 63.0, tries: &FINE };
const FOUR_BITS_OF_2: Format<'static> = Format { high: 3.0, largest: 15.0, tries: &COARSE };

/// For 16 and 32 integers.
const FINE: Inwards = [
    [[0.0, 0.0, 0.0, 0.4, 0.4, 0.4, 0.8, 0.8], [0.0, 0.4, 0.8, 0.0, 0.4, 0.8, 0.0, 0.4]],
    [[0.0, -0.5, -0.5, 0.0, 0.5, -1.0, 1.0, 0.8], [-1.0, -0.5, 0.0, -0.5, 0.5, 0.0, 1.0, 0.8]],
];

/// For 4 integers.
const COARSE: Inwards = [
    [[0.0, 0.0, 0.0, 0.2, 0.2, 0.2, 0.4, 0.4], [0.0, 0.2, 0.4, 0.0, 0.2, 0.4, 0.0, 0.2]],
    [[0.4, -0.1, 0.3, 0.1, 0.1, 0.5, 0.3, 0.5], [0.4, -0.1, 0.1, 0.3, 0.1, 0.3, 0.5, 0.5]],
];

/// A block's numbers, before they are packed.
#[derive(Clone)]
struct Block<const G: usize, const N: usize> {
    d: f32,
    dmin: f32,
    scales: [f32; G],
    mins: [f32; G],
    integers: [[f32; N]; G],
    error: f32,
}

impl<const G: usize, const N: usize> Block<G, N> {
    /// `d` and `dmin` as stored.
    fn factors(&self) -> [u8; 4] {
        let ([d0, d1], [m0, m1]) = (stored(self.d).0, stored(self.dmin).0);
        [d0, d1, m0, m1]
    }

    /// The integers in runs of 32, as packings want them.
    fn quants(&self) -> [[u8; 32]; 8] {
        let mut quants = [[0; 32]; 8];
        for (quant, integer) in quants.as_flattened_mut().iter_mut().zip(self.integers.as_flattened()) {
            *quant = byte(*integer);
        }
        quants
    }
}

#[inline(always)]
fn for_blocks<const G: usize, const N: usize, const BYTES: usize>(
    row: &[f32],
    importance: Option<&[f32]>,
    out: &mut [u8],
    format: &Format<'_>,
    pack: impl Fn(&Block<G, N>, &mut [u8; BYTES]),
) {
    let weights = Weights::new(row, importance);
    let blocks = row.as_chunks::<256>().0.iter().zip(out.as_chunks_mut::<BYTES>().0);
    for ((values, out), start) in blocks.zip((0..).step_by(256)) {
        let weights = weights.block(start, values);
        if let (Some(values), Some(weights)) = (groups::<G, N>(values), groups::<G, N>(&weights)) {
            pack(&encode(values, weights, format), out);
        }
    }
}

/// 256 values as groups.
pub(super) fn groups<const G: usize, const N: usize>(values: &[f32; 256]) -> Option<&[[f32; N]; G]> {
    values.as_chunks::<N>().0.first_chunk::<G>()
}

#[inline(always)]
fn encode<const G: usize, const N: usize>(
    values: &[[f32; N]; G],
    weights: &[[f32; N]; G],
    format: &Format<'_>,
) -> Block<G, N> {
    let mut lines = [Line::default(); G];
    for (line, (values, weights)) in lines.iter_mut().zip(values.iter().zip(weights)) {
        *line = Group::new(values, weights).fit(format.high, format.tries, Minimum::NotNegative);
    }
    let (steepest, deepest) = lines
        .iter()
        .fold((0.0f32, 0.0f32), |(scale, minimum), line| (scale.max(line.scale), minimum.max(line.minimum)));
    let (mut d, mut dmin) = (stored(steepest / format.largest).1, stored(deepest / format.largest).1);
    let mut best = round_to(values, weights, &lines, d, dmin, format);
    for _ in 1..ROUNDS {
        let next = solve(values, weights, &best);
        if next == (d, dmin) {
            break;
        }
        (d, dmin) = next;
        let found = round_to(values, weights, &lines, d, dmin, format);
        if found.error >= best.error {
            break;
        }
        best = found;
    }
    best
}

/// Times that integers are chosen.
const ROUNDS: usize = 3;

/// Step 2: the integers of every group for stored `d` and `dmin`.
#[inline(always)]
fn round_to<const G: usize, const N: usize>(
    values: &[[f32; N]; G],
    weights: &[[f32; N]; G],
    lines: &[Line; G],
    d: f32,
    dmin: f32,
    format: &Format<'_>,
) -> Block<G, N> {
    let mut block = Block { d, dmin, scales: [0.0; G], mins: [0.0; G], integers: [[0.0; N]; G], error: 0.0 };
    let (inverse_d, inverse_dmin) = (inverse(d), inverse(dmin));
    let groups = values.iter().zip(weights).zip(lines);
    let places = block.scales.iter_mut().zip(&mut block.mins).zip(&mut block.integers);
    for (((values, weights), line), ((scale, min), integers)) in groups.zip(places) {
        let group = Group::new(values, weights);
        let mean = group.mean();
        let floor = (line.scale * inverse_d).floor();
        let mut best = f32::MIN;
        for offsets in [[-1.0, 0.0], [1.0, 2.0]] {
            // Two scales, four minima to each.
            let mut candidates = Lines::ZERO;
            for lane in 0..LANES {
                let candidate = clamp(floor + offsets[lane / 4], 0.0, format.largest);
                // The line turns around the mean of the values, where a minimum makes up best for another scale.
                let tilt = d * candidate * inverse(line.scale);
                let minimum = tilt * (line.minimum + mean) - mean;
                let near = (minimum * inverse_dmin).floor() + [-1.0, 0.0, 1.0, 2.0][lane % 4];
                candidates.scale[lane] = candidate;
                candidates.minimum[lane] = clamp(near, 0.0, format.largest);
            }
            let stored = Lines {
                scale: candidates.scale.map(|scale| d * scale),
                minimum: candidates.minimum.map(|minimum| dmin * minimum),
            };
            let (lane, error) = largest(&group.errors(&stored, format.high).map(|error| -error));
            if error > best {
                best = error;
                (*scale, *min) = (candidates.scale[lane], candidates.minimum[lane]);
            }
        }
        *integers = Line { scale: d * *scale, minimum: dmin * *min }.quantize(values, format.high);
        block.error -= best;
    }
    block
}

/// Step 3: the best stored `d` and `dmin` for given integers.
#[inline(always)]
fn solve<const G: usize, const N: usize>(
    values: &[[f32; N]; G],
    weights: &[[f32; N]; G],
    block: &Block<G, N>,
) -> (f32, f32) {
    let [mut qq, mut qm, mut mm, mut xq, mut xm] = [0.0f32; 5];
    let groups = block.scales.iter().zip(&block.mins).zip(&block.integers);
    for (((scale, min), integers), (values, weights)) in groups.zip(values.iter().zip(weights)) {
        let [w, wq, wqq, wx, wxq] = total::<N, 5>(|i| {
            let (w, q, x) = (weights[i], integers[i], values[i]);
            [w, w * q, w * q * q, w * x, w * q * x]
        });
        qq += scale * scale * wqq;
        qm += scale * min * wq;
        mm += min * min * w;
        xq += scale * wxq;
        xm += min * wx;
    }
    // x = d * q - dmin * m, least squares.
    let determinant = qq * mm - qm * qm;
    let (d, dmin) = if determinant > 0.0 {
        ((xq * mm - xm * qm) / determinant, (xq * qm - xm * qq) / determinant)
    } else {
        (if qq > 0.0 { xq / qq } else { block.d }, block.dmin)
    };
    if d > 0.0 && dmin >= 0.0 { (stored(d).1, stored(dmin).1) } else { (block.d, block.dmin) }
}
