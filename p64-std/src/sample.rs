//! Sampling: from a position's logits to a token.
//!
//! The order of the steps is llama.cpp's: logit bias, repeat penalty, top-k, top-p, min-p, temperature, draw. With a seed the result
//! is the same on every machine: the random numbers and the exponential are computed here, not by the platform.
#![forbid(unsafe_code)]

mod filter;
mod params;
mod rng;

pub use params::{SamplerError, SamplerParams};

use filter::Candidate;
use rng::Rng;
use std::collections::VecDeque;

/// Draws tokens by its parameters; remembers the last tokens for the repeat penalty.
#[derive(Clone, Debug)]
pub struct Sampler {
    params: SamplerParams,
    /// What is added to the logits of tokens.
    bias: Vec<(u32, f32)>,
    rng: Rng,
    /// The last `repeat_last_n` tokens.
    recent: VecDeque<u32>,
    /// One per logit, reused from call to call.
    candidates: Vec<Candidate>,
}

impl Sampler {
    /// A sampler without history.
    ///
    /// # Errors
    /// A parameter outside its range.
    pub fn new(params: SamplerParams) -> Result<Self, SamplerError> {
        params.check()?;
        let rng = Rng::new(params.seed);
        Ok(Self { params, bias: Vec::new(), rng, recent: VecDeque::new(), candidates: Vec::new() })
    }

    /// The same sampler with these values added to the logits of their tokens before anything else happens: minus infinity
    /// forbids a token. Ids without a logit are passed over; a token that is named twice gets both.
    ///
    /// # Errors
    /// NaN.
    pub fn with_logit_bias(mut self, bias: Vec<(u32, f32)>) -> Result<Self, SamplerError> {
        if let Some((_, value)) = bias.iter().find(|(_, value)| value.is_nan()) {
            return Err(SamplerError { name: "a logit bias", value: *value, range: "a number" });
        }
        self.bias = bias;
        Ok(self)
    }

    /// The parameters.
    #[must_use]
    pub const fn params(&self) -> &SamplerParams {
        &self.params
    }

    /// Takes a token into the history: those of the prompt, and each that was sampled.
    pub fn accept(&mut self, id: u32) {
        if self.params.repeat_last_n == 0 {
            return;
        }
        if self.recent.len() >= self.params.repeat_last_n {
            self.recent.pop_front();
        }
        self.recent.push_back(id);
    }

    /// Forgets the history and begins the random numbers anew.
    pub fn reset(&mut self) {
        self.recent.clear();
        self.rng = Rng::new(self.params.seed);
    }

    /// The next token; `logits[id]` is the logit of token `id`. The history does not change.
    ///
    /// NaN counts as minus infinity. `None` without logits.
    pub fn sample(&mut self, logits: &[f32]) -> Option<u32> {
        let SamplerParams { temperature, top_k, top_p, min_p, repeat_penalty, .. } = self.params;
        if temperature == 0.0 && self.bias.is_empty() && (repeat_penalty == 1.0 || self.recent.is_empty()) {
            return argmax(logits);
        }
        let number = |logit: f32| if logit.is_nan() { f32::NEG_INFINITY } else { logit };
        self.candidates.clear();
        self.candidates.extend((0..).zip(logits).map(|(id, &logit)| Candidate { logit: number(logit), id }));
        self.add_bias();
        self.penalize(repeat_penalty);
        let candidates = &mut self.candidates;
        if temperature == 0.0 {
            filter::top_k(candidates, 1);
            return candidates.first().map(|candidate| candidate.id);
        }
        if top_k > 0 {
            filter::top_k(candidates, top_k);
        }
        if top_p < 1.0 {
            filter::top_p(candidates, top_p);
        }
        if min_p > 0.0 {
            filter::min_p(candidates, min_p);
        }
        filter::draw(candidates, temperature, self.rng.unit())
    }

    fn add_bias(&mut self) {
        for (id, value) in &self.bias {
            if let Some(candidate) = self.candidates.get_mut(*id as usize) {
                let logit = candidate.logit + value;
                // Opposite infinities: what is impossible stays so.
                candidate.logit = if logit.is_nan() { f32::NEG_INFINITY } else { logit };
            }
        }
    }

    /// Makes every token of the history less likely, once, however often it was seen.
    fn penalize(&mut self, penalty: f32) {
        if penalty == 1.0 {
            return;
        }
        let mut seen: Vec<u32> = self.recent.iter().copied().collect();
        seen.sort_unstable();
        seen.dedup();
        for id in seen {
            if let Some(candidate) = self.candidates.get_mut(id as usize) {
                // Dividing a negative logit would make it more likely.
                if candidate.logit <= 0.0 { candidate.logit *= penalty } else { candidate.logit /= penalty }
            }
        }
    }
}

/// The index of the highest logit, the lowest of equals; NaN counts as minus infinity. `None` without logits.
#[must_use]
pub fn argmax(logits: &[f32]) -> Option<u32> {
    (!logits.is_empty()).then(|| p64_core::forward::argmax(logits))
}

#[cfg(test)]
mod tests;
