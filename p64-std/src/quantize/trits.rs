//! -1, 0 and +1: TQ1_0 and TQ2_0 with an F16 scale for 256 values, and P64's ternary with one for the tensor.

use super::lanes::{byte, total};
use super::pack::{stored, two_bit_runs};
use super::symmetric::{Integers, NOTHING, quantize};
use super::weights::Weights;
use p64_core::quant::ternary::PER_BYTE;

/// The levels of all three.
type Trits = Integers<-1, 1>;

/// TQ1_0.
pub(super) fn tq1_0(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    for_blocks::<54>(row, importance, out, |digits, scale| {
        let mut packed = [0; 54];
        let (parts, d) = packed.split_at_mut(52);
        let (first, rest) = parts.split_at_mut(32);
        let (middle, last) = rest.split_at_mut(16);
        fold::<32>(&digits[..160], first);
        fold::<16>(&digits[160..240], middle);
        fold::<4>(&digits[240..], last);
        d.copy_from_slice(&scale);
        packed
    });
}

/// TQ2_0.
pub(super) fn tq2_0(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    for_blocks::<66>(row, importance, out, |digits, scale| {
        let mut packed = [0; 66];
        let mut groups = [[0; 32]; 8];
        groups.as_flattened_mut().copy_from_slice(digits);
        let (quants, d) = packed.split_at_mut(64);
        quants.copy_from_slice(two_bit_runs::<0>(&groups).as_flattened());
        d.copy_from_slice(&scale);
        packed
    });
}

/// Digits 0 to 2 of each block and its scale, as `pack` joins them.
fn for_blocks<const BYTES: usize>(
    row: &[f32],
    importance: Option<&[f32]>,
    out: &mut [u8],
    pack: impl Fn(&[u8; 256], [u8; 2]) -> [u8; BYTES],
) {
    let weights = Weights::new(row, importance);
    let blocks = row.as_chunks::<256>().0.iter().zip(out.as_chunks_mut::<BYTES>().0);
    for ((values, out), start) in blocks.zip((0..).step_by(256)) {
        let (bytes, scale) = stored(best_scale(values, &weights.block(start, values)));
        let digits = quantize::<Trits, 256>(values, scale).map(|trit| byte(trit + 1.0));
        *out = pack(&digits, bytes);
    }
}

/// The scale of least error. With the weights above a threshold at +-1 and the rest at 0, the best scale is the weighted mean
/// magnitude of the former, and the threshold belonging to it is half of that: turns between the two, from several starts.
fn best_scale(values: &[f32; 256], weights: &[f32; 256]) -> f32 {
    let most = values.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    if most < NOTHING {
        return 0.0;
    }
    let mut best = (0.0, 0.0);
    for start in STARTS {
        let mut threshold = start * most;
        for _ in 0..TURNS {
            let [weight, magnitude] = total::<256, 2>(|i| {
                let taken = if values[i].abs() > threshold { weights[i] } else { 0.0 };
                [taken, taken * values[i].abs()]
            });
            if weight <= 0.0 {
                break;
            }
            let scale = magnitude / weight;
            let explained = magnitude * scale;
            if explained > best.0 {
                best = (explained, scale);
            } else {
                break;
            }
            threshold = 0.5 * scale;
        }
    }
    best.1
}

/// First thresholds, as parts of the largest magnitude.
const STARTS: [f32; 3] = [0.2, 0.35, 0.5];

/// Turns between threshold and scale from each.
const TURNS: usize = 8;

/// Five digits to a byte (four where `digits` runs out), as a fraction of 256 in base 3, rounded up.
fn fold<const N: usize>(digits: &[u8], packed: &mut [u8]) {
    for (m, packed) in packed.iter_mut().enumerate() {
        let mut column = digits.iter().skip(m).step_by(N);
        let number = (0..5).fold(0u16, |number, _| number * 3 + u16::from(*column.next().unwrap_or(&0)));
        let [byte, _] = (number * 256).div_ceil(243).to_le_bytes();
        *packed = byte;
    }
}

/// The scale of a ternary tensor, gathered over its parts: the mean magnitude.
#[derive(Clone, Copy, Debug, Default)]
pub struct TernaryScale {
    sum: f64,
    elements: u64,
}

impl TernaryScale {
    /// No value yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { sum: 0.0, elements: 0 }
    }

    /// Adds values in the order of the tensor: the sum, in `f64`, depends on it in the last place.
    pub fn add(&mut self, values: &[f32]) {
        self.sum = values.iter().fold(self.sum, |sum, value| sum + f64::from(value.abs()));
        self.elements = self.elements.saturating_add(values.len() as u64);
    }

    /// The scale: the sum as `f32` over the number as `f32`, zero for a tensor of zeros or without values.
    #[must_use]
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "the format's scale is an f32")]
    pub fn scale(&self) -> f32 {
        let scale = self.sum as f32 / self.elements.max(1) as f32;
        // The mean of finite values is one, also where their sum is past f32.
        if scale.is_finite() { scale } else { (self.sum / self.elements.max(1) as f64) as f32 }
    }
}

/// The base-3 bytes of a run of a ternary tensor's values: five to a byte, the digits missing in the last one are 0. `scale`
/// is that of the whole tensor, whose payload is its four bytes and then these; a run that is not the last has a multiple
/// of five values. `out` takes as many bytes as it has room for.
pub fn encode_ternary(values: &[f32], scale: f32, out: &mut [u8]) {
    for (values, out) in values.chunks(PER_BYTE).zip(out) {
        // Digits of nothing are zeros; a trit is a digit less one.
        *out = values.iter().rev().fold(0, |byte, value| byte * 3 + digit(*value, scale));
    }
}

fn digit(value: f32, scale: f32) -> u8 {
    if scale == 0.0 {
        return 1;
    }
    // Half away from zero.
    let ratio = value / scale;
    1 + u8::from(ratio >= 0.5) - u8::from(ratio <= -0.5)
}

/// A whole ternary payload.
pub(super) fn encode_tensor(values: &[f32], out: &mut [u8]) {
    let mut scale = TernaryScale::new();
    scale.add(values);
    let scale = scale.scale();
    if let Some((head, digits)) = out.split_first_chunk_mut::<4>() {
        *head = scale.to_le_bytes();
        encode_ternary(values, scale, digits);
    }
}
