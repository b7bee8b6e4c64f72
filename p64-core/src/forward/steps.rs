//! The steps of the pass that are more than a call of a kernel.
#![forbid(unsafe_code)]

use super::At;
use super::arch::{ALL_FAMILIES, NormKind, Positions};
use super::dims::{Config, Rotation};
use super::options::{Logits, Options};
use super::scratch::Scratch;
use super::weights::{Linear, Model, Norm, Vector};
use crate::error::{Code, Error, Place, Result};
use crate::kernel::generic::layernorm::layernorm_in_place;
use crate::kernel::generic::rmsnorm::rmsnorm_in_place;
use crate::kernel::generic::rope::Rope;
use crate::kernel::{MatmulScratch, matmul};

/// Checks what the caller passed for this pass alone.
pub(super) fn check<L>(model: &Model<'_, L>, start: usize, tokens: &[u32], logits: &Logits<'_>) -> Result<()> {
    let n_vocab = model.n_vocab();
    // Where positions are learned, there are no more than were.
    let end = start.saturating_add(tokens.len());
    if let Some(positions) = model.position_embd().map(|embd| embd.rows()).filter(|positions| end > *positions) {
        let last = end.saturating_sub(1);
        return Err(Error::new(Code::ContextFull, Place::File).values(positions as u64, last as u64));
    }
    if tokens.is_empty() {
        return Err(Error::new(Code::LengthMismatch, Place::File).values(1, 0));
    }
    if let Some((at, id)) = (0..).zip(tokens).find(|(_, id)| usize::try_from(**id).is_ok_and(|id| id >= n_vocab)) {
        return Err(Error::new(Code::TokenRange, Place::Token(at)).values(n_vocab as u64, u64::from(*id)));
    }
    let (need, have) = match logits {
        Logits::None => (0, 0),
        Logits::Last(logits) => (n_vocab, logits.len()),
        Logits::All(logits) => (n_vocab.saturating_mul(tokens.len()), logits.len()),
    };
    if need == have {
        Ok(())
    } else {
        Err(Error::new(Code::LengthMismatch, Place::File).values(need as u64, have as u64))
    }
}

/// The values of a vector, at the front of `buffer`.
pub(super) fn load<'b>(vector: &Vector<'_>, buffer: &'b mut [f32]) -> Result<&'b [f32]> {
    let have = buffer.len();
    let values = buffer.get_mut(..vector.len()).ok_or(Error::buffer_too_small(vector.len(), have))?;
    for (value, weight) in values.iter_mut().zip(vector.values()) {
        *value = weight;
    }
    Ok(values)
}

/// `out = norm(x)`, position by position; `out = x` where there is no norm.
pub(super) fn norm(
    config: &Config,
    norm: Option<&Norm<'_>>,
    x: &[f32],
    buffer: &mut [f32],
    out: &mut [f32],
) -> Result<()> {
    out.copy_from_slice(x);
    let Some(Norm { weight, bias }) = norm else { return Ok(()) };
    norm_in_place(config, weight, weight.len(), buffer, out)?;
    if let Some(bias) = bias {
        add_to_each(out, bias);
    }
    Ok(())
}

/// Norms every `width` values of `x` by themselves, with as many weights for each in turn.
pub(super) fn norm_in_place(
    config: &Config,
    weight: &Vector<'_>,
    width: usize,
    buffer: &mut [f32],
    x: &mut [f32],
) -> Result<()> {
    let norm = match config.family().norm {
        NormKind::Rms => rmsnorm_in_place,
        NormKind::Layer => layernorm_in_place,
    };
    let weight = load(weight, buffer)?;
    for x in x.chunks_exact_mut(weight.len()) {
        for (x, weight) in x.chunks_exact_mut(width).zip(weight.chunks_exact(width)) {
            norm(x, weight, config.norm_epsilon);
        }
    }
    Ok(())
}

/// `y = scale * (W x + bias)` for `n` positions.
pub(super) fn product(
    linear: &Linear<'_>,
    x: &[f32],
    n: usize,
    y: &mut [f32],
    scratch: &mut MatmulScratch<'_>,
    options: &Options<'_>,
) -> Result<()> {
    matmul(&linear.weight, x, n, y, options.activations, scratch, options.workers)?;
    if let Some(bias) = &linear.bias {
        add_to_each(y, bias);
    }
    scale(y, linear.scale);
    Ok(())
}

/// Turns the heads of `x` (n x `len`), whose first position is `start`.
pub(super) fn rotate(at: &At<'_>, rotation: &Rotation, freqs: Option<&[f32]>, len: usize, x: &mut [f32]) {
    let config = at.config;
    let Positions::Rotary(pairing) = config.family().positions else { return };
    let rope = Rope {
        head_dim: config.head_dim,
        rope_dim: config.rope_dims,
        pairing,
        freq_base: rotation.base,
        freq_scale: rotation.scale,
        freq_factors: freqs,
        yarn: rotation.yarn.filter(|_| ALL_FAMILIES),
        magnitude: rotation.magnitude,
    };
    for (position, x) in (at.start..).zip(x.chunks_exact_mut(len)) {
        rope.apply(x, position);
    }
}

/// `x *= factor`.
pub(super) fn scale(x: &mut [f32], factor: f32) {
    if factor != 1.0 {
        x.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Adds a bias to every position's values.
fn add_to_each(x: &mut [f32], bias: &Vector<'_>) {
    for x in x.chunks_exact_mut(bias.len().max(1)) {
        for (x, bias) in x.iter_mut().zip(bias.values()) {
            *x += bias;
        }
    }
}

/// `x += branch`.
pub(super) fn add(x: &mut [f32], branch: &[f32]) {
    for (x, branch) in x.iter_mut().zip(branch) {
        *x += branch;
    }
}

/// Moves the last `keep` of `n` positions of the stream, of the branch and of attention's result to the front.
pub(super) fn keep_last(config: &Config, scratch: &mut Scratch<'_>, n: usize, keep: usize) -> usize {
    let (embd, query) = (config.n_embd, config.query_len());
    let Scratch { x, branch, attended, .. } = scratch;
    for (buffer, len) in [(&mut **x, embd), (&mut **branch, embd), (&mut **attended, query)] {
        buffer.copy_within((n - keep) * len..n * len, 0);
    }
    keep
}
