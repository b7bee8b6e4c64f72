//! GPT-2.

use super::llama::LLAMA;
use super::{Family, Model};
use crate::error::Result;
use crate::hf::keys::Keys;
use crate::hf::names::{Rule, Step, rule, same};
use serde_json::Value;

const RULES: &[Rule] = &[
    same("transformer.wte", "token_embd"),
    same("transformer.wpe", "position_embd"),
    same("transformer.ln_f", "output_norm"),
    same("lm_head", "output"),
    same("transformer.h.{}.ln_1", "blk.{}.attn_norm"),
    rule("transformer.h.{}.attn.c_attn", "blk.{}.attn_qkv", Step::Transposed),
    rule("transformer.h.{}.attn.c_proj", "blk.{}.attn_output", Step::Transposed),
    same("transformer.h.{}.ln_2", "blk.{}.ffn_norm"),
    rule("transformer.h.{}.mlp.c_fc", "blk.{}.ffn_up", Step::Transposed),
    rule("transformer.h.{}.mlp.c_proj", "blk.{}.ffn_down", Step::Transposed),
];

pub(super) const GPT2: Family = Family {
    classes: &["GPT2LMHeadModel"],
    types: &["gpt2"],
    arch: "gpt2",
    activations: &["gelu_new"],
    defaults: &[("n_positions", 1024.0), ("layer_norm_epsilon", 1e-5), ("tie_word_embeddings", 1.0)],
    rules: &[RULES],
    interleaves: false,
    keys: gpt2,
    ..LLAMA
};

fn gpt2(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let config = model.config;
    config.must_be("scale_attn_weights", |value| value == &Value::Bool(true), "true")?;
    config.must_be("scale_attn_by_inverse_layer_idx", |value| value == &Value::Bool(false), "false")?;
    config.must_be("add_cross_attention", |value| value == &Value::Bool(false), "false")?;
    config.get("n_ctx");
    let four = model.hidden.checked_mul(4).ok_or_else(|| config.refused("n_embd is too large"))?;
    keys.arch("block_count", model.layers).arch("context_length", config.u32("n_positions")?);
    keys.arch("embedding_length", model.hidden);
    keys.arch("feed_forward_length", config.u32_if("n_inner")?.unwrap_or(four));
    keys.arch("attention.head_count", model.heads);
    keys.arch("attention.layer_norm_epsilon", config.f32("layer_norm_epsilon")?);
    keys.set("general.file_type", model.file_type);
    Ok(())
}
