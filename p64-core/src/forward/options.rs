//! How a forward pass is to run, and what it is to give.
#![forbid(unsafe_code)]

use super::probe::{Node, Probe};
use crate::kernel::{Activations, Serial, Workers};
use core::fmt;

/// How a forward pass runs. Nothing here but `activations` changes a result.
pub struct Options<'o> {
    /// What activations are rounded to before they meet the weights.
    pub activations: Activations,
    /// What the rows of products and the heads of attention are spread over.
    pub workers: &'o dyn Workers,
    /// Is shown every intermediate.
    pub probe: Option<Probe<'o>>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { activations: Activations::default(), workers: &Serial, probe: None }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("activations", &self.activations)
            .field("threads", &self.workers.threads())
            .field("probe", &self.probe.is_some())
            .finish()
    }
}

impl Options<'_> {
    pub(super) fn show(
        &mut self,
        name: &'static str,
        op: &'static str,
        layer: Option<usize>,
        row_len: usize,
        values: &[f32],
    ) {
        if let Some(probe) = &mut self.probe {
            probe(Node { name, op, layer, row_len, values });
        }
    }
}

/// Where the logits go.
#[derive(Debug)]
pub enum Logits<'l> {
    /// Nowhere: only the cache is filled.
    None,
    /// Those of the last position: `n_vocab`.
    Last(&'l mut [f32]),
    /// Those of every position: n x `n_vocab`.
    All(&'l mut [f32]),
}

impl Logits<'_> {
    /// Of `n` positions, how many are carried through to the logits.
    pub(super) const fn positions(&self, n: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Last(_) => 1,
            Self::All(_) => n,
        }
    }
}

/// The token of the largest logit. Of equal ones the lowest id wins, NaN never does; 0 when there is nothing to choose.
#[must_use]
pub fn argmax(logits: &[f32]) -> u32 {
    // The largest of each lane, then where the first that equals the largest of all stands: neither pass has a branch that
    // depends on the values, so that the compiler makes vector instructions of them.
    const LANES: usize = 16;
    let (rows, rest) = logits.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let larger = |of: f32, than: f32| if of > than { of } else { than };
    for row in rows {
        for (lane, logit) in lanes.iter_mut().zip(row) {
            *lane = larger(*logit, *lane);
        }
    }
    let largest = lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |largest, logit| larger(*logit, largest));
    if largest == f32::NEG_INFINITY {
        return 0;
    }
    let is_there = |row: &[f32]| row.iter().fold(false, |there, logit| there | (*logit == largest));
    let before = rows.iter().take_while(|row| !is_there(*row)).count().saturating_mul(LANES);
    let behind = logits.get(before..).unwrap_or_default();
    let at = behind.iter().position(|logit| *logit == largest).unwrap_or(0);
    u32::try_from(before.saturating_add(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_of_the_largest_wins() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0, 2.0]), 1);
        assert_eq!(argmax(&[f32::NAN, -5.0, f32::NAN, -4.0]), 3);
        assert_eq!(argmax(&[f32::NEG_INFINITY, f32::NEG_INFINITY]), 0);
        assert_eq!(argmax(&[f32::NAN]), 0);
        assert_eq!(argmax(&[]), 0);
    }

    /// At every place of lengths around the number of lanes, with equals behind it and NaN everywhere else.
    #[test]
    fn at_every_place() {
        for len in 1..70usize {
            for at in 0..len {
                for other in [f32::NAN, -3.0, f32::NEG_INFINITY] {
                    let mut logits = std::vec![other; len];
                    logits[at] = -0.0;
                    if let Some(later) = logits.get_mut(at + 17) {
                        *later = 0.0;
                    }
                    assert_eq!(argmax(&logits), u32::try_from(at).expect("small"), "{len} {other}");
                }
            }
        }
    }
}
