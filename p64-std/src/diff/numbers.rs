//! The values of two tensors compared.

use crate::source::Payload;
use crate::stats::{Decoder, PIECE, Scratch, Values};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Elements that a thread takes at once.
const SHARE: u64 = PIECE as u64 * 32;
/// Sums run in this many lanes, for the processor's vectors; the order of additions is fixed by it.
const LANES: usize = 8;

/// Sums over pairs of values; the measures follow from them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Numbers {
    /// Pairs of finite values, over which the sums run.
    pub compared: u64,
    /// Pairs of which one or both are NaN or infinite.
    pub not_finite: u64,
    /// Pairs of equal finite values.
    pub equal: u64,
    /// Sum of squared differences.
    pub error: f64,
    /// Sum of differences, second minus first.
    pub shift: f64,
    /// Sum of the first tensor's squares.
    pub energy_a: f64,
    /// Sum of the second tensor's squares.
    pub energy_b: f64,
    /// Sum of products.
    pub product: f64,
    /// The largest magnitude of a difference.
    pub max: f64,
    /// The first element with that difference, in the order of the payload.
    pub max_at: u64,
}

impl Numbers {
    /// Root of the mean squared difference.
    #[must_use]
    pub fn rmse(&self) -> f64 {
        if self.compared == 0 { 0.0 } else { (self.error / float(self.compared)).sqrt() }
    }

    /// The same in units of the first tensor's root mean square; `None` where all its values are zero.
    #[must_use]
    pub fn relative(&self) -> Option<f64> {
        (self.energy_a > 0.0).then(|| (self.error / self.energy_a).sqrt())
    }

    /// Mean difference, second minus first.
    #[must_use]
    pub fn mean_shift(&self) -> f64 {
        if self.compared == 0 { 0.0 } else { self.shift / float(self.compared) }
    }

    /// Cosine of the angle between the two tensors as vectors; `None` where one of them is all zero.
    #[must_use]
    pub fn cosine(&self) -> Option<f64> {
        let norms = self.energy_a.sqrt() * self.energy_b.sqrt();
        (norms > 0.0).then(|| (self.product / norms).clamp(-1.0, 1.0))
    }

    fn join(self, other: Self) -> Self {
        let (max, max_at) = if other.max > self.max { (other.max, other.max_at) } else { (self.max, self.max_at) };
        Self {
            compared: self.compared.saturating_add(other.compared),
            not_finite: self.not_finite.saturating_add(other.not_finite),
            equal: self.equal.saturating_add(other.equal),
            error: self.error + other.error,
            shift: self.shift + other.shift,
            energy_a: self.energy_a + other.energy_a,
            energy_b: self.energy_b + other.energy_b,
            product: self.product + other.product,
            max,
            max_at,
        }
    }

    /// Counts a piece in that begins at element `start`.
    fn add<A: Copy + Into<f64>, B: Copy + Into<f64>>(&mut self, start: u64, a: &[A], b: &[B]) {
        let mut piece = Self::default();
        let finite = |a: A, b: B| a.into().is_finite() & b.into().is_finite();
        if a.iter().zip(b).fold(true, |all, (a, b)| all & finite(*a, *b)) {
            piece.of_finite(a, b);
        } else {
            let pairs: Vec<(f64, f64)> =
                a.iter().zip(b).filter(|(a, b)| finite(**a, **b)).map(|(a, b)| ((*a).into(), (*b).into())).collect();
            let (left, right): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            piece.of_finite(&left, &right);
            piece.not_finite = (a.len() as u64).saturating_sub(piece.compared);
        }
        if piece.max > 0.0 {
            let most = |(a, b): (&A, &B)| ((*b).into() - (*a).into()).abs() == piece.max;
            piece.max_at = start.saturating_add(a.iter().zip(b).position(most).unwrap_or(0) as u64);
        }
        *self = self.join(piece);
    }

    fn of_finite<A: Copy + Into<f64>, B: Copy + Into<f64>>(&mut self, a: &[A], b: &[B]) {
        let ((chunks_a, rest_a), (chunks_b, rest_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        let chunks = chunks_a.iter().map(<[A; LANES]>::as_slice).zip(chunks_b.iter().map(<[B; LANES]>::as_slice));
        let mut sums = [[0.0; LANES]; 6];
        let mut equal = [0u64; LANES];
        for (a, b) in chunks.chain([(rest_a, rest_b)]) {
            let [error, shift, energy_a, energy_b, product, max] = &mut sums;
            for (lane, (a, b)) in a.iter().zip(b).enumerate() {
                let (a, b): (f64, f64) = ((*a).into(), (*b).into());
                let difference = b - a;
                error[lane] += difference * difference;
                shift[lane] += difference;
                energy_a[lane] += a * a;
                energy_b[lane] += b * b;
                product[lane] += a * b;
                max[lane] = if difference.abs() > max[lane] { difference.abs() } else { max[lane] };
                equal[lane] += u64::from(a == b);
            }
        }
        let [error, shift, energy_a, energy_b, product, max] = sums;
        let sum = |lanes: [f64; LANES]| lanes.into_iter().sum::<f64>();
        *self = Self {
            compared: a.len().min(b.len()) as u64,
            equal: equal.into_iter().sum(),
            error: sum(error),
            shift: sum(shift),
            energy_a: sum(energy_a),
            energy_b: sum(energy_b),
            product: sum(product),
            max: max.into_iter().fold(0.0, f64::max),
            ..Self::default()
        };
    }
}

type PieceError = crate::stats::PieceError;

/// Compares element by element, in the order of the payloads; `None` when their numbers of elements differ or a type cannot
/// be decoded. An error says whether it is the second tensor's.
pub(super) fn compare(a: &dyn Payload, b: &dyn Payload) -> Result<Option<Numbers>, (bool, PieceError)> {
    let decoder_a = Decoder::new(a).map_err(|error| (false, error))?;
    let decoder_b = Decoder::new(b).map_err(|error| (true, error))?;
    let (Some(a), Some(b)) = (decoder_a, decoder_b) else { return Ok(None) };
    let elements = a.elements();
    if elements != b.elements() {
        return Ok(None);
    }
    let share = |scratch: &mut [Scratch; 2], index: u64| {
        let mut numbers = Numbers::default();
        let mut start = index.saturating_mul(SHARE);
        let end = start.saturating_add(SHARE).min(elements);
        while start < end {
            let count = usize::try_from(end.saturating_sub(start)).map_or(PIECE, |left| left.min(PIECE));
            let [left, right] = scratch;
            let left = a.piece(start, count, left).map_err(|error| (false, error))?;
            let right = b.piece(start, count, right).map_err(|error| (true, error))?;
            match (left, right) {
                (Values::Single(a), Values::Single(b)) => numbers.add(start, a, b),
                (Values::Single(a), Values::Double(b)) => numbers.add(start, a, b),
                (Values::Double(a), Values::Single(b)) => numbers.add(start, a, b),
                (Values::Double(a), Values::Double(b)) => numbers.add(start, a, b),
            }
            start = start.saturating_add(count as u64);
        }
        Ok(numbers)
    };
    let shares = usize::try_from(elements.div_ceil(SHARE)).unwrap_or(usize::MAX);
    let sums: Vec<Numbers> = if shares <= 1 {
        (0..shares).map(|_| share(&mut Default::default(), 0)).collect::<Result<_, _>>()?
    } else {
        let shares = (0..shares).into_par_iter();
        shares.map_init(Default::default, |scratch, index| share(scratch, index as u64)).collect::<Result<_, _>>()?
    };
    Ok(Some(sums.into_iter().fold(Numbers::default(), Numbers::join)))
}

#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^53 lose their last digits only")]
const fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(a: &[f32], b: &[f32]) -> Numbers {
        let mut numbers = Numbers::default();
        numbers.add(0, a, b);
        numbers
    }

    #[test]
    fn by_hand() {
        let numbers = of(&[3.0, -4.0, 0.0, 1.0], &[3.0, -2.0, 1.0, 1.0]);
        assert_eq!((numbers.compared, numbers.equal, numbers.not_finite), (4, 2, 0));
        assert_eq!((numbers.error, numbers.shift, numbers.max, numbers.max_at), (5.0, 3.0, 2.0, 1));
        assert_eq!((numbers.energy_a, numbers.energy_b, numbers.product), (26.0, 15.0, 18.0));
        assert_eq!(numbers.rmse(), 1.25f64.sqrt());
        assert_eq!(numbers.relative(), Some((5.0f64 / 26.0).sqrt()));
        assert!((numbers.cosine().expect("not zero") - 18.0 / (26.0f64 * 15.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn pairs_without_two_numbers_are_left_out() {
        let numbers = of(&[f32::NAN, 1.0, f32::INFINITY, 2.0], &[0.0, 1.5, f32::INFINITY, f32::NAN]);
        assert_eq!((numbers.compared, numbers.not_finite, numbers.error, numbers.max_at), (1, 3, 0.25, 1));
    }

    #[test]
    fn zeros_have_no_direction() {
        let numbers = of(&[0.0; 9], &[1.0; 9]);
        assert_eq!((numbers.relative(), numbers.cosine(), numbers.rmse()), (None, None, 1.0));
        assert_eq!(of(&[], &[]).rmse(), 0.0);
    }
}
