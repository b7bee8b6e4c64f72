//! Loops in the shape that compilers turn into vector code: independent lanes, no branch, no conversion.

/// Sums side by side.
const LANES: usize = 8;

/// Adding and subtracting it rounds to the nearest integer, ties to even, while `|v| < 2^22`.
const ROUND: f32 = 12_582_912.0;

/// The nearest integer; `v` is small.
#[inline(always)]
pub(super) fn round(v: f32) -> f32 {
    (v + ROUND) - ROUND
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

/// The sums over all places of what `term` gives for each: `M` sums at once.
#[inline(always)]
pub(super) fn sums<const N: usize, const M: usize>(mut term: impl FnMut(usize) -> [f32; M]) -> [f32; M] {
    let mut lanes = [[0.0f32; LANES]; M];
    let mut start = 0;
    while start < N {
        for lane in 0..LANES {
            let terms = term(start + lane);
            for (lanes, term) in lanes.iter_mut().zip(terms) {
                lanes[lane] += term;
            }
        }
        start += LANES;
    }
    lanes.map(total)
}

/// The sum of the lanes, in pairs.
#[inline(always)]
fn total(lanes: [f32; LANES]) -> f32 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// The sum of products of two slices.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    total(lanes)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_to_even_and_bytes_are_twos_complement() {
        assert_eq!([0.5, 1.5, -0.5, -1.5, 2.4, -127.6].map(round), [0.0, 2.0, 0.0, -2.0, 2.0, -128.0]);
        assert_eq!([0.0, 15.0, -1.0, -128.0, 255.0].map(byte), [0, 15, 255, 128, 255]);
        assert_eq!(clamp(f32::NAN, -1.0, 1.0), -1.0);
    }

    #[test]
    fn sums_and_ranges_take_every_value() {
        let values: [f32; 32] = std::array::from_fn(|i| f32::from(u8::try_from(i).expect("small")) - 7.0);
        let [sum, squares] = sums::<32, 2>(|i| [values[i], values[i] * values[i]]);
        assert_eq!((sum, squares), (272.0, dot(&values, &values)));
        assert_eq!(range(&values), (-7.0, 24.0));
    }
}
