//! How far encoded values are from the given ones.

/// The error of a tensor, gathered over its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TensorError {
    elements: u64,
    squares: f64,
    signal: f64,
    max: f32,
}

impl TensorError {
    /// Nothing compared yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { elements: 0, squares: 0.0, signal: 0.0, max: 0.0 }
    }

    /// Adds a part: what was to be encoded and what a reader gets. What one of them has beyond the other is left out.
    pub fn add(&mut self, values: &[f32], decoded: &[f32]) {
        const LANES: usize = 8;
        let (mut squares, mut signal, mut max) = ([0.0f64; LANES], [0.0f64; LANES], [0.0f32; LANES]);
        let (values, decoded) = (values.get(..decoded.len()).unwrap_or(values), decoded);
        let mut add = |values: &[f32], decoded: &[f32]| {
            let lanes = squares.iter_mut().zip(&mut signal).zip(&mut max);
            for (((squares, signal), max), (value, decoded)) in lanes.zip(values.iter().zip(decoded)) {
                let off = f64::from(*value) - f64::from(*decoded);
                *squares += off * off;
                *signal += f64::from(*value) * f64::from(*value);
                let off = (value - decoded).abs();
                *max = larger(*max, off);
            }
        };
        for (values, decoded) in values.chunks(LANES).zip(decoded.chunks(LANES)) {
            add(values, decoded);
        }
        let elements = values.len().min(decoded.len()) as u64;
        let part = Self {
            elements,
            squares: squares.iter().sum(),
            signal: signal.iter().sum(),
            max: max.into_iter().fold(0.0, larger),
        };
        self.merge(&part);
    }

    /// Adds what was gathered elsewhere, of other values of the tensor.
    pub fn merge(&mut self, other: &Self) {
        self.elements = self.elements.saturating_add(other.elements);
        self.squares += other.squares;
        self.signal += other.signal;
        self.max = larger(self.max, other.max);
    }

    /// Values compared.
    #[must_use]
    pub const fn elements(&self) -> u64 {
        self.elements
    }

    /// Root of the mean squared difference; zero where nothing was compared.
    #[must_use]
    pub fn rmse(&self) -> f64 {
        mean(self.squares, self.elements).sqrt()
    }

    /// Root of the mean square of the values themselves.
    #[must_use]
    pub fn rms(&self) -> f64 {
        mean(self.signal, self.elements).sqrt()
    }

    /// [`TensorError::rmse`] over [`TensorError::rms`]; zero where both are.
    #[must_use]
    pub fn relative(&self) -> f64 {
        if self.squares == 0.0 { 0.0 } else { (self.squares / self.signal).sqrt() }
    }

    /// Largest difference.
    #[must_use]
    pub const fn max(&self) -> f32 {
        self.max
    }
}

/// The larger one; NaN where either is.
fn larger(a: f32, b: f32) -> f32 {
    if b > a || b.is_nan() { b } else { a }
}

#[expect(clippy::cast_precision_loss, reason = "a mean needs no more digits")]
fn mean(sum: f64, elements: u64) -> f64 {
    sum / elements.max(1) as f64
}
