//! What an error counts at each place.

use super::error::QuantizeError;

/// The importances divided by the largest, so that sums of products stay far from the limits of `f32`.
///
/// # Errors
/// [`QuantizeError::Columns`] unless there are `row_len` of them, [`QuantizeError::Importance`] for one that is below zero
/// or not finite.
pub(super) fn normalized(importance: &[f32], row_len: usize) -> Result<Vec<f32>, QuantizeError> {
    if importance.len() != row_len {
        return Err(QuantizeError::Columns { expected: row_len, found: importance.len() });
    }
    let bad = importance.iter().enumerate().find(|(_, value)| !(value.is_finite() && **value >= 0.0));
    if let Some((column, value)) = bad {
        return Err(QuantizeError::Importance { column, value: *value });
    }
    let largest = importance.iter().fold(0.0f32, |largest, value| largest.max(*value));
    // A matrix of zeros says nothing: every column counts the same.
    let scaled = |value: &f32| if largest > 0.0 { value / largest } else { 1.0 };
    Ok(importance.iter().map(scaled).collect())
}

/// The weight of every value of a row: 1 without importance, else the column's importance, more for the larger values.
///
/// The factor `sqrt(mean square of the row + value^2)` is the usual companion of an importance matrix: large weights err on
/// more products than the mean square of their column tells.
pub(super) struct Weights<'a> {
    importance: Option<&'a [f32]>,
    mean_square: f32,
}

impl<'a> Weights<'a> {
    /// For a row.
    pub(super) fn new(row: &[f32], importance: Option<&'a [f32]>) -> Self {
        let mean_square = match importance {
            None => 0.0,
            Some(_) => super::lanes::dot(row, row) / length(row.len()),
        };
        Self { importance, mean_square }
    }

    /// The weights of the block of `N` values that begins at column `start`.
    pub(super) fn block<const N: usize>(&self, start: usize, values: &[f32; N]) -> [f32; N] {
        let mut weights = [1.0; N];
        let Some(columns) = self.importance.and_then(|all| all.get(start..)?.first_chunk::<N>()) else {
            return weights;
        };
        let mut total = 0.0;
        for (weight, (column, value)) in weights.iter_mut().zip(columns.iter().zip(values)) {
            *weight = column * (self.mean_square + value * value).sqrt();
            total += *weight;
        }
        // Columns that no activation ever reached: without a weight, nothing would choose.
        if total > SMALLEST_TOTAL { weights } else { [1.0; N] }
    }
}

/// Below this, sums of products of a block get lost among the subnormal numbers.
const SMALLEST_TOTAL: f32 = 1e-20;

#[expect(clippy::cast_precision_loss, reason = "a mean needs no more digits")]
fn length(len: usize) -> f32 {
    len.max(1) as f32
}
