//! Mixtures of experts: a feed-forward network that every position chooses for itself.
//!
//! ```text
//! router   p = softmax(R x); the `used` largest are chosen, of equal ones the first; w = p, divided by their sum or not
//! experts  y = sum over the chosen e, in the order of their numbers, of w[e] * down[e](act(gate[e] x) * up[e] x)
//! shared   y += g * down(act(gate x) * up x) where the model has it, g being sigmoid(r . x) or 1
//! ```
//!
//! The positions of a batch that chose the same expert pass it together, so that its weights are read once. A position's
//! result is added up in an order in which its company has no part: it does not depend on the batch.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::as_conversions, clippy::unwrap_used)]

use super::At;
use super::dims::{Config, Experts};
use super::options::Options;
use super::scratch::Scratch;
use super::steps::add;
use super::weights::{Expert, ExpertTensors};
use crate::error::{Error, Result};
use crate::kernel::generic::softmax::softmax;
use crate::kernel::{MatmulScratch, Matrix, matmul};

/// The smallest sum of weights that is divided by: f16's smallest normal number, as in GGML.
const SMALLEST_SUM: f32 = 1.0 / 16384.0;

/// Lengths of the parts of [`Scratch::experts`].
const fn parts(config: &Config, experts: &Experts, n: usize) -> [usize; 5] {
    let stream = n.saturating_mul(config.n_embd);
    [stream, stream, stream, n.saturating_mul(experts.count), experts.count]
}

/// Values that the experts of `n` positions take besides the buffers that every feed-forward network has.
pub(super) fn scratch_len(config: &Config, n: usize) -> usize {
    let sum = |experts| parts(config, experts, n).iter().fold(0, |sum: usize, len| sum.saturating_add(*len));
    config.experts.as_ref().map_or(0, sum)
}

/// What the experts make of `scratch.branch`, which stays: `n * n_embd` values at the front of `scratch.experts`.
pub(super) fn feed_forward(
    at: &At<'_>,
    tensors: &ExpertTensors<'_>,
    scratch: &mut Scratch<'_>,
    options: &mut Options<'_>,
) -> Result<()> {
    let (config, n, n_embd) = (at.config, at.n, at.config.n_embd);
    let Some(experts) = &config.experts else { return Ok(()) };
    let short = Error::buffer_too_small(scratch_len(config, n), scratch.experts.len());
    let mut rest = &mut *scratch.experts;
    let [sum, gathered, given, weights, buffer] = parts(config, experts, n).map(|len| {
        let (part, after) = core::mem::take(&mut rest).split_at_mut_checked(len).unwrap_or_default();
        rest = after;
        part
    });
    let branch = scratch.branch.get(..sum.len()).filter(|_| buffer.len() == experts.count).ok_or(short)?;
    let mut inside = Inside { gate: scratch.gate, up: scratch.up, matmul: &mut scratch.matmul };

    inside.product(&tensors.router(config, experts)?, branch, n, weights, options)?;
    at.show("ffn_moe_logits", "MUL_MAT", experts.count, weights, options);
    weights.chunks_exact_mut(experts.count).for_each(softmax);
    at.show("ffn_moe_probs", "SOFT_MAX", experts.count, weights, options);
    weights.chunks_exact_mut(experts.count).for_each(|weights| choose(experts, weights, buffer));

    sum.fill(0.0);
    for expert in 0..experts.count {
        // The expert's weight in each position.
        let shares = || weights.iter().skip(expert).step_by(experts.count).copied();
        let m = gather(shares(), branch, gathered, n_embd);
        let len = m.saturating_mul(n_embd);
        let (x, given) = gathered.get(..len).zip(given.get_mut(..len)).filter(|_| m > 0).unwrap_or_default();
        if m > 0 {
            inside.pass(config, &tensors.expert(config, experts, expert)?, x, m, given, options)?;
            scatter(shares(), given, sum, n_embd);
        }
    }
    at.show("ffn_moe_out", "ADD", n_embd, sum, options);

    if let Some(shared) = tensors.shared(config, experts)? {
        inside.pass(config, &shared.expert, branch, n, given, options)?;
        at.show("ffn_shexp", "MUL_MAT", n_embd, given, options);
        if let Some(weigher) = &shared.weigher {
            let weights = weights.get_mut(..n).ok_or(short)?;
            inside.product(weigher, branch, n, weights, options)?;
            for (given, weight) in given.chunks_exact_mut(n_embd).zip(weights) {
                let weight = 1.0 / (1.0 + libm::expf(-*weight));
                given.iter_mut().for_each(|given| *given *= weight);
            }
            at.show("ffn_shexp_out", "MUL", n_embd, given, options);
        }
        add(sum, given);
        at.show("ffn_out", "ADD", n_embd, sum, options);
    }
    Ok(())
}

/// Turns probabilities into weights: those of the chosen experts, 0 for the others. `buffer` is as long.
fn choose(experts: &Experts, probabilities: &mut [f32], buffer: &mut [f32]) {
    buffer.fill(0.0);
    let mut sum = 0.0f64;
    for _ in 0..experts.used {
        // What was chosen is marked. NaN is larger than nothing, and chosen when there is nothing else.
        let left = probabilities.iter_mut().zip(&mut *buffer).filter(|(p, _)| **p != f32::NEG_INFINITY);
        let Some((p, weight)) = left.reduce(|best, next| if *next.0 > *best.0 { next } else { best }) else { break };
        sum += f64::from(*p);
        *weight = core::mem::replace(p, f32::NEG_INFINITY);
    }
    if experts.normalise {
        #[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "one rounding")]
        let sum = (sum as f32).max(SMALLEST_SUM);
        buffer.iter_mut().for_each(|weight| *weight /= sum);
    }
    probabilities.copy_from_slice(buffer);
}

/// Copies the positions that have a share to the front of `gathered`, and says how many they are.
fn gather(shares: impl Iterator<Item = f32>, x: &[f32], gathered: &mut [f32], len: usize) -> usize {
    let having = x.chunks_exact(len).zip(shares).filter(|(_, share)| *share != 0.0);
    having.zip(gathered.chunks_exact_mut(len)).map(|((x, _), to)| to.copy_from_slice(x)).count()
}

/// Adds to each position that has a share what was given for it.
fn scatter(shares: impl Iterator<Item = f32>, given: &[f32], sum: &mut [f32], len: usize) {
    let having = sum.chunks_exact_mut(len).zip(shares).filter(|(_, share)| *share != 0.0);
    for ((sum, share), given) in having.zip(given.chunks_exact(len)) {
        for (sum, given) in sum.iter_mut().zip(given) {
            *sum += given * share;
        }
    }
}

/// What an expert works in.
struct Inside<'s, 'm> {
    gate: &'s mut [f32], // [positions, inside_len]
    up: &'s mut [f32],   // [positions, inside_len]
    matmul: &'s mut MatmulScratch<'m>,
}

impl Inside<'_, '_> {
    /// `out = down(act(gate x) * up x)` for `n` positions.
    fn pass(
        &mut self,
        config: &Config,
        expert: &Expert<'_>,
        x: &[f32],
        n: usize,
        out: &mut [f32],
        options: &Options<'_>,
    ) -> Result<()> {
        let (need, have) = (n.saturating_mul(expert.gate.rows()), self.gate.len().min(self.up.len()));
        let Self { gate, up, matmul } = self;
        let parts = gate.get_mut(..need).zip(up.get_mut(..need));
        let (gate, up) = parts.ok_or(Error::buffer_too_small(need, have))?;
        product(&expert.gate, x, n, gate, matmul, options)?;
        product(&expert.up, x, n, up, matmul, options)?;
        config.family().gate.apply(gate, up);
        product(&expert.down, gate, n, out, matmul, options)
    }

    fn product(&mut self, w: &Matrix<'_>, x: &[f32], n: usize, y: &mut [f32], options: &Options<'_>) -> Result<()> {
        product(w, x, n, y, self.matmul, options)
    }
}

/// `y = W x` for `n` positions.
fn product(
    w: &Matrix<'_>,
    x: &[f32],
    n: usize,
    y: &mut [f32],
    scratch: &mut MatmulScratch<'_>,
    options: &Options<'_>,
) -> Result<()> {
    matmul(w, x, n, y, options.activations, scratch, options.workers)
}
