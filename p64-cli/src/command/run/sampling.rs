//! The sampler's options.

use crate::failure::{Failure, Result};
use p64_std::model::LoadedModel;
use p64_std::sample::{Sampler, SamplerParams};

/// How tokens are chosen.
#[derive(Clone, Debug, clap::Args)]
pub struct Sampling {
    /// Temperature; 0 always takes the likeliest token
    #[arg(long, value_name = "T", default_value_t = SamplerParams::default().temperature)]
    temp: f32,
    /// Choose among the K likeliest; 0 for all
    #[arg(long, value_name = "K", default_value_t = SamplerParams::default().top_k)]
    top_k: usize,
    /// Choose among the fewest that sum to this probability; 1 for all
    #[arg(long, value_name = "P", default_value_t = SamplerParams::default().top_p)]
    top_p: f32,
    /// Leave out what is less likely than this share of the likeliest; 0 for nothing
    #[arg(long, value_name = "P", default_value_t = SamplerParams::default().min_p)]
    min_p: f32,
    /// Make recent tokens less likely; 1 for not at all
    #[arg(long, value_name = "X", default_value_t = SamplerParams::default().repeat_penalty)]
    repeat_penalty: f32,
    /// How many tokens count as recent
    #[arg(long, value_name = "N", default_value_t = SamplerParams::default().repeat_last_n)]
    repeat_last_n: usize,
    /// Seed of the choice: the same seed gives the same text
    #[arg(long, value_name = "N", default_value_t = SamplerParams::default().seed)]
    seed: u64,
    /// Add a value to a token's logit, as 29+1.5 or 29-inf, which forbids it; may be given several times
    #[arg(long, value_name = "ID(+|-)VALUE", value_parser = logit_bias)]
    logit_bias: Vec<(u32, f32)>,
}

/// `29+1.5`, `29-inf`.
fn logit_bias(text: &str) -> std::result::Result<(u32, f32), String> {
    let split = text.find(['+', '-']).map(|at| text.split_at(at));
    let parsed = split.and_then(|(id, value)| Some((id.parse().ok()?, value.parse().ok()?)));
    parsed.ok_or_else(|| "it must be a token id, + or -, and a number, as 29+1.5 or 29-inf".to_owned())
}

impl Sampling {
    /// The sampler, whatever the model.
    pub fn sampler(&self) -> Result<Sampler> {
        let Self { temp, top_k, top_p, min_p, repeat_penalty, repeat_last_n, seed, .. } = *self;
        let params = SamplerParams { temperature: temp, top_k, top_p, min_p, repeat_penalty, repeat_last_n, seed };
        let sampler = Sampler::new(params).and_then(|sampler| sampler.with_logit_bias(self.logit_bias.clone()));
        sampler.map_err(|error| Failure::Usage(error.to_string()))
    }

    /// Checks what only the model can tell: that the tokens with a bias are there.
    pub fn check(&self, model: &LoadedModel) -> Result<()> {
        let tokens = model.model().n_vocab();
        match self.logit_bias.iter().find(|(id, _)| *id as usize >= tokens) {
            Some((id, _)) => {
                Err(Failure::Usage(format!("--logit-bias: the model has {tokens} tokens, and none is {id}")))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bias_is_an_id_a_sign_and_a_number() {
        assert_eq!(logit_bias("29+1.5"), Ok((29, 1.5)));
        assert_eq!(logit_bias("0-2"), Ok((0, -2.0)));
        assert_eq!(logit_bias("7-inf"), Ok((7, f32::NEG_INFINITY)));
        for wrong in ["", "29", "+1", "29+", "29+x", "-1+2", "29=1", "4294967296+1"] {
            assert!(logit_bias(wrong).is_err(), "{wrong}");
        }
    }
}
