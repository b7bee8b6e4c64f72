//! How positions turn queries and keys: `rope_parameters`, or `rope_scaling` and `rope_theta` as they were before it.

use super::config::{Config, to_f32};
use super::json;
use super::keys::Keys;
use crate::error::Result;
use serde_json::{Map, Value};

/// The rotary embedding of a model's layers.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Rope {
    /// Of all layers, or of those that see everything.
    pub(super) full: Scaling,
    /// The base of those that see a window, where it is stated apart.
    pub(super) window_theta: Option<f32>,
    /// The part of a head that is turned, where it is stated.
    pub(super) partial: Option<f64>,
    /// The context that the model was trained for before it was stretched, where it is stated.
    pub(super) original_context: Option<u32>,
}

/// A base and how it is stretched.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Scaling {
    pub(super) theta: f64,
    pub(super) kind: Kind,
}

/// The ways of stretching.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Kind {
    Default,
    Linear {
        factor: f32,
    },
    Yarn {
        factor: f32,
        original_context: u32,
        extrapolation: Option<f32>,
        attention: Option<f32>,
        fast: Option<f32>,
        slow: Option<f32>,
    },
    Llama3 {
        factor: f64,
        low: f64,
        high: f64,
        original_context: f64,
    },
    Long {
        short: Vec<f32>,
        long: Vec<f32>,
    },
}

impl Rope {
    /// Reads it. `theta` is the base where none is stated, `window_theta` that of layers with a window.
    ///
    /// # Errors
    /// A kind that is not known, a value of the wrong type, a value that its kind needs and that is missing.
    pub(super) fn read(config: &Config, theta: f64, window_theta: Option<f64>) -> Result<Self> {
        let stated = config.get("rope_parameters").or_else(|| config.get("rope_scaling"));
        let none = Map::new();
        let all = match stated {
            None => &none,
            Some(Value::Object(object)) => object,
            Some(other) => {
                return Err(config.refused(format!("rope_parameters is {}, expected an object", json::shown(other))));
            }
        };
        let old_theta = |keys: [&'static str; 2]| -> Result<Option<f64>> {
            for key in keys {
                if let Some(value) = config.get(key) {
                    let number = value.as_f64();
                    return number.map(Some).ok_or_else(|| config.refused(format!("{key} is no number")));
                }
            }
            Ok(None)
        };
        let theta = old_theta(["rope_theta", "rotary_emb_base"])?.unwrap_or(theta);
        let mut window = old_theta(["rope_local_base_freq", "local_rope_theta"])?.or(window_theta);
        let section = |name: &str| all.get(name).and_then(Value::as_object);
        let full = section("full_attention").unwrap_or(all);
        if let Some(local) = section("sliding_attention") {
            let local = Section { config, values: local };
            window = local.number("rope_theta")?.or(window);
            if local.kind()? != "default" {
                return Err(config.refused("rope_parameters.sliding_attention: only an unscaled one is understood"));
            }
        }
        let full = Section { config, values: full };
        let partial = match full.number("partial_rotary_factor")? {
            Some(partial) => Some(partial),
            None => old_theta(["partial_rotary_factor", "rope_pct"])?.or(old_theta(["rotary_pct", "rotary_pct"])?),
        };
        let stated_context = config.u32_if("original_max_position_embeddings")?;
        let original_context = match full.number("original_max_position_embeddings")? {
            Some(number) => Some(whole(config, number)?),
            None => stated_context,
        };
        let theta = full.number("rope_theta")?.unwrap_or(theta);
        let kind = full.scaling(original_context)?;
        Ok(Self { full: Scaling { theta, kind }, window_theta: window.map(to_f32), partial, original_context })
    }

    /// Writes the keys of the scaling and the bases.
    pub(super) fn write(&self, keys: &mut Keys) {
        match &self.full.kind {
            Kind::Default | Kind::Llama3 { .. } => {}
            Kind::Linear { factor } => {
                keys.arch("rope.scaling.type", "linear").arch("rope.scaling.factor", *factor);
            }
            Kind::Yarn { factor, original_context, extrapolation, attention, fast, slow } => {
                keys.arch("rope.scaling.type", "yarn").arch("rope.scaling.factor", *factor);
                keys.arch("rope.scaling.original_context_length", *original_context);
                keys.arch_if("rope.scaling.yarn_ext_factor", *extrapolation);
                keys.arch_if("rope.scaling.yarn_attn_factor", *attention);
                keys.arch_if("rope.scaling.yarn_beta_fast", *fast);
                keys.arch_if("rope.scaling.yarn_beta_slow", *slow);
            }
            Kind::Long { .. } => {
                keys.arch("rope.scaling.type", "longrope");
            }
        }
        keys.arch("rope.freq_base", to_f32(self.full.theta));
        keys.arch_if("rope.freq_base_swa", self.window_theta);
    }

    /// The divisors of the frequencies of a head of `width` elements, which Llama 3.1 and its kin keep as a tensor.
    pub(super) fn llama3_factors(&self, width: u32) -> Option<Vec<f32>> {
        let Kind::Llama3 { factor, low, high, original_context } = self.full.kind else { return None };
        Some(llama3_divisors(self.full.theta, width, factor, low, high, original_context))
    }
}

/// The same from its numbers, in f32, step by step, as the divisors of published files were computed.
pub(super) fn llama3_divisors(theta: f64, width: u32, factor: f64, low: f64, high: f64, context: f64) -> Vec<f32> {
    let (low_wavelength, high_wavelength) = (context / low, context / high);
    let [factor, low, high, context] = [factor, low, high, context].map(to_f32);
    let turn = to_f32(2.0 * std::f64::consts::PI);
    let divisors = (0..width).step_by(2).map(|i| {
        let power = exact(i) / exact(width);
        let frequency = 1.0 / to_f32(theta.powf(f64::from(power)));
        let wavelength = turn / frequency;
        if f64::from(wavelength) < high_wavelength {
            1.0
        } else if f64::from(wavelength) > low_wavelength {
            factor
        } else {
            let smooth = (context / wavelength - low) / (high - low);
            1.0 / ((1.0 - smooth) / factor + smooth)
        }
    });
    divisors.collect()
}

/// The f32 of a small whole number.
#[expect(clippy::cast_precision_loss, reason = "elements of a head are few")]
const fn exact(number: u32) -> f32 {
    number as f32
}

/// One set of parameters.
struct Section<'c> {
    config: &'c Config,
    values: &'c Map<String, Value>,
}

impl Section<'_> {
    fn number(&self, key: &str) -> Result<Option<f64>> {
        let Some(value) = self.values.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
        let wrong =
            || self.config.refused(format!("rope_parameters.{key} is {}, expected a number", json::shown(value)));
        value.as_f64().map(Some).ok_or_else(wrong)
    }

    fn needed(&self, key: &str) -> Result<f64> {
        self.number(key)?.ok_or_else(|| self.config.refused(format!("rope_parameters.{key} is missing")))
    }

    fn kind(&self) -> Result<&str> {
        let stated = ["rope_type", "type"].iter().find_map(|key| self.values.get(*key));
        let Some(value) = stated.filter(|value| !value.is_null()) else { return Ok("default") };
        value.as_str().ok_or_else(|| {
            self.config.refused(format!("rope_parameters.rope_type is {}, expected text", json::shown(value)))
        })
    }

    fn factors(&self, key: &str) -> Result<Vec<f32>> {
        let list = self.values.get(key).and_then(Value::as_array);
        let numbers = list.and_then(|list| list.iter().map(|n| n.as_f64().map(to_f32)).collect());
        numbers.ok_or_else(|| self.config.refused(format!("rope_parameters.{key} is no list of numbers")))
    }

    fn scaling(&self, original_context: Option<u32>) -> Result<Kind> {
        let context = || match original_context {
            Some(context) => Ok(context),
            None => self.config.u32("max_position_embeddings"),
        };
        let number = |key| self.number(key).map(|number| number.map(to_f32));
        match self.kind()? {
            "default" => Ok(Kind::Default),
            "linear" => Ok(Kind::Linear { factor: to_f32(self.needed("factor")?) }),
            "yarn" => {
                for key in ["mscale", "mscale_all_dim"] {
                    if self.number(key)?.is_some() {
                        return Err(self.config.refused(format!("rope_parameters.{key} is not understood")));
                    }
                }
                if self.values.get("truncate") == Some(&Value::Bool(false)) {
                    return Err(self.config.refused("rope_parameters.truncate = false is not understood"));
                }
                let attention = number("attention_factor")?.or(number("attn_factor")?);
                Ok(Kind::Yarn {
                    factor: to_f32(self.needed("factor")?),
                    original_context: context()?,
                    extrapolation: number("extrapolation_factor")?,
                    attention,
                    fast: number("beta_fast")?,
                    slow: number("beta_slow")?,
                })
            }
            "llama3" => Ok(Kind::Llama3 {
                factor: self.needed("factor")?,
                low: self.needed("low_freq_factor")?,
                high: self.needed("high_freq_factor")?,
                original_context: f64::from(context()?),
            }),
            "longrope" | "su" => {
                Ok(Kind::Long { short: self.factors("short_factor")?, long: self.factors("long_factor")? })
            }
            other => Err(self.config.refused(format!(
                "rope_parameters.rope_type is {}; known are default, linear, yarn, llama3, longrope. --raw takes the \
                 tensors as they are",
                json::quoted(other)
            ))),
        }
    }
}

fn whole(config: &Config, number: f64) -> Result<u32> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be a whole number of 32 bits"
    )]
    let whole = number as u32;
    if f64::from(whole) == number {
        Ok(whole)
    } else {
        Err(config.refused(format!("original_max_position_embeddings is {number}, expected a whole number below 2^32")))
    }
}
