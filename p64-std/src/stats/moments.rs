//! Range, mean and spread of a run of values.

/// Values counted, and the first two moments of those that are finite.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Moments {
    /// All values.
    pub elements: u64,
    /// Values that are no number.
    pub nan: u64,
    /// Values that are plus infinity.
    pub plus_infinity: u64,
    /// Values that are minus infinity.
    pub minus_infinity: u64,
    /// Values equal to zero, of either sign.
    pub zeros: u64,
    /// Least finite value; plus infinity when there is none.
    pub min: f64,
    /// Greatest finite value; minus infinity when there is none.
    pub max: f64,
    /// Mean of the finite values; 0 when there is none.
    pub mean: f64,
    /// Sum of the squared distances of the finite values from their mean.
    pub squares: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            elements: 0,
            nan: 0,
            plus_infinity: 0,
            minus_infinity: 0,
            zeros: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            mean: 0.0,
            squares: 0.0,
        }
    }
}

/// Sums run in this many lanes, so that the processor's vectors can be used; the order of additions is fixed by it.
const LANES: usize = 8;

impl Moments {
    /// Values that are finite numbers.
    #[must_use]
    pub const fn finite(&self) -> u64 {
        self.elements.saturating_sub(self.not_finite())
    }

    /// Values that are NaN or infinite.
    #[must_use]
    pub const fn not_finite(&self) -> u64 {
        self.nan.saturating_add(self.plus_infinity).saturating_add(self.minus_infinity)
    }

    /// Standard deviation of the finite values (of the population: divided by their number).
    #[must_use]
    pub fn std(&self) -> f64 {
        if self.finite() == 0 { 0.0 } else { (self.squares / float(self.finite())).sqrt() }
    }

    /// The largest magnitude of a finite value; 0 when there is none.
    #[must_use]
    pub fn peak(&self) -> f64 {
        if self.finite() == 0 { 0.0 } else { self.max.abs().max(self.min.abs()) }
    }

    /// Counts a piece in.
    pub(super) fn add<T: Copy + Into<f64>>(&mut self, values: &[T]) {
        let mut piece = Self { elements: values.len() as u64, ..Self::default() };
        if values.iter().fold(true, |all, value| all & (*value).into().is_finite()) {
            piece.of_finite(values);
        } else {
            let mut finite = Vec::with_capacity(values.len());
            for value in values {
                match (*value).into() {
                    value if value.is_nan() => piece.nan += 1,
                    f64::INFINITY => piece.plus_infinity += 1,
                    f64::NEG_INFINITY => piece.minus_infinity += 1,
                    value => finite.push(value),
                }
            }
            piece.of_finite(&finite);
        }
        *self = self.join(piece);
    }

    fn of_finite<T: Copy + Into<f64>>(&mut self, values: &[T]) {
        let (chunks, rest) = values.as_chunks::<LANES>();
        let (mut min, mut max, mut sums, mut zeros) =
            ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES], [0.0; LANES], [0u64; LANES]);
        for chunk in chunks.iter().map(<[T; LANES]>::as_slice).chain([rest]) {
            for (lane, value) in chunk.iter().enumerate() {
                let value: f64 = (*value).into();
                min[lane] = if value < min[lane] { value } else { min[lane] };
                max[lane] = if value > max[lane] { value } else { max[lane] };
                sums[lane] += value;
                zeros[lane] += u64::from(value == 0.0);
            }
        }
        if values.is_empty() {
            return;
        }
        self.min = min.into_iter().fold(f64::INFINITY, f64::min);
        self.max = max.into_iter().fold(f64::NEG_INFINITY, f64::max);
        self.zeros = zeros.into_iter().sum();
        self.mean = sums.into_iter().sum::<f64>() / float(values.len() as u64);
        let mut squares = [0.0; LANES];
        for chunk in chunks.iter().map(<[T; LANES]>::as_slice).chain([rest]) {
            for (lane, value) in chunk.iter().enumerate() {
                let distance = (*value).into() - self.mean;
                squares[lane] += distance * distance;
            }
        }
        self.squares = squares.into_iter().sum();
    }

    /// The moments of both runs of values together.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let (here, there) = (float(self.finite()), float(other.finite()));
        let (mean, squares) = if self.finite() == 0 {
            (other.mean, other.squares)
        } else if other.finite() == 0 {
            (self.mean, self.squares)
        } else {
            let (all, shift) = (here + there, other.mean - self.mean);
            (self.mean + shift * (there / all), self.squares + other.squares + shift * shift * (here * (there / all)))
        };
        Self {
            elements: self.elements.saturating_add(other.elements),
            nan: self.nan.saturating_add(other.nan),
            plus_infinity: self.plus_infinity.saturating_add(other.plus_infinity),
            minus_infinity: self.minus_infinity.saturating_add(other.minus_infinity),
            zeros: self.zeros.saturating_add(other.zeros),
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            mean,
            squares,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^53 lose their last digits only")]
const fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f32]) -> Moments {
        let mut moments = Moments::default();
        moments.add(values);
        moments
    }

    #[test]
    fn what_is_no_number_is_counted_and_left_out() {
        let moments = of(&[1.0, f32::NAN, -3.0, f32::INFINITY, 0.0, f32::NEG_INFINITY, -0.0, f32::NAN]);
        assert_eq!((moments.elements, moments.finite(), moments.nan, moments.zeros), (8, 4, 2, 2));
        assert_eq!((moments.plus_infinity, moments.minus_infinity), (1, 1));
        assert_eq!((moments.min, moments.max, moments.mean), (-3.0, 1.0, -0.5));
        // Squared distances 2.25, 6.25, 0.25, 0.25.
        assert_eq!((moments.squares, moments.std(), moments.peak()), (9.0, 1.5, 3.0));
    }

    #[test]
    fn runs_join_to_the_whole() {
        let values: Vec<f32> = (0u16..1000).map(|i| f32::from(i % 37) - 11.5).collect();
        let whole = of(&values);
        for cut in [0, 1, 8, 333, 999, 1000] {
            let joined = of(&values[..cut]).join(of(&values[cut..]));
            assert_eq!((joined.elements, joined.min, joined.max), (1000, whole.min, whole.max));
            assert!((joined.mean - whole.mean).abs() < 1e-12 && (joined.squares / whole.squares - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn nothing_at_all() {
        let moments = of(&[]).join(of(&[f32::NAN]));
        assert_eq!(
            (moments.elements, moments.finite(), moments.mean, moments.std(), moments.peak()),
            (1, 0, 0.0, 0.0, 0.0)
        );
    }
}
