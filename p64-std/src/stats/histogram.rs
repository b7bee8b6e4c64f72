//! How values spread over their range.

use super::moments::Moments;

/// Bins of a histogram.
pub const BINS: usize = 64;

/// Beyond this many standard deviations from the mean a value is an outlier, and lies outside the histogram.
pub const OUTLIER_SIGMAS: f64 = 6.0;

/// Finite values counted in [`BINS`] bins of equal width, and those outside.
///
/// The bins span from the least to the greatest value, but no more than [`OUTLIER_SIGMAS`] standard deviations to either
/// side of the mean. A value `x` is in bin `floor((x - low) * (BINS / (high - low)))`, `high` itself in the last.
#[derive(Clone, PartialEq, Debug)]
pub struct Histogram {
    /// Where the first bin begins.
    pub low: f64,
    /// Where the last bin ends.
    pub high: f64,
    /// Values of each bin.
    pub counts: [u64; BINS],
    /// Values below `low`.
    pub below: u64,
    /// Values above `high`.
    pub above: u64,
}

impl Histogram {
    /// The empty histogram for values with these moments.
    pub(super) fn around(moments: &Moments) -> Self {
        let reach = OUTLIER_SIGMAS * moments.std();
        let (low, high) = if moments.finite() == 0 {
            (0.0, 0.0)
        } else {
            (moments.min.max(moments.mean - reach), moments.max.min(moments.mean + reach))
        };
        Self { low, high, counts: [0; BINS], below: 0, above: 0 }
    }

    /// Counts the finite ones of `values`.
    pub(super) fn add<T: Copy + Into<f64>>(&mut self, values: &[T]) {
        let width = self.high - self.low;
        let per_bin = if width > 0.0 { BINS as f64 / width } else { 0.0 };
        for value in values {
            let value: f64 = (*value).into();
            if value < self.low {
                self.below += u64::from(value.is_finite());
            } else if value > self.high {
                self.above += u64::from(value.is_finite());
            } else if !value.is_nan() {
                // From 0 to BINS, so the conversion only drops the fraction.
                let bin = ((value - self.low) * per_bin) as usize;
                self.counts[bin.min(BINS - 1)] += 1;
            }
        }
    }

    /// The counts of both, which have the same bins.
    #[must_use]
    pub(super) fn join(mut self, other: Self) -> Self {
        self.counts.iter_mut().zip(other.counts).for_each(|(here, there)| *here = here.saturating_add(there));
        self.below = self.below.saturating_add(other.below);
        self.above = self.above.saturating_add(other.above);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_belong_to_the_outer_bins() {
        let values: Vec<f32> = (0u8..=64).map(f32::from).chain([f32::NAN, f32::INFINITY]).collect();
        let mut moments = Moments::default();
        moments.add(&values);
        let mut histogram = Histogram::around(&moments);
        histogram.add(&values);
        assert_eq!((histogram.low, histogram.high), (0.0, 64.0));
        assert!(histogram.counts[..63].iter().all(|count| *count == 1));
        assert_eq!((histogram.counts[63], histogram.below, histogram.above), (2, 0, 0));
    }

    #[test]
    fn outliers_lie_outside() {
        let mut values = vec![-1.0f32; 500];
        values.extend([1.0; 500]);
        values.extend([100.0, -200.0, -200.0]);
        let mut moments = Moments::default();
        moments.add(&values);
        let mut histogram = Histogram::around(&moments);
        histogram.add(&values);
        assert_eq!((histogram.below, histogram.above), (2, 1));
        assert_eq!(histogram.counts.iter().sum::<u64>(), 1000);
    }

    #[test]
    fn equal_values_are_in_one_bin() {
        let mut moments = Moments::default();
        moments.add(&[0.25f32; 10]);
        let mut histogram = Histogram::around(&moments);
        histogram.add(&[0.25f32; 10]);
        assert_eq!((histogram.low, histogram.high, histogram.counts[0]), (0.25, 0.25, 10));
    }
}
