//! The families of models: for each, what its configuration means and what its tensors are called.

mod cohere;
mod gemma;
mod gpt2;
mod llama;
mod olmo;
mod phi;
mod qwen;
mod stablelm;

use super::config::Config;
use super::json;
use super::keys::Keys;
use super::names::Rule;
use super::rope::{Kind, Rope};
use crate::error::Result;
use p64_core::limits::MAX_LAYERS;
use serde_json::Value;

/// What transformers calls a class of models, and all that follows from it.
#[derive(Debug)]
pub(super) struct Family {
    /// Its names in `architectures`.
    pub(super) classes: &'static [&'static str],
    /// Its names in `model_type`, for a configuration without `architectures`.
    pub(super) types: &'static [&'static str],
    /// `general.architecture`.
    pub(super) arch: &'static str,
    /// The activations of its feed-forward network, as transformers names them; the first is meant where none is named.
    pub(super) activations: &'static [&'static str],
    /// What transformers takes for absent keys; flags are 0 and 1.
    pub(super) defaults: &'static [(&'static str, f64)],
    /// The base of the rotary embedding, and that of layers with a window.
    pub(super) theta: (f64, Option<f64>),
    /// What its tensors become.
    pub(super) rules: &'static [&'static [Rule]],
    /// Whether the rows of queries and keys change places.
    pub(super) interleaves: bool,
    /// What a norm's weight is short of.
    pub(super) norm_offset: f32,
    /// Whether an added token of a SentencePiece vocabulary counts as special only where it is marked so.
    pub(super) trusts_special: bool,
    /// The keys of the family.
    pub(super) keys: fn(&Model<'_>, &mut Keys) -> Result<()>,
}

const FAMILIES: &[&Family] = &[
    &llama::LLAMA,
    &llama::MISTRAL,
    &llama::MIXTRAL,
    &llama::SMOLLM3,
    &llama::GRANITE,
    &llama::GRANITE_MOE,
    &qwen::QWEN2,
    &qwen::QWEN3,
    &qwen::QWEN2_MOE,
    &qwen::QWEN3_MOE,
    &gemma::GEMMA,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &phi::PHI3,
    &olmo::OLMO2,
    &olmo::OLMO3,
    &stablelm::STABLELM,
    &gpt2::GPT2,
    &cohere::COMMAND_R,
    &cohere::COHERE2,
];

/// Every family.
pub(super) fn all() -> impl Iterator<Item = &'static Family> {
    FAMILIES.iter().copied()
}

/// Every class that is known, in the order of the table.
pub(super) fn classes() -> impl Iterator<Item = &'static str> {
    all().flat_map(|family| family.classes.iter().copied())
}

/// The family of a configuration.
///
/// # Errors
/// A class that is not known, with those that are; neither class nor type named.
pub(super) fn of(config: &Config) -> Result<&'static Family> {
    let classes = config.architectures()?;
    let kind = config.str_if("model_type")?;
    let found = match (classes.first(), kind) {
        (Some(class), _) => all().find(|family| family.classes.contains(class)).ok_or(*class),
        (None, Some(kind)) => all().find(|family| family.types.contains(&kind)).ok_or(kind),
        (None, None) => return Err(config.refused("neither architectures nor model_type says what model it is")),
    };
    found.map_err(|name| {
        let known: Vec<&str> = self::classes().collect();
        config.refused(format!(
            "models of the class {} are not known; known are {}. --raw takes the tensors as they are",
            json::quoted(name),
            known.join(", ")
        ))
    })
}

/// Elements of a head that are taken in, far above those of any model.
const MAX_WIDTH: u32 = 65_535;

/// The numbers of a model that more than one part of the conversion needs.
#[derive(Debug)]
pub(super) struct Model<'c> {
    pub(super) config: &'c Config,
    pub(super) family: &'static Family,
    pub(super) layers: u32,
    pub(super) hidden: u32,
    pub(super) heads: u32,
    pub(super) kv_heads: u32,
    /// Elements of a head, where the configuration states them or transformers derives them as a key of its own.
    pub(super) head: Option<u32>,
    pub(super) vocabulary: u32,
    pub(super) rope: Rope,
    /// `general.file_type`.
    pub(super) file_type: u32,
}

impl<'c> Model<'c> {
    /// Reads them. `default_kv` of the defaults is `num_key_value_heads`, 0 for as many as there are heads.
    pub(super) fn read(config: &'c Config, family: &'static Family, file_type: u32) -> Result<Self> {
        let gpt2 = family.arch == "gpt2";
        let [layers, hidden, heads] = if gpt2 {
            ["n_layer", "n_embd", "n_head"]
        } else {
            ["num_hidden_layers", "hidden_size", "num_attention_heads"]
        };
        let (layers, hidden, heads) = (config.u32(layers)?, config.u32(hidden)?, config.u32(heads)?);
        if layers > MAX_LAYERS {
            return Err(config.refused(format!("{layers} layers; {MAX_LAYERS} are the limit")));
        }
        let kv_heads = if gpt2 { None } else { config.u32_if("num_key_value_heads")?.filter(|&heads| heads != 0) };
        let (theta, window) = family.theta;
        Ok(Self {
            config,
            family,
            layers,
            hidden,
            heads,
            kv_heads: kv_heads.unwrap_or(heads),
            head: config.u32_if("head_dim")?,
            vocabulary: config.u32("vocab_size")?,
            rope: Rope::read(config, theta, window)?,
            file_type,
        })
    }

    /// Elements of a head.
    ///
    /// # Errors
    /// No heads; more elements than [`MAX_WIDTH`].
    pub(super) fn head_width(&self) -> Result<u32> {
        let width = self.head.or_else(|| self.hidden.checked_div(self.heads));
        let width = width.ok_or_else(|| self.config.refused("num_attention_heads is 0"))?;
        if width > MAX_WIDTH {
            return Err(self.config.refused(format!("a head of {width} elements; {MAX_WIDTH} are the limit")));
        }
        Ok(width)
    }

    /// Elements of a head that are turned, where the configuration may say a part of them: `int(part * width)`.
    pub(super) fn turned(&self, width: u32) -> Result<u32> {
        let part = self.rope.partial.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&part) {
            return Err(self.config.refused(format!("partial_rotary_factor is {part}, expected 0 to 1")));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the width")]
        let turned = (part * f64::from(width)) as u32;
        Ok(turned)
    }

    /// Refuses a part of a head that is turned, for families that turn all of it.
    pub(super) fn turns_all(&self) -> Result<()> {
        match self.rope.partial {
            Some(part) if part != 1.0 => Err(self
                .config
                .refused(format!("partial_rotary_factor is {part}; models of this family are only understood with 1"))),
            _ => Ok(()),
        }
    }

    /// The keys that most families have, as llama.cpp's converter orders them.
    pub(super) fn common(&self, keys: &mut Keys) -> Result<()> {
        let config = self.config;
        if matches!(self.rope.full.kind, Kind::Long { .. }) {
            return Err(config.refused("longrope is not understood of this family"));
        }
        keys.arch("block_count", self.layers);
        keys.arch("context_length", config.u32("max_position_embeddings")?);
        keys.arch("embedding_length", self.hidden);
        keys.arch("feed_forward_length", config.u32("intermediate_size")?);
        keys.arch("attention.head_count", self.heads).arch("attention.head_count_kv", self.kv_heads);
        self.rope.write(keys);
        keys.arch_if("attention.layer_norm_rms_epsilon", config.f32_if("rms_norm_eps")?);
        keys.arch_if("attention.layer_norm_epsilon", config.f32_if("layer_norm_eps")?);
        let experts = match config.u32_if("num_local_experts")? {
            Some(experts) => Some(experts),
            None => config.u32_if("num_experts")?,
        };
        keys.arch_if("expert_count", experts);
        keys.arch_if("expert_used_count", config.u32_if("num_experts_per_tok")?);
        keys.arch_if("attention.key_length", self.head).arch_if("attention.value_length", self.head);
        keys.set("general.file_type", self.file_type);
        // Biases are there or not; what says so is not needed.
        for key in ["attention_bias", "mlp_bias", "attention_out_bias", "qkv_bias", "use_qkv_bias"] {
            config.get(key);
        }
        Ok(())
    }

    /// Refuses layers that differ in what they see from the family's pattern: `local(i)` says whether layer `i` sees a window
    /// only.
    pub(super) fn layers_are(&self, local: impl Fn(usize) -> bool, pattern: &str) -> Result<()> {
        let Some(types) = self.config.texts("layer_types")? else { return Ok(()) };
        for (i, kind) in types.iter().enumerate() {
            let expected = if local(i) { "sliding_attention" } else { "full_attention" };
            if *kind != expected {
                return Err(self.config.refused(format!(
                    "layer_types: layer {i} has {}, models of this family are only understood with {pattern}",
                    json::quoted(kind)
                )));
            }
        }
        Ok(())
    }

    /// Refuses a window that is in use, and reads over one that is not.
    pub(super) fn no_window(&self) -> Result<()> {
        self.config.must_be("use_sliding_window", |value| value == &Value::Bool(false), "false")?;
        self.config.get("sliding_window");
        self.layers_are(|_| false, "full attention in every layer")
    }
}

/// Checks the activation.
pub(super) fn check_activation(config: &Config, family: &Family) -> Result<()> {
    // Gemma's `hidden_act` was wrong in its first files; `hidden_activation` goes before it.
    let gemma = family.arch.starts_with("gemma") && config.get("hidden_activation").is_some();
    for key in ["hidden_activation", "hidden_act", "activation_function"] {
        let passes = |value: &Value| value.as_str().is_some_and(|name| family.activations.contains(&name));
        if gemma && key == "hidden_act" {
            config.get(key);
            continue;
        }
        config.must_be(key, passes, &family.activations.join(" or "))?;
    }
    Ok(())
}
