//! The formats of 32 values with one F16 scale: Q4_0, Q5_0, Q8_0, and with a minimum Q4_1, Q5_1.

use super::affine::{Group, Inwards, Line, Lines, Minimum};
use super::lanes::{LANES, byte, clamp, floor, half_away, largest, range};
use super::pack::{fifth_bits, nibbles, stored};
use super::symmetric::{Integers, fit, inverse, quantize};
use super::weights::Weights;

/// Q4_0. Without importance the bytes are those of GGML's reference code: the scale maps the extreme value to -8.
pub(super) fn q4_0(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    let weights = Weights::new(row, importance);
    for ((values, out), start) in blocks::<18>(row, out) {
        let (scale, quants) = match importance {
            Some(_) => best::<-8, 7>(values, &weights.block(start, values)),
            None => {
                let scale = extreme(values) / -8.0;
                let inverse = inverse(scale);
                // Rounds half up, as the reference does; the sum is never negative.
                (scale, values.map(|value| floor(clamp(value * inverse + 8.5, 0.0, 15.0)) - 8.0))
            }
        };
        let [d0, d1, packed @ ..] = out;
        [*d0, *d1] = stored(scale).0;
        *packed = nibbles(&quants.map(|quant| byte(quant + 8.0)));
    }
}

/// Q5_0.
pub(super) fn q5_0(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    let weights = Weights::new(row, importance);
    for ((values, out), start) in blocks::<22>(row, out) {
        let (scale, quants) = best::<-16, 15>(values, &weights.block(start, values));
        let quants = quants.map(|quant| byte(quant + 16.0));
        let [d0, d1, f0, f1, f2, f3, packed @ ..] = out;
        [*d0, *d1] = stored(scale).0;
        [*f0, *f1, *f2, *f3] = fifth_bits(&quants);
        *packed = nibbles(&quants);
    }
}

/// Q8_0: the bytes of GGML's reference code, in which the scale maps the extreme value to 127. There is nothing to choose at
/// eight bits that importance would change.
pub(super) fn q8_0(row: &[f32], _: Option<&[f32]>, out: &mut [u8]) {
    for ((values, out), _) in blocks::<34>(row, out) {
        let scale = extreme(values).abs() / 127.0;
        let inverse = inverse(scale);
        let [d0, d1, packed @ ..] = out;
        [*d0, *d1] = stored(scale).0;
        // Half away from zero, as the reference does.
        *packed = values.map(|value| byte(half_away(value * inverse)));
    }
}

/// Q4_1.
pub(super) fn q4_1(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    let weights = Weights::new(row, importance);
    for ((values, out), start) in blocks::<20>(row, out) {
        let (line, quants) = best_line(values, &weights.block(start, values), 15.0);
        let [d0, d1, m0, m1, packed @ ..] = out;
        [*d0, *d1] = stored(line.scale).0;
        [*m0, *m1] = stored(-line.minimum).0;
        *packed = nibbles(&quants);
    }
}

/// Q5_1.
pub(super) fn q5_1(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    let weights = Weights::new(row, importance);
    for ((values, out), start) in blocks::<24>(row, out) {
        let (line, quants) = best_line(values, &weights.block(start, values), 31.0);
        let [d0, d1, m0, m1, f0, f1, f2, f3, packed @ ..] = out;
        [*d0, *d1] = stored(line.scale).0;
        [*m0, *m1] = stored(-line.minimum).0;
        [*f0, *f1, *f2, *f3] = fifth_bits(&quants);
        *packed = nibbles(&quants);
    }
}

/// The blocks of a row: 32 values, where they go, and the column of the first.
fn blocks<'a, const BYTES: usize>(
    row: &'a [f32],
    out: &'a mut [u8],
) -> impl Iterator<Item = ((&'a [f32; 32], &'a mut [u8; BYTES]), usize)> {
    row.as_chunks::<32>().0.iter().zip(out.as_chunks_mut::<BYTES>().0).zip((0..).step_by(32))
}

/// The value of largest magnitude, the first of them.
fn extreme(values: &[f32; 32]) -> f32 {
    let (low, high) = range(values);
    if -low == high {
        let first = values.iter().find(|value| value.abs() == high);
        return first.copied().unwrap_or_default();
    }
    if -low > high { low } else { high }
}

/// Scale and integers of least error, the scale as it is stored.
fn best<const LOW: i16, const HIGH: i16>(values: &[f32; 32], weights: &[f32; 32]) -> (f32, [f32; 32]) {
    let (_, scale) = stored(fit::<Integers<LOW, HIGH>, 32>(values, weights));
    (scale, quantize::<Integers<LOW, HIGH>, 32>(values, scale))
}

/// Line and integers of least error, the line as it is stored.
fn best_line(values: &[f32; 32], weights: &[f32; 32], high: f32) -> (Line, [u8; 32]) {
    let group = Group::new(values, weights);
    let fitted = group.fit(high, &INWARDS, Minimum::Free);
    let (_, scale) = stored(fitted.scale);
    // Rounding the scale tilts the line: around the mean of the integers it moves the values least when the minimum makes
    // up for it.
    let tilt = if fitted.scale > 0.0 { scale / fitted.scale } else { 1.0 };
    let refitted = tilt * (fitted.minimum + group.mean()) - group.mean();
    let mut lines = Lines { scale: [scale; LANES], ..Lines::ZERO };
    let near = |minimum: f32, part: f32| -stored(-minimum - part * scale).1;
    lines.minimum = [
        near(fitted.minimum, 0.0),
        near(refitted, 0.0),
        near(refitted, 0.03),
        near(refitted, -0.03),
        near(refitted, 0.08),
        near(refitted, -0.08),
        near(fitted.minimum, 0.03),
        near(fitted.minimum, -0.03),
    ];
    let errors = group.errors(&lines, high).map(|error| -error);
    let line = lines.get(largest(&errors).0);
    (line, line.quantize(values, high).map(byte))
}

/// How far the ends of the range are moved inwards, in steps.
const INWARDS: Inwards = [
    [[0.0, 0.0, 0.0, 0.4, 0.4, 0.4, 0.8, 0.8], [0.0, 0.4, 0.8, 0.0, 0.4, 0.8, 0.0, 0.4]],
    [[0.0, -0.5, -0.5, 0.0, 0.5, -1.0, 1.0, 0.8], [-1.0, -0.5, 0.0, -0.5, 0.5, 0.0, 1.0, 0.8]],
];
