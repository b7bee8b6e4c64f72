//! What a sampler is asked to do, checked.

/// The sampler's settings. The defaults are llama.cpp's, except that the seed is fixed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SamplerParams {
    /// Divides the logits before the draw; 0 takes the highest logit.
    pub temperature: f32,
    /// Keeps the `top_k` highest logits; 0 keeps all.
    pub top_k: usize,
    /// Keeps the fewest tokens whose probabilities sum to at least `top_p`; 1 keeps all.
    pub top_p: f32,
    /// Drops tokens less probable than `min_p` times the most probable; 0 keeps all.
    pub min_p: f32,
    /// Divides positive logits, and multiplies the others, of tokens seen lately; 1 changes nothing.
    pub repeat_penalty: f32,
    /// How many of the last tokens count as lately.
    pub repeat_last_n: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for SamplerParams {
    fn default() -> Self {
        Self { temperature: 0.8, top_k: 40, top_p: 0.95, min_p: 0.05, repeat_penalty: 1.0, repeat_last_n: 64, seed: 0 }
    }
}

/// A setting outside its range.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error("{name} is {value}, it must be {range}")]
pub struct SamplerError {
    /// The setting.
    pub name: &'static str,
    /// Its value.
    pub value: f32,
    /// What passes, in words.
    pub range: &'static str,
}

impl SamplerParams {
    /// Always the highest logit.
    #[must_use]
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }

    pub(super) fn check(&self) -> Result<(), SamplerError> {
        let finite = |value: f32, passes: bool| value.is_finite() && passes;
        let checks = [
            ("temperature", self.temperature, "0 or more", finite(self.temperature, self.temperature >= 0.0)),
            ("top_p", self.top_p, "from 0 to 1", (0.0..=1.0).contains(&self.top_p)),
            ("min_p", self.min_p, "from 0 to 1", (0.0..=1.0).contains(&self.min_p)),
            ("repeat_penalty", self.repeat_penalty, "above 0", finite(self.repeat_penalty, self.repeat_penalty > 0.0)),
        ];
        match checks.into_iter().find(|(.., passes)| !passes) {
            Some((name, value, range, _)) => Err(SamplerError { name, value, range }),
            None => Ok(()),
        }
    }
}
