//! The transformer: tokens in, logits out, on the caller's buffers.
//!
//! ```text
//! Metadata -> Config       dims.rs      dimensions and constants, checked
//! tensors  -> Model        weights.rs   matrices bound to their places, shapes checked
//!             KvCache      kv.rs        keys and values of the positions so far
//!             Scratch      scratch.rs   what a pass works in
//! forward(model, tokens, kv, scratch, options, logits)
//! ```
//!
//! There is one pass for all families, for prefill (many tokens) and decode (one). What differs between families is data
//! in [`arch`]. A token's result does not depend on how many are passed at once, nor on the workers, bit for bit.
//!
//! Buffers hold positions one after the other; `[n, len]` stands for `n` positions of `len` values.
#![forbid(unsafe_code)]

pub mod arch;
mod attend;
pub mod dims;
mod experts;
pub mod kv;
mod options;
pub mod parameter;
mod prefill;
mod probe;
pub mod scratch;
mod source;
mod steps;
pub mod weights;

pub use arch::{Architecture, Family};
pub use dims::{Config, Experts, Rotation, Span};
pub use kv::{KvCache, KvType, KvTypes};
pub use options::{Logits, Options, argmax};
pub use parameter::{Parameter, subject};
pub use prefill::prefill;
pub use probe::{Node, Probe};
pub use scratch::{Scratch, ScratchLen};
pub use weights::{ExpertTensors, FeedForward, Layer, Linear, Model, Norm, Vector, Weight, WeightSource};

use crate::error::Result;
#[cfg(doc)]
use crate::error::{Code, Place};
use crate::kernel::generic::activation::softcap;
use arch::HeadNorms;
use steps::{add, keep_last, load, norm, norm_in_place, product, rotate, scale};

/// Passes `tokens` through the model at the positions after those in `kv`, which then holds theirs too.
///
/// After an error the cache holds what it held before.
///
/// # Errors
/// [`Code::TokenRange`] for an id past the vocabulary (at [`Place::Token`], counted in `tokens`), [`Code::ContextFull`]
/// when `kv` has no room, [`Code::BufferTooSmall`] when `scratch` was made for fewer tokens or positions,
/// [`Code::LengthMismatch`] when `logits` has not the length it needs or `tokens` is empty.
pub fn forward<'w, L: AsRef<[Layer<'w>]>, S: AsRef<[f32]> + AsMut<[f32]>>(
    model: &Model<'w, L>,
    tokens: &[u32],
    kv: &mut KvCache<S>,
    scratch: &mut Scratch<'_>,
    options: &mut Options<'_>,
    logits: Logits<'_>,
) -> Result<()> {
    let config = &model.config;
    let (mut n, start) = (tokens.len(), kv.len());
    kv.check(config, n)?;
    scratch.check(config, n, kv.capacity())?;
    steps::check(model, start, tokens, &logits)?;

    embed(model, tokens, start, scratch, options)?;
    let freqs = model.rope_factors.of(config, kv.capacity());
    if let Some(freqs) = &freqs {
        load(freqs, scratch.freqs)?;
    }
    let layers = model.layers.as_ref();
    for (index, layer) in layers.iter().enumerate() {
        let at = At { config, layer: index, n, start, freqs: freqs.is_some() };
        attention(&at, layer, kv, scratch, options)?;
        if index + 1 == layers.len() {
            // After the last layer's attention the positions are independent, and only some are asked for.
            n = keep_last(config, scratch, n, logits.positions(n));
            if n == 0 {
                break;
            }
        }
        let at = At { n, ..at };
        if layer.is_parallel(config.architecture) {
            // The branch still holds what attention read.
            inner(&at, &layer.feed_forward, scratch, options)?;
            join_attention(&at, layer, scratch, options)?;
        } else {
            join_attention(&at, layer, scratch, options)?;
            second_norm(&at, layer, scratch, options)?;
            inner(&at, &layer.feed_forward, scratch, options)?;
        }
        join_feed_forward(&at, layer, scratch, options)?;
    }
    output(model, n, scratch, options, logits)?;
    kv.advance(tokens.len());
    Ok(())
}

/// Where in the pass a block runs.
#[derive(Clone, Copy)]
struct At<'m> {
    config: &'m Config,
    layer: usize,
    /// Positions of this pass.
    n: usize,
    /// The first one's place in the cache.
    start: usize,
    /// Whether the model has divisors of the rotary embedding's frequencies.
    freqs: bool,
}

impl At<'_> {
    /// Shows the probe an intermediate of this layer.
    fn show(&self, name: &'static str, op: &'static str, row_len: usize, values: &[f32], options: &mut Options<'_>) {
        options.show(name, op, Some(self.layer), row_len, values);
    }
}

/// Fills the stream with the tokens' embeddings, the first token being at position `start`.
fn embed<L>(
    model: &Model<'_, L>,
    tokens: &[u32],
    start: usize,
    scratch: &mut Scratch<'_>,
    options: &mut Options<'_>,
) -> Result<()> {
    let config = &model.config;
    let x = &mut scratch.x[..tokens.len() * config.n_embd];
    for (x, token) in x.chunks_exact_mut(config.n_embd).zip(tokens) {
        model.token_embd.dequantize_row(*token as usize, x)?;
    }
    options.show("embd", "GET_ROWS", None, config.n_embd, x);
    if config.embedding_scale != 1.0 {
        scale(x, config.embedding_scale);
        options.show("inp_scaled", "SCALE", None, config.n_embd, x);
    }
    if let Some(embd) = model.position_embd() {
        let learned = &mut scratch.branch[..config.n_embd];
        for (position, x) in (start..).zip(x.chunks_exact_mut(config.n_embd)) {
            embd.dequantize_row(position, learned)?;
            add(x, learned);
        }
        options.show("inpL", "ADD", None, config.n_embd, x);
    }
    Ok(())
}

/// What the queries of a layer see: `attended = attend(q(norm(x)), k(norm(x)), v(norm(x)))`.
fn attention<S: AsRef<[f32]> + AsMut<[f32]>>(
    at: &At<'_>,
    layer: &Layer<'_>,
    kv: &mut KvCache<S>,
    scratch: &mut Scratch<'_>,
    options: &mut Options<'_>,
) -> Result<()> {
    let At { config, n, start, .. } = *at;
    let (n_embd, query_len, kv_len, head_dim) = (config.n_embd, config.query_len(), config.kv_len(), config.head_dim);
    let span = config.span(at.layer);
    let x = &mut scratch.x[..n * n_embd];
    let branch = &mut scratch.branch[..n * n_embd];
    let query = &mut scratch.query[..n * query_len];
    let attended = &mut scratch.attended[..n * query_len];
    // The feed-forward network's buffers are free until it is its turn.
    let keys = &mut scratch.gate[..n * kv_len];
    let values = &mut scratch.up[..n * kv_len];

    norm(config, layer.attn_norm.as_ref(), x, scratch.norm, branch)?;
    at.show("attn_norm", "MUL", n_embd, branch, options);

    product(&layer.attn_q, branch, n, query, &mut scratch.matmul, options)?;
    at.show("Qcur", "MUL_MAT", query_len, query, options);
    product(&layer.attn_k, branch, n, keys, &mut scratch.matmul, options)?;
    at.show("Kcur", "MUL_MAT", kv_len, keys, options);
    product(&layer.attn_v, branch, n, values, &mut scratch.matmul, options)?;
    at.show("Vcur", "MUL_MAT", kv_len, values, options);

    let whole = config.family().head_norms == HeadNorms::Whole;
    let width = |len| if whole { len } else { head_dim };
    if let Some(weight) = &layer.attn_q_norm {
        norm_in_place(config, weight, width(query_len), scratch.norm, query)?;
        at.show("Qcur_normed", "MUL", width(query_len), query, options);
    }
    if let Some(weight) = &layer.attn_k_norm {
        norm_in_place(config, weight, width(kv_len), scratch.norm, keys)?;
        at.show("Kcur_normed", "MUL", width(kv_len), keys, options);
    }
    if let Some(rotation) = &span.rope {
        let freqs = at.freqs.then_some(&*scratch.freqs);
        rotate(at, rotation, freqs, query_len, query);
        at.show("Qcur", "ROPE", head_dim, query, options);
        rotate(at, rotation, freqs, kv_len, keys);
        at.show("Kcur", "ROPE", head_dim, keys, options);
    }

    kv.store(at.layer, start, keys, values);
    attend::attend(at, span.window, query, kv.layer(at.layer), scratch.tile, attended, options.workers);
    at.show("kqv_out", "CONT", query_len, attended, options);
    Ok(())
}

/// What was attended joins the stream: `x += output(attended)`.
fn join_attention(at: &At<'_>, layer: &Layer<'_>, scratch: &mut Scratch<'_>, options: &mut Options<'_>) -> Result<()> {
    let At { config, n, .. } = *at;
    let (family, n_embd, query_len) = (config.family(), config.n_embd, config.query_len());
    let x = &mut scratch.x[..n * n_embd];
    let branch = &mut scratch.branch[..n * n_embd];
    let attended = &mut scratch.attended[..n * query_len];

    if let Some(weight) = layer.attn_sub_norm.as_ref().filter(|_| family.sub_norms) {
        norm_in_place(config, weight, query_len, scratch.norm, attended)?;
        at.show("attn_sub_norm", "MUL", query_len, attended, options);
    }
    product(&layer.attn_output, attended, n, branch, &mut scratch.matmul, options)?;
    at.show("attn_out", "MUL_MAT", n_embd, branch, options);
    if let Some(weight) = &layer.post_attention_norm {
        norm_in_place(config, weight, n_embd, scratch.norm, branch)?;
        at.show("attn_post_norm", "MUL", n_embd, branch, options);
    }
    scale(branch, config.residual_scale);
    add(x, branch);
    at.show(family.attention_node, "ADD", n_embd, x, options);
    Ok(())
}

/// What the feed-forward network reads: `branch = norm(x)`.
fn second_norm(at: &At<'_>, layer: &Layer<'_>, scratch: &mut Scratch<'_>, options: &mut Options<'_>) -> Result<()> {
    let (config, len) = (at.config, at.n * at.config.n_embd);
    let branch = &mut scratch.branch[..len];
    norm(config, layer.ffn_norm.as_ref(), &scratch.x[..len], scratch.norm, branch)?;
    at.show("ffn_norm", "MUL", config.n_embd, branch, options);
    Ok(())
}

/// The inside of the feed-forward network: `gate = act(gate(branch)) * up(branch)`. Experts are passed through as a whole.
fn inner(at: &At<'_>, network: &FeedForward<'_>, scratch: &mut Scratch<'_>, options: &mut Options<'_>) -> Result<()> {
    let At { config, n, .. } = *at;
    let (family, n_ff) = (config.family(), config.n_ff);
    let branch = &scratch.branch[..n * config.n_embd];
    let inner = &mut scratch.gate[..n * n_ff];
    match network {
        FeedForward::Gated { gate, up: projection, .. } => {
            let up = &mut scratch.up[..n * n_ff];
            product(gate, branch, n, inner, &mut scratch.matmul, options)?;
            at.show("ffn_gate", "MUL_MAT", n_ff, inner, options);
            product(projection, branch, n, up, &mut scratch.matmul, options)?;
            at.show("ffn_up", "MUL_MAT", n_ff, up, options);
            family.gate.apply(inner, up);
        }
        FeedForward::Plain { up, .. } => {
            product(up, branch, n, inner, &mut scratch.matmul, options)?;
            at.show("ffn_up", "MUL_MAT", n_ff, inner, options);
            family.gate.apply_alone(inner);
        }
        FeedForward::Experts(tensors) => return experts::feed_forward(at, tensors, scratch, options),
    }
    at.show(family.gate_node, "GLU", n_ff, inner, options);
    Ok(())
}

/// What the feed-forward network gives joins the stream: `x += down(gate)`.
fn join_feed_forward(
    at: &At<'_>,
    layer: &Layer<'_>,
    scratch: &mut Scratch<'_>,
    options: &mut Options<'_>,
) -> Result<()> {
    let At { config, n, .. } = *at;
    let (n_embd, n_ff) = (config.n_embd, config.n_ff);
    let x = &mut scratch.x[..n * n_embd];
    let branch = &mut scratch.branch[..n * n_embd];
    let inner = &mut scratch.gate[..n * n_ff];

    if let Some(weight) = layer.ffn_sub_norm.as_ref().filter(|_| config.family().sub_norms) {
        norm_in_place(config, weight, n_ff, scratch.norm, inner)?;
        at.show("ffn_sub_norm", "MUL", n_ff, inner, options);
    }
    match &layer.feed_forward {
        FeedForward::Gated { down, .. } | FeedForward::Plain { down, .. } => {
            product(down, inner, n, branch, &mut scratch.matmul, options)?;
            at.show("ffn_out", "MUL_MAT", n_embd, branch, options);
        }
        FeedForward::Experts(_) => branch.copy_from_slice(&scratch.experts[..n * n_embd]),
    }
    if let Some(weight) = &layer.post_ffw_norm {
        norm_in_place(config, weight, n_embd, scratch.norm, branch)?;
        at.show("ffn_post_norm", "MUL", n_embd, branch, options);
    }
    scale(branch, config.residual_scale);
    add(x, branch);
    at.show("l_out", "ADD", n_embd, x, options);
    Ok(())
}

/// The logits of the positions kept in the stream.
fn output<L>(
    model: &Model<'_, L>,
    n: usize,
    scratch: &mut Scratch<'_>,
    options: &mut Options<'_>,
    logits: Logits<'_>,
) -> Result<()> {
    let (config, n_vocab) = (&model.config, model.n_vocab());
    let (Logits::Last(logits) | Logits::All(logits)) = logits else { return Ok(()) };
    let branch = &mut scratch.branch[..n * config.n_embd];
    norm(config, Some(&model.output_norm), &scratch.x[..n * config.n_embd], scratch.norm, branch)?;
    options.show("result_norm", "MUL", None, config.n_embd, branch);
    // As many positions at once as the products' scratch was made for; a vocabulary is far longer than a layer is wide.
    let tile = (scratch.matmul.transposed.len() / n_vocab).max(1);
    for (logits, branch) in logits.chunks_mut(tile * n_vocab).zip(branch.chunks(tile * config.n_embd)) {
        product(&model.output, branch, logits.len() / n_vocab, logits, &mut scratch.matmul, options)?;
    }
    scale(logits, config.logit_scale);
    if let Some(cap) = config.final_softcap {
        softcap(logits, cap);
    }
    options.show("result_output", "MUL_MAT", None, n_vocab, logits);
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
