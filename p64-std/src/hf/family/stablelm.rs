//! StableLM.

use super::llama::{ATTENTION, ENDS, FFN_NORM, GATED, LLAMA};
use super::{Family, Model};
use crate::error::Result;
use crate::hf::keys::Keys;
use crate::hf::names::{Rule, Step, rule};
use crate::hf::rope::Kind;
use serde_json::Value;

const HEAD_NORMS: &[Rule] = &[
    rule("model.layers.{}.self_attn.q_layernorm.norms.{e}", "blk.{}.attn_q_norm", Step::Head),
    rule("model.layers.{}.self_attn.k_layernorm.norms.{e}", "blk.{}.attn_k_norm", Step::Head),
];

pub(super) const STABLELM: Family = Family {
    classes: &["StableLmForCausalLM", "StableLMEpochForCausalLM"],
    types: &["stablelm", "stablelm_epoch"],
    arch: "stablelm",
    defaults: &[("max_position_embeddings", 4096.0), ("layer_norm_eps", 1e-5)],
    rules: &[ENDS, ATTENTION, HEAD_NORMS, FFN_NORM, GATED],
    interleaves: false,
    keys: stablelm,
    ..LLAMA
};

fn stablelm(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let config = model.config;
    keys.arch("context_length", config.u32("max_position_embeddings")?).arch("embedding_length", model.hidden);
    keys.arch("block_count", model.layers).arch("feed_forward_length", config.u32("intermediate_size")?);
    let width = model.head_width()?;
    let turned = if model.rope.partial.is_none() { width / 4 } else { model.turned(width)? };
    keys.arch("rope.dimension_count", turned);
    keys.arch("attention.head_count", model.heads).arch("attention.head_count_kv", model.kv_heads);
    keys.arch("use_parallel_residual", config.get("use_parallel_residual").and_then(Value::as_bool).unwrap_or(true));
    let epsilon = match config.f32_if("norm_eps")? {
        Some(epsilon) => epsilon,
        None => config.f32("layer_norm_eps")?,
    };
    keys.arch("attention.layer_norm_epsilon", epsilon);
    keys.set("general.file_type", model.file_type);
    if (model.rope.full.theta, &model.rope.full.kind) != (10_000.0, &Kind::Default) {
        model.rope.write(keys);
    }
    for key in ["use_qkv_bias", "qk_layernorm", "attention_bias"] {
        config.get(key);
    }
    Ok(())
}
