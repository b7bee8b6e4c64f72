//! The buffers of one forward pass, carved from two of the caller's.
#![forbid(unsafe_code)]

use super::arch::{FeedForwardKind, HeadNorms};
use super::dims::Config;
use super::{attend, experts};
use crate::error::{Error, Result};
use crate::kernel::MatmulScratch;
use crate::kernel::matmul::{activations_len, transposed_len};
use crate::quant::ActivationBlock;

/// How much a [`Scratch`] takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScratchLen {
    /// `f32` values; `usize::MAX` when the number does not fit.
    pub floats: usize,
    /// Activation blocks.
    pub activations: usize,
}

/// What a forward pass over up to `positions` tokens at once works in. Nothing in it outlives the pass.
#[derive(Debug)]
pub struct Scratch<'s> {
    /// Most tokens at once.
    pub(super) positions: usize,
    /// Most positions in the cache.
    pub(super) context: usize,
    pub(super) x: &'s mut [f32],        // [positions, n_embd] the stream between layers
    pub(super) branch: &'s mut [f32],   // [positions, n_embd] what a block reads from the stream, then what it adds
    pub(super) query: &'s mut [f32],    // [positions, n_head * head_dim]
    pub(super) attended: &'s mut [f32], // [positions, n_head * head_dim]
    pub(super) gate: &'s mut [f32],     // [positions, inside_len] inside of the feed-forward network; keys before it
    pub(super) up: &'s mut [f32],       // [positions, inside_len] its other half; values before it
    pub(super) norm: &'s mut [f32],     // weights of the norm at hand
    pub(super) freqs: &'s mut [f32],    // [rope_dims / 2] divisors of the rotary embedding's frequencies
    pub(super) experts: &'s mut [f32],  // the experts' own, see experts.rs
    pub(super) tile: &'s mut [f32],     // attention's own, see attend.rs
    pub(super) matmul: MatmulScratch<'s>,
}

/// Lengths of the parts, in the order of [`Scratch`]'s fields, the products' own last.
fn parts(config: &Config, positions: usize, context: usize) -> [usize; 11] {
    let rows = |len: usize| positions.saturating_mul(len);
    let inside = config.inside_len();
    let router = config.experts.map_or(0, |experts| experts.count);
    let widest = config.query_len().max(config.kv_len()).max(config.n_embd).max(inside).max(router);
    let family = config.family();
    let up = if family.feed_forward == FeedForwardKind::Plain { 0 } else { inside };
    let head_norm = match family.head_norms {
        HeadNorms::None => 0,
        HeadNorms::Shared => config.head_dim,
        HeadNorms::OwnIfThere | HeadNorms::Whole => config.query_len(),
    };
    let sub_norm = if family.sub_norms { config.query_len().max(config.n_ff) } else { 0 };
    [
        rows(config.n_embd),
        rows(config.n_embd),
        rows(config.query_len()),
        rows(config.query_len()),
        rows(inside.max(config.kv_len())),
        rows(up.max(config.kv_len())),
        config.n_embd.max(head_norm).max(sub_norm),
        config.rope_dims.div_ceil(2),
        experts::scratch_len(config, positions),
        attend::tile_len(config, positions, context),
        transposed_len(widest, positions),
    ]
}

/// What a scratch for `positions` tokens at once over a cache of `context` positions takes.
#[must_use]
pub fn required_len(config: &Config, positions: usize, context: usize) -> ScratchLen {
    let cols = config.n_embd.max(config.query_len()).max(config.inside_len());
    ScratchLen {
        floats: parts(config, positions, context).iter().fold(0, |sum: usize, len| sum.saturating_add(*len)),
        activations: activations_len(cols, positions),
    }
}

impl<'s> Scratch<'s> {
    /// Carves the buffers. What they hold does not matter.
    ///
    /// # Errors
    /// [`Code::BufferTooSmall`](crate::Code::BufferTooSmall) when one is shorter than [`required_len`] says.
    pub fn new(
        config: &Config,
        positions: usize,
        context: usize,
        floats: &'s mut [f32],
        activations: &'s mut [ActivationBlock],
    ) -> Result<Self> {
        let need = required_len(config, positions, context);
        if floats.len() < need.floats {
            return Err(Error::buffer_too_small(need.floats, floats.len()));
        }
        if activations.len() < need.activations {
            return Err(Error::buffer_too_small(need.activations, activations.len()));
        }
        let mut rest = floats;
        let parts = parts(config, positions, context).map(|len| {
            let (part, after) = core::mem::take(&mut rest).split_at_mut_checked(len).unwrap_or_default();
            rest = after;
            part
        });
        let [x, branch, query, attended, gate, up, norm, freqs, experts, tile, transposed] = parts;
        let matmul = MatmulScratch { activations, transposed };
        Ok(Self { positions, context, x, branch, query, attended, gate, up, norm, freqs, experts, tile, matmul })
    }

    /// Most tokens that one call of [`forward`](super::forward) can take.
    #[must_use]
    pub const fn positions(&self) -> usize {
        self.positions
    }

    /// Checks that every part is long enough for `n` tokens of a model of these dimensions.
    pub(super) fn check(&self, config: &Config, n: usize, context: usize) -> Result<()> {
        if n > self.positions || context > self.context {
            let (need, have) = if n > self.positions { (n, self.positions) } else { (context, self.context) };
            return Err(Error::buffer_too_small(need, have));
        }
        let have = [
            self.x.len(),
            self.branch.len(),
            self.query.len(),
            self.attended.len(),
            self.gate.len(),
            self.up.len(),
            self.norm.len(),
            self.freqs.len(),
            self.experts.len(),
            self.tile.len(),
            self.matmul.transposed.len(),
        ];
        let need = parts(config, n, context);
        match need.iter().zip(have).find(|(need, have)| **need > *have) {
            Some((need, have)) => Err(Error::buffer_too_small(*need, have)),
            None => Ok(()),
        }
    }
}
