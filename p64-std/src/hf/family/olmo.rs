//! OLMo 2 and 3.

use super::llama::{ENDS, GATED, HEAD_NORMS, LLAMA};
use super::{Family, Model};
use crate::error::Result;
use crate::hf::keys::Keys;
use crate::hf::names::{Rule, Step, rule, same};

const LAYER: &[Rule] = &[
    rule("model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", Step::Queries),
    rule("model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", Step::Keys),
    same("model.layers.{}.self_attn.v_proj", "blk.{}.attn_v"),
    same("model.layers.{}.self_attn.o_proj", "blk.{}.attn_output"),
    rule("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm", Step::Norm),
    rule("model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm", Step::Norm),
];

pub(super) const OLMO2: Family = Family {
    classes: &["Olmo2ForCausalLM"],
    types: &["olmo2"],
    arch: "olmo2",
    defaults: &[("max_position_embeddings", 2048.0), ("rms_norm_eps", 1e-5)],
    rules: &[ENDS, LAYER, HEAD_NORMS, GATED],
    interleaves: false,
    keys: olmo2,
    ..LLAMA
};

pub(super) const OLMO3: Family = Family {
    classes: &["Olmo3ForCausalLM"],
    types: &["olmo3"],
    defaults: &[("max_position_embeddings", 2048.0), ("rms_norm_eps", 1e-5), ("sliding_window", 4096.0)],
    theta: (500_000.0, None),
    keys: olmo3,
    ..OLMO2
};

fn olmo2(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    model.turns_all()?;
    model.layers_are(|_| false, "full attention in every layer")?;
    model.common(keys)
}

fn olmo3(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    model.turns_all()?;
    model.common(keys)?;
    keys.arch("attention.sliding_window", model.config.u32("sliding_window")?);
    let local = match model.config.texts("layer_types")? {
        Some(types) => types.iter().map(|kind| *kind == "sliding_attention").collect(),
        None => (1..=model.layers).map(|n| n % 4 != 0).collect::<Vec<_>>(),
    };
    keys.arch("attention.sliding_window_pattern", local);
    Ok(())
}
