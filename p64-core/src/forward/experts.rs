//! Mixtures of experts: a feed-forward network that is chosen token by token.
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
use super::dims::Config;
use super::options::Options;
use super::steps::{add, product};
use super::weights::experts::{Experts, Network};
use crate::error::{Error, Result};
use crate::kernel::MatmulScratch;
use crate::kernel::generic::softmax::softmax;

/// The experts of a model, as its metadata and its family give them.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Mixture {
    /// Experts of a layer.
    pub count: usize,
    /// Experts that a token uses, from 1 to `count`.
    pub used: usize,
    /// Length of an expert's inside.
    pub ff: usize,
    /// Length of the inside of the network that every token passes as well; 0 where there is none.
    pub shared_ff: usize,
    /// Whether that network's result has a factor of its own (`ffn_gate_inp_shexp`).
    pub shared_gate: bool,
    /// Whether the weights of the chosen experts are divided by their sum.
    pub normalised: bool,
}

/// The smallest sum of weights that is divided by: f16's smallest normal number, as in GGML.
const SMALLEST_SUM: f32 = 1.0 / 16384.0;

/// What the networks of a pass work in: the inside of a network, n times.
pub(super) struct Inside<'s, 'm> {
    /// At least n x the longest inside.
    pub gate: &'s mut [f32],
    /// As long as `gate`.
    pub up: &'s mut [f32],
    pub matmul: &'s mut MatmulScratch<'m>,
}

/// Lengths of the buffers that [`feed_forward`] carves.
const fn parts(config: &Config, mixture: &Mixture, n: usize) -> [usize; 5] {
    let stream = n.saturating_mul(config.n_embd);
    [n.saturating_mul(mixture.count), mixture.count, stream, stream, stream]
}

/// Values that the experts of `n` positions take besides those that every feed-forward network does.
pub(super) fn scratch_len(config: &Config, n: usize) -> usize {
    let sum = |mixture| parts(config, mixture, n).iter().fold(0, |sum: usize, len| sum.saturating_add(*len));
    config.mixture.as_ref().map_or(0, sum)
}

/// `branch = y(branch)`, position by position. `scratch` is at least [`scratch_len`] long.
pub(super) fn feed_forward(
    at: &At<'_>,
    experts: &Experts<'_>,
    branch: &mut [f32],
    inside: &mut Inside<'_, '_>,
    scratch: &mut [f32],
    options: &mut Options<'_>,
) -> Result<()> {
    let (config, n, n_embd, layer) = (at.config, at.n, at.config.n_embd, Some(at.layer));
    let Some(mixture) = &config.mixture else { return Ok(()) };
    let short = Error::buffer_too_small(scratch_len(config, n), scratch.len());
    let mut rest = scratch;
    let [weights, chosen, gathered, given, sum] = parts(config, mixture, n).map(|len| {
        let (part, after) = core::mem::take(&mut rest).split_at_mut_checked(len).unwrap_or_default();
        rest = after;
        part
    });
    if sum.len() != branch.len() {
        return Err(short);
    }

    product(&experts.router(config, mixture)?, branch, n, weights, inside.matmul, options)?;
    options.show("ffn_moe_logits", "MUL_MAT", layer, mixture.count, weights);
    weights.chunks_exact_mut(mixture.count).for_each(softmax);
    options.show("ffn_moe_probs", "SOFT_MAX", layer, mixture.count, weights);
    weights.chunks_exact_mut(mixture.count).for_each(|weights| choose(mixture, weights, chosen));

    sum.fill(0.0);
    for expert in 0..mixture.count {
        // The expert's share in each position.
        let shares = || weights.iter().skip(expert).step_by(mixture.count).copied();
        let m = gather(shares(), branch, gathered, n_embd);
        let (Some(x), Some(given)) = (gathered.get(..m * n_embd), given.get_mut(..m * n_embd)) else { continue };
        if m > 0 {
            run(config, &experts.expert(config, mixture, expert)?, x, m, given, inside, options)?;
            scatter(shares(), given, sum, n_embd);
        }
    }
    options.show("ffn_moe_out", "ADD", layer, n_embd, sum);

    if let Some(shared) = experts.shared(config, mixture)? {
        run(config, &shared.network, branch, n, given, inside, options)?;
        options.show("ffn_shexp", "MUL_MAT", layer, n_embd, given);
        if let Some(router) = &shared.router {
            let Some(factors) = weights.get_mut(..n) else { return Err(short) };
            product(router, branch, n, factors, inside.matmul, options)?;
            for (given, factor) in given.chunks_exact_mut(n_embd).zip(factors) {
                let factor = 1.0 / (1.0 + libm::expf(-*factor));
                given.iter_mut().for_each(|given| *given *= factor);
            }
            options.show("ffn_shexp_out", "MUL", layer, n_embd, given);
        }
        add(sum, given);
        options.show("ffn_out", "ADD", layer, n_embd, sum);
    }
    branch.copy_from_slice(sum);
    Ok(())
}

/// Turns probabilities into weights: those of the chosen experts, 0 for the others. `buffer` is as long.
fn choose(mixture: &Mixture, probabilities: &mut [f32], buffer: &mut [f32]) {
    buffer.fill(0.0);
    let mut sum = 0.0f64;
    for _ in 0..mixture.used {
        // What was chosen is marked. NaN is larger than nothing, and chosen when there is nothing else.
        let left = probabilities.iter_mut().zip(&mut *buffer).filter(|(p, _)| **p != f32::NEG_INFINITY);
        let Some((p, slot)) = left.reduce(|best, next| if *next.0 > *best.0 { next } else { best }) else { break };
        sum += f64::from(*p);
        *slot = core::mem::replace(p, f32::NEG_INFINITY);
    }
    if mixture.normalised {
        #[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "one rounding")]
        let sum = (sum as f32).max(SMALLEST_SUM);
        buffer.iter_mut().for_each(|weight| *weight /= sum);
    }
    probabilities.copy_from_slice(buffer);
}

/// Copies the positions that have a share to the front of `gathered`, and says how many they are.
fn gather(shares: impl Iterator<Item = f32>, x: &[f32], gathered: &mut [f32], len: usize) -> usize {
    let having = x.chunks_exact(len).zip(shares).filter(|(_, share)| *share != 0.0);
    having.zip(gathered.chunks_exact_mut(len)).map(|((x, _), slot)| slot.copy_from_slice(x)).count()
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

/// `out = down(act(gate x) * up x)` for `n` positions.
fn run(
    config: &Config,
    network: &Network<'_>,
    x: &[f32],
    n: usize,
    out: &mut [f32],
    inside: &mut Inside<'_, '_>,
    options: &Options<'_>,
) -> Result<()> {
    let (need, have) = (n.saturating_mul(network.gate.rows()), inside.gate.len().min(inside.up.len()));
    let parts = inside.gate.get_mut(..need).zip(inside.up.get_mut(..need));
    let (gate, up) = parts.ok_or(Error::buffer_too_small(need, have))?;
    product(&network.gate, x, n, gate, inside.matmul, options)?;
    product(&network.up, x, n, up, inside.matmul, options)?;
    config.family().gate.apply(gate, up);
    product(&network.down, gate, n, out, inside.matmul, options)
}
