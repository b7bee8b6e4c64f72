//! Perplexity of a model on a text, as llama.cpp's `llama-perplexity` computes it without options.
//!
//! The text is cut into windows of `context` tokens, and what is left over is not looked at. Each window is a sequence of
//! its own: its first token is replaced by BOS where the model wants one, the tokens of the first half are only read, and
//! each token after the window's middle is predicted from those before it. The perplexity is e to the mean negative log
//! probability of the predicted tokens, over all windows; its error is the standard error of that mean, times the
//! perplexity.
#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use crate::model::LoadedModel;
use crate::session::Session;
use crate::tokenizer::Tokenizer;
use std::ops::{ControlFlow, Deref};

/// Tokens of a window unless told otherwise.
pub const DEFAULT_WINDOW: usize = 512;

/// Positions whose logits are held at once: 32 of the largest vocabularies (262,144) are 34 MB.
const ROWS: usize = 32;

/// What has been found over the windows so far.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Estimate {
    /// Windows done.
    pub windows: usize,
    /// Windows there are.
    pub of: usize,
    /// Tokens predicted.
    pub predicted: usize,
    /// Sum of their negative log probabilities, natural.
    nll: f64,
    /// Sum of the squares.
    nll_squares: f64,
}

impl Estimate {
    /// The mean negative log probability of a predicted token, in nats.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.nll / count(self.predicted)
    }

    /// The perplexity; NaN before the first window.
    #[must_use]
    pub fn perplexity(&self) -> f64 {
        libm::exp(self.mean())
    }

    /// The perplexity's standard error; NaN with fewer than two tokens.
    #[must_use]
    pub fn error(&self) -> f64 {
        let variance = self.nll_squares / count(self.predicted) - self.mean() * self.mean();
        libm::sqrt(variance.max(0.0) / (count(self.predicted) - 1.0)) * self.perplexity()
    }
}

#[expect(clippy::cast_precision_loss, reason = "token counts are exact in f64")]
fn count(tokens: usize) -> f64 {
    tokens as f64
}

/// The tokens of a text as the tool reads it from a file: one line feed at the end taken off, names of special tokens as
/// text, BOS in front where the model wants it.
///
/// # Errors
/// [`Error::Usage`] for a model that ends every text with EOS: the tool takes none either.
pub fn tokens(tokenizer: &Tokenizer, text: &[u8]) -> Result<Vec<u32>> {
    if tokenizer.vocabulary().add_eos() {
        let reason = "the model ends every text with an end token, so a text cannot be cut into windows for it";
        return Err(Error::Usage { reason: reason.to_owned() });
    }
    Ok(tokenizer.encode(text.strip_suffix(b"\n").unwrap_or(text), true, false))
}

/// Evaluates `text` in windows of `window` tokens, at most `most` of them. What `session` remembered is forgotten.
/// `on_window` is shown the estimate after each; when it breaks off, the estimate so far is the answer.
///
/// # Errors
/// [`Error::Usage`] for a window of fewer than four tokens or more than the session's context, and for a text that does not
/// fill two windows; the session's own.
pub fn evaluate<M: Deref<Target = LoadedModel>>(
    session: &mut Session<M>,
    text: &[u32],
    window: usize,
    most: Option<usize>,
    on_window: &mut dyn FnMut(&Estimate) -> ControlFlow<()>,
) -> Result<Estimate> {
    check(session.context(), text.len(), window)?;
    let vocabulary = session.model().tokenizer().vocabulary();
    let bos = vocabulary.bos().filter(|_| vocabulary.add_bos());
    let windows = text.len() / window;
    let of = most.map_or(windows, |most| most.min(windows));
    let mut estimate = Estimate { of, ..Estimate::default() };
    for tokens in text.chunks_exact(window).take(of) {
        let mut input = tokens.to_vec();
        if let (Some(first), Some(bos)) = (input.first_mut(), bos) {
            *first = bos;
        }
        session.reset();
        let (read, rest) = input.split_at(window / 2);
        session.prefill(read)?;
        // Nothing is predicted from the last token. The targets are the text's own tokens.
        let predicting = &rest[..rest.len() - 1];
        let targets = &tokens[window / 2 + 1..];
        let rows = ROWS.min(session.batch());
        for (predicting, targets) in predicting.chunks(rows).zip(targets.chunks(rows)) {
            let logits = session.logits_of_all(predicting)?;
            let n_vocab = logits.len() / predicting.len();
            for (logits, target) in logits.chunks_exact(n_vocab).zip(targets) {
                let nll = negative_log_probability(logits, *target);
                estimate.nll += nll;
                estimate.nll_squares += nll * nll;
                estimate.predicted += 1;
            }
        }
        estimate.windows += 1;
        if on_window(&estimate).is_break() {
            break;
        }
    }
    Ok(estimate)
}

fn check(context: usize, tokens: usize, window: usize) -> Result<()> {
    let refuse = |reason| Err(Error::Usage { reason });
    if window < 4 {
        return refuse(format!("a window of {window} tokens is too short; take at least 4 (-c)"));
    }
    if window > context {
        return refuse(format!("a window of {window} tokens does not fit a context of {context}"));
    }
    let need = window.saturating_mul(2);
    if tokens < need {
        let reason = format!(
            "the text has {tokens} tokens, windows of {window} need at least {need}; give a longer text or shorter windows (-c)"
        );
        return refuse(reason);
    }
    Ok(())
}

/// The negative natural logarithm of `target`'s share of the softmax; infinite for an id without a logit.
fn negative_log_probability(logits: &[f32], target: u32) -> f64 {
    let Some(logit) = usize::try_from(target).ok().and_then(|target| logits.get(target)) else {
        return f64::INFINITY;
    };
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(libm::expf(logit - highest))).sum();
    libm::log(sum) - f64::from(logit - highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_its_share_of_the_softmax() {
        // Shares 1, 2, 3 and 4 of 10, far from 0 so that their exponentials would overflow.
        let logits = [1.0_f32, 2.0, 3.0, 4.0].map(|share| 200.0 + share.ln());
        for (id, share) in [(0, 0.1_f64), (1, 0.2), (2, 0.3), (3, 0.4)] {
            assert!((negative_log_probability(&logits, id) + share.ln()).abs() < 1e-5, "{id}");
        }
        assert_eq!(negative_log_probability(&logits, 4), f64::INFINITY);
        assert_eq!(negative_log_probability(&[f32::NEG_INFINITY, 0.0], 0), f64::INFINITY);
    }

    /// Four tokens of 1, 2, 3 and 6 nats: mean 3, variance (4 + 1 + 0 + 9) / 4 = 3.5, error sqrt(3.5 / 3) e^3.
    #[test]
    fn mean_and_error_are_those_of_a_sample() {
        let estimate = Estimate { windows: 1, of: 1, predicted: 4, nll: 12.0, nll_squares: 50.0 };
        assert!((estimate.perplexity() - 3.0_f64.exp()).abs() < 1e-9);
        assert!((estimate.error() - (3.5_f64 / 3.0).sqrt() * 3.0_f64.exp()).abs() < 1e-9);
        assert!(Estimate::default().perplexity().is_nan());
    }

    #[test]
    fn windows_are_checked() {
        let refusal = |context, tokens, window| check(context, tokens, window).unwrap_err().to_string();
        assert!(refusal(512, 9000, 3).contains("at least 4"));
        assert!(refusal(512, 9000, 513).contains("does not fit a context of 512"));
        assert!(refusal(512, 1023, 512).contains("need at least 1024"));
        assert!(check(512, 1024, 512).is_ok());
    }
}
