//! The steps of the pass that are more than a call of a kernel.
#![forbid(unsafe_code)]

use super::dims::{Config, Span};
use super::options::{Logits, Options};
use super::scratch::Scratch;
use super::weights::Model;
use crate::error::{Code, Error, Place, Result};
use crate::kernel::generic::rmsnorm::{rmsnorm, rmsnorm_heads};
use crate::kernel::generic::rope::Rope;
use crate::kernel::{MatmulScratch, Matrix, matmul};

/// Checks what the caller passed for this pass alone.
pub(super) fn check<L>(model: &Model<'_, L>, tokens: &[u32], logits: &Logits<'_>) -> Result<()> {
    let n_vocab = model.n_vocab();
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

/// The values of a one-row matrix, at the front of `buffer`.
pub(super) fn load<'b>(weight: Option<&Matrix<'_>>, buffer: &'b mut [f32]) -> Result<&'b [f32]> {
    let Some(weight) = weight else { return Ok(&[]) };
    let have = buffer.len();
    let values = buffer.get_mut(..weight.cols()).ok_or(Error::buffer_too_small(weight.cols(), have))?;
    weight.dequantize_row(0, values)?;
    Ok(values)
}

/// `out = norm(x)`, position by position.
pub(super) fn norm(config: &Config, weight: &Matrix<'_>, x: &[f32], buffer: &mut [f32], out: &mut [f32]) -> Result<()> {
    let weight = load(Some(weight), buffer)?;
    for (x, out) in x.chunks_exact(weight.len()).zip(out.chunks_exact_mut(weight.len())) {
        rmsnorm(x, weight, config.norm_epsilon, out);
    }
    Ok(())
}

/// `x = norm(x)`, position by position, or head by head when the weight is as long as a head.
pub(super) fn norm_in_place(config: &Config, weight: &Matrix<'_>, buffer: &mut [f32], x: &mut [f32]) -> Result<()> {
    rmsnorm_heads(x, load(Some(weight), buffer)?, config.norm_epsilon);
    Ok(())
}

/// `y = W x` for `n` positions.
pub(super) fn product(
    w: &Matrix<'_>,
    x: &[f32],
    n: usize,
    y: &mut [f32],
    scratch: &mut MatmulScratch<'_>,
    options: &Options<'_>,
) -> Result<()> {
    matmul(w, x, n, y, options.activations, scratch, options.workers)
}

/// Turns the heads of `x` (n x `len`), whose first position is `start`.
pub(super) fn rotate(config: &Config, span: &Span, freqs: Option<&[f32]>, start: usize, len: usize, x: &mut [f32]) {
    let rope = Rope {
        head_dim: config.head_dim,
        rope_dim: config.rope_dims,
        pairing: config.family().pairing,
        freq_base: span.rope_base,
        freq_scale: span.rope_scale,
        freq_factors: freqs,
    };
    for (position, x) in (start..).zip(x.chunks_exact_mut(len)) {
        rope.apply(x, position);
    }
}

/// `x += branch`.
pub(super) fn add(x: &mut [f32], branch: &[f32]) {
    for (x, branch) in x.iter_mut().zip(branch) {
        *x += branch;
    }
}

/// Moves the last `keep` of `n` positions of the stream and of attention's result to the front.
pub(super) fn keep_last(config: &Config, scratch: &mut Scratch<'_>, n: usize, keep: usize) -> usize {
    for (buffer, len) in [(&mut *scratch.x, config.n_embd), (&mut *scratch.attended, config.query_len())] {
        buffer.copy_within((n - keep) * len..n * len, 0);
    }
    keep
}
