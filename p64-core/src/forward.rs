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
pub use dims::Config;
pub use experts::Mixture;
pub use kv::{KvCache, KvType, KvTypes};
pub use options::{Logits, Options, argmax};
pub use parameter::{Parameter, subject};
pub use prefill::prefill;
pub use probe::{Node, Probe};
pub use scratch::{Scratch, ScratchLen};
pub use weights::{Layer, Model, Weight, WeightSource};

use crate::error::Result;
#[cfg(doc)]
use crate::error::{Code, Place};
use steps::{add, keep_last, load, norm, norm_in_place, product, rotate};

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
    steps::check(model, tokens, &logits)?;

    embed(model, tokens, scratch, options)?;
    load(model.rope_freqs.as_ref(), scratch.freqs)?;
    let layers = model.layers.as_ref();
    for (index, layer) in layers.iter().enumerate() {
        let at = At { config, layer: index, n, start, freqs: model.rope_freqs.is_some() };
        attention(&at, layer, kv, scratch, options)?;
        if index + 1 == layers.len() {
            // After the last layer's attention the positions are independent, and only some are asked for.
            n = keep_last(config, scratch, n, logits.positions(n));
            if n == 0 {
                break;
            }
        }
        feed_forward(&At { n, ..at }, layer, scratch, options)?;
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

/// Fills the stream with the tokens' embeddings.
fn embed<L>(model: &Model<'_, L>, tokens: &[u32], scratch: &mut Scratch<'_>, options: &mut Options<'_>) -> Result<()> {
    let config = &model.config;
    let x = &mut scratch.x[..tokens.len() * config.n_embd];
    for (x, token) in x.chunks_exact_mut(config.n_embd).zip(tokens) {
        model.token_embd.dequantize_row(*token as usize, x)?;
    }
    options.show("embd", "GET_ROWS", None, config.n_embd, x);
    if config.embedding_scale != 1.0 {
        x.iter_mut().for_each(|x| *x *= config.embedding_scale);
        options.show("inp_scaled", "SCALE", None, config.n_embd, x);
    }
    Ok(())
}

/// The first half of a layer: `x += output(attend(q(norm(x)), k(norm(x)), v(norm(x))))`.
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
    let keys = &mut scratch.keys[..n * kv_len];
    let values = &mut scratch.values[..n * kv_len];
    let show = |name, op, row_len, values: &[f32], options: &mut Options<'_>| {
        options.show(name, op, Some(at.layer), row_len, values);
    };

    norm(config, &layer.attn_norm, x, scratch.norm, branch)?;
    show("attn_norm", "MUL", n_embd, branch, options);

    product(&layer.attn_q, branch, n, query, &mut scratch.matmul, options)?;
    show("Qcur", "MUL_MAT", query_len, query, options);
    product(&layer.attn_k, branch, n, keys, &mut scratch.matmul, options)?;
    show("Kcur", "MUL_MAT", kv_len, keys, options);
    product(&layer.attn_v, branch, n, values, &mut scratch.matmul, options)?;
    show("Vcur", "MUL_MAT", kv_len, values, options);

    if let Some(weight) = &layer.attn_q_norm {
        norm_in_place(config, weight, scratch.norm, query)?;
        show("Qcur_normed", "MUL", head_dim, query, options);
    }
    if let Some(weight) = &layer.attn_k_norm {
        norm_in_place(config, weight, scratch.norm, keys)?;
        show("Kcur_normed", "MUL", head_dim, keys, options);
    }
    let freqs = at.freqs.then_some(&*scratch.freqs);
    rotate(config, &span, freqs, start, query_len, query);
    show("Qcur", "ROPE", head_dim, query, options);
    rotate(config, &span, freqs, start, kv_len, keys);
    show("Kcur", "ROPE", head_dim, keys, options);

    kv.store(at.layer, start, keys, values);
    attend::attend(at, span.window, query, kv.layer(at.layer), scratch.tile, attended, options.workers);
    show("kqv_out", "CONT", query_len, attended, options);
    Ok(())
}

/// The second half of a layer: attention's output joins the stream, then `x += down(act(gate(norm(x))) * up(norm(x)))`.
fn feed_forward(at: &At<'_>, layer: &Layer<'_>, scratch: &mut Scratch<'_>, options: &mut Options<'_>) -> Result<()> {
    let At { config, n, .. } = *at;
    let (family, n_embd, n_ff) = (config.family(), config.n_embd, config.n_ff);
    let x = &mut scratch.x[..n * n_embd];
    let branch = &mut scratch.branch[..n * n_embd];
    let attended = &scratch.attended[..n * config.query_len()];
    let gate = &mut scratch.gate[..n * n_ff];
    let up = &mut scratch.up[..n * n_ff];
    let show = |name, op, row_len, values: &[f32], options: &mut Options<'_>| {
        options.show(name, op, Some(at.layer), row_len, values);
    };

    product(&layer.attn_output, attended, n, branch, &mut scratch.matmul, options)?;
    show("attn_out", "MUL_MAT", n_embd, branch, options);
    if let Some(weight) = &layer.post_attention_norm {
        norm_in_place(config, weight, scratch.norm, branch)?;
        show("attn_post_norm", "MUL", n_embd, branch, options);
    }
    add(x, branch);
    show(family.attention_node, "ADD", n_embd, x, options);

    norm(config, &layer.ffn_norm, x, scratch.norm, branch)?;
    show("ffn_norm", "MUL", n_embd, branch, options);
    product(&layer.ffn_gate, branch, n, gate, &mut scratch.matmul, options)?;
    show("ffn_gate", "MUL_MAT", n_ff, gate, options);
    product(&layer.ffn_up, branch, n, up, &mut scratch.matmul, options)?;
    show("ffn_up", "MUL_MAT", n_ff, up, options);
    family.gate.apply(gate, up);
    show(family.gate_node, "GLU", n_ff, gate, options);
    product(&layer.ffn_down, gate, n, branch, &mut scratch.matmul, options)?;
    show("ffn_out", "MUL_MAT", n_embd, branch, options);
    if let Some(weight) = &layer.post_ffw_norm {
        norm_in_place(config, weight, scratch.norm, branch)?;
        show("ffn_post_norm", "MUL", n_embd, branch, options);
    }
    add(x, branch);
    show("l_out", "ADD", n_embd, x, options);
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
    norm(config, &model.output_norm, &scratch.x[..n * config.n_embd], scratch.norm, branch)?;
    options.show("result_norm", "MUL", None, config.n_embd, branch);
    // As many positions at once as the products' scratch was made for; a vocabulary is far longer than a layer is wide.
    let tile = (scratch.matmul.transposed.len() / n_vocab).max(1);
    for (logits, branch) in logits.chunks_mut(tile * n_vocab).zip(branch.chunks(tile * config.n_embd)) {
        product(&model.output, branch, logits.len() / n_vocab, logits, &mut scratch.matmul, options)?;
    }
    options.show("result_output", "MUL_MAT", None, n_vocab, logits);
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
