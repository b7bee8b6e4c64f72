//! The filters of the chain: each takes the candidates and leaves fewer, never none.

use std::cmp::Ordering;

/// A token that may be drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Candidate {
    pub(super) logit: f32,
    pub(super) id: u32,
}

/// Higher logits first, lower ids first among equals. NaN never gets here.
fn rank(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

/// Moves the `k` highest to the front and sorts them: O(n + k log k).
fn sort_front(candidates: &mut [Candidate], k: usize) {
    if k < candidates.len() {
        candidates.select_nth_unstable_by(k, rank);
    }
    if let Some(front) = candidates.get_mut(..k.min(candidates.len())) {
        front.sort_unstable_by(rank);
    }
}

/// Most candidates that [`top_k`] keeps in one walk.
const FEW: usize = 128;

/// Keeps the `k` highest, sorted.
pub(super) fn top_k(candidates: &mut Vec<Candidate>, k: usize) {
    let k = k.max(1);
    if k > FEW || k >= candidates.len() {
        sort_front(candidates, k);
        return candidates.truncate(k);
    }
    // Few of a vocabulary are higher than the lowest of those kept so far: the walk is one comparison for each of the others.
    let (best, others) = candidates.split_at_mut(k);
    best.sort_unstable_by(rank);
    let mut lowest = best.last().map_or(f32::INFINITY, |last| last.logit);
    for candidate in others.iter().copied() {
        // Of equals the lower ids are kept already; `lowest` may be equal by number and not by order: minus zero and zero.
        if candidate.logit < lowest {
            continue;
        }
        let at = best.partition_point(|kept| rank(kept, &candidate).is_lt());
        if let Some(worse) = best.get_mut(at..).filter(|worse| !worse.is_empty()) {
            worse.rotate_right(1);
            if let Some(slot) = worse.first_mut() {
                *slot = candidate;
            }
            lowest = best.last().map_or(lowest, |last| last.logit);
        }
    }
    candidates.truncate(k);
}

fn highest(candidates: &[Candidate]) -> f64 {
    candidates.iter().map(|candidate| candidate.logit).fold(f32::NEG_INFINITY, f32::max).into()
}

/// The weight of a candidate in a softmax without its denominator: 1 for the highest.
///
/// `libm`'s exponential and not the platform's, so that draws are the same on every machine.
fn weight(logit: f32, highest: f64, temperature: f64) -> f64 {
    let below = f64::from(logit) - highest;
    // Two infinities of one sign are equal, and their difference is not a number.
    if below.is_nan() { 1.0 } else { libm::exp(below / temperature) }
}

/// Keeps the fewest of the highest whose probabilities sum to at least `p`; at least one.
pub(super) fn top_p(candidates: &mut Vec<Candidate>, p: f32) {
    let highest = highest(candidates);
    let total: f64 = candidates.iter().map(|candidate| weight(candidate.logit, highest, 1.0)).sum();
    let goal = f64::from(p) * total;
    // Most of the mass lies in few tokens: sort a front that doubles instead of the whole vocabulary.
    let mut front = 256;
    loop {
        sort_front(candidates, front);
        let mut sum = 0.0;
        let reached = candidates.iter().take(front).position(|candidate| {
            sum += weight(candidate.logit, highest, 1.0);
            sum >= goal
        });
        if let Some(last) = reached {
            return candidates.truncate(last + 1);
        }
        if front >= candidates.len() {
            return;
        }
        front = front.saturating_mul(2);
    }
}

/// Drops those less probable than `p` times the most probable.
pub(super) fn min_p(candidates: &mut Vec<Candidate>, p: f32) {
    let floor = highest(candidates) + libm::log(f64::from(p));
    candidates.retain(|candidate| f64::from(candidate.logit) >= floor);
}

/// Draws one: `unit` in 0..1 falls into a candidate's share of the weights.
pub(super) fn draw(candidates: &[Candidate], temperature: f32, unit: f64) -> Option<u32> {
    let highest = highest(candidates);
    let weights = || candidates.iter().map(|c| weight(c.logit, highest, temperature.into()));
    let mut left = unit * weights().sum::<f64>();
    let drawn = candidates.iter().zip(weights()).find(|(_, weight)| {
        left -= weight;
        left < 0.0
    });
    // Rounding can leave a crumb after the last share: then it is the last one that has a share.
    let last = || candidates.iter().zip(weights()).rfind(|(_, weight)| *weight > 0.0);
    drawn.or_else(last).map(|(candidate, _)| candidate.id)
}
