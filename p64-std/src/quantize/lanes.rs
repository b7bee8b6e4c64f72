//! Loops in the shape that compilers turn into vector code: eight candidates side by side, no branch, no conversion.
//!
//! Candidates lie in lanes, not values: a sum over the values of a group then needs nothing across lanes, and many scales
//! are tried at the cost of a few.

/// Candidates side by side.
pub(super) const LANES: usize = 8;

/// A number for each candidate.
pub(super) type Lanes = [f32; LANES];

/// Adding and subtracting it rounds to the nearest integer, ties to even, while `|v| < 2^22`.
const ROUND: f32 = 12_582_912.0;

/// The nearest integer; `v` is small.
#[inline(always)]
pub(super) fn round(v: f32) -> f32 {
    (v + ROUND) - ROUND
}

/// The largest integer up to `v`, which is small and not negative.
#[inline(always)]
pub(super) fn floor(v: f32) -> f32 {
    let nearest = round(v);
    nearest - if nearest > v { 1.0 } else { 0.0 }
}

/// The nearest integer, halves away from zero; `v` is small.
#[inline(always)]
pub(super) fn half_away(v: f32) -> f32 {
    let nearest = round(v.abs());
    (nearest + if v.abs() - nearest >= 0.5 { 1.0 } else { 0.0 }).copysign(v)
}

/// `v` within `low..=high`; the order of the comparisons is that of the machine's own minimum and maximum.
#[inline(always)]
pub(super) fn clamp(v: f32, low: f32, high: f32) -> f32 {
    let v = if v > low { v } else { low };
    if v < high { v } else { high }
}

/// The low byte of a small integer, in two's complement where it is negative.
#[inline(always)]
pub(super) fn byte(integer: f32) -> u8 {
    let [byte, ..] = (integer + ROUND).to_bits().to_le_bytes();
    byte
}

/// The sums, over the values of a group, of `M` terms for each candidate: `term(i, lane)`.
#[inline(always)]
pub(super) fn sums<const N: usize, const M: usize>(mut term: impl FnMut(usize, usize) -> [f32; M]) -> [Lanes; M] {
    let mut sums = [[0.0; LANES]; M];
    for i in 0..N {
        for lane in 0..LANES {
            for (sums, term) in sums.iter_mut().zip(term(i, lane)) {
                sums[lane] += term;
            }
        }
    }
    sums
}

/// The sum over all `i` of what `term` gives for it, `M` sums at once. Terms are added in eight runs side by side.
#[inline(always)]
pub(super) fn total<const N: usize, const M: usize>(mut term: impl FnMut(usize) -> [f32; M]) -> [f32; M] {
    let mut runs = [[0.0; LANES]; M];
    for start in (0..N).step_by(LANES) {
        for lane in 0..LANES {
            for (runs, term) in runs.iter_mut().zip(term(start + lane)) {
                runs[lane] += term;
            }
        }
    }
    runs.map(across)
}

/// The sum of the lanes, in pairs.
#[inline(always)]
fn across([a, b, c, d, e, f, g, h]: Lanes) -> f32 {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// The sum of products of two slices.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut runs = [0.0; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for (run, (a, b)) in runs.iter_mut().zip(a.iter().zip(b)) {
            *run += a * b;
        }
    }
    across(runs)
}

/// Smallest and largest value.
#[inline(always)]
pub(super) fn range<const N: usize>(values: &[f32; N]) -> (f32, f32) {
    let (mut low, mut high) = ([f32::MAX; LANES], [f32::MIN; LANES]);
    for values in values.as_chunks::<LANES>().0 {
        for ((low, high), value) in low.iter_mut().zip(&mut high).zip(values) {
            *low = if *value < *low { *value } else { *low };
            *high = if *value > *high { *value } else { *high };
        }
    }
    (low.into_iter().fold(f32::MAX, f32::min), high.into_iter().fold(f32::MIN, f32::max))
}

/// Where the largest of the lanes is, and what it is: the first of several.
#[inline(always)]
pub(super) fn largest(lanes: &Lanes) -> (usize, f32) {
    lanes
        .iter()
        .enumerate()
        .fold((0, f32::MIN), |best, (lane, value)| if *value > best.1 { (lane, *value) } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_to_even_and_bytes_are_twos_complement() {
        assert_eq!([0.5, 1.5, -0.5, -1.5, 2.4, -127.6].map(round), [0.0, 2.0, 0.0, -2.0, 2.0, -128.0]);
        assert_eq!([0.0, 0.49, 0.5, 1.5, 2.5, 3.999].map(floor), [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]);
        assert_eq!([0.49, 0.5, 1.5, 2.5, -0.5, -2.5, -2.6].map(half_away), [0.0, 1.0, 2.0, 3.0, -1.0, -3.0, -3.0]);
        assert_eq!([0.0, 15.0, -1.0, -128.0, 255.0].map(byte), [0, 15, 255, 128, 255]);
        assert_eq!(clamp(f32::NAN, -1.0, 1.0), -1.0);
    }

    #[test]
    fn sums_and_ranges_take_every_value() {
        let values: [f32; 32] = std::array::from_fn(|i| f32::from(u8::try_from(i).expect("small")) - 7.0);
        let [sum, squares] = total::<32, 2>(|i| [values[i], values[i] * values[i]]);
        assert_eq!((sum, squares), (272.0, dot(&values, &values)));
        assert_eq!(range(&values), (-7.0, 24.0));
        let factors = [1.0, 2.0, -3.0, 0.0, 5.0, 6.0, 7.0, 8.0];
        let [scaled] = sums::<32, 1>(|i, lane| [values[i] * factors[lane]]);
        assert_eq!(scaled, factors.map(|factor| factor * sum));
        assert_eq!((largest(&scaled), largest(&[2.0; LANES])), ((7, 8.0 * sum), (0, 2.0)));
    }
}
