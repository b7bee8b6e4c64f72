//! A prompt of any length, a scratch-full at a time.
#![forbid(unsafe_code)]

use super::kv::KvCache;
use super::options::{Logits, Options};
use super::scratch::Scratch;
use super::weights::{Layer, Model};
use super::{forward, steps};
use crate::error::Result;

/// [`forward`] for more tokens than the scratch was made for: in chunks of as many as it was, the last one giving the
/// logits of the last position. The result is the one that a single pass would give, bit for bit.
///
/// # Errors
/// As [`forward`], before anything is computed where the tokens, the cache's room or the length of `logits` are at fault.
/// After an error the cache holds what it held before.
pub fn prefill<'w, L: AsRef<[Layer<'w>]>, S: AsRef<[f32]> + AsMut<[f32]>>(
    model: &Model<'w, L>,
    tokens: &[u32],
    kv: &mut KvCache<S>,
    scratch: &mut Scratch<'_>,
    options: &mut Options<'_>,
    logits: &mut [f32],
) -> Result<()> {
    let start = kv.len();
    kv.check(&model.config, tokens.len())?;
    steps::check(model, start, tokens, &Logits::Last(logits))?;
    let mut chunks = tokens.chunks(scratch.positions().max(1)).peekable();
    while let Some(chunk) = chunks.next() {
        let logits = if chunks.peek().is_some() { Logits::None } else { Logits::Last(logits) };
        let done = forward(model, chunk, kv, scratch, options, logits);
        if done.is_err() {
            kv.truncate(start);
            return done;
        }
    }
    Ok(())
}
