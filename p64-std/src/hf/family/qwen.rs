//! Qwen 2 and 3, without and with experts.

use super::llama::{ATTENTION, ENDS, FFN_NORM, GATED, HEAD_NORMS, LLAMA};
use super::{Family, Model};
use crate::error::Result;
use crate::hf::keys::Keys;
use crate::hf::names::{Rule, Step, rule, same};
use serde_json::Value;

const EXPERTS: &[Rule] = &[
    same("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
    rule("model.layers.{}.mlp.experts.{e}.gate_proj", "blk.{}.ffn_gate_exps", Step::Expert),
    rule("model.layers.{}.mlp.experts.{e}.up_proj", "blk.{}.ffn_up_exps", Step::Expert),
    rule("model.layers.{}.mlp.experts.{e}.down_proj", "blk.{}.ffn_down_exps", Step::Expert),
    rule("model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps", Step::ExpertHalves("blk.{}.ffn_up_exps")),
    same("model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps"),
];

const SHARED_EXPERT: &[Rule] = &[
    same("model.layers.{}.mlp.shared_expert_gate", "blk.{}.ffn_gate_inp_shexp"),
    same("model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp"),
    same("model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp"),
    same("model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp"),
];

pub(super) const QWEN2: Family = Family {
    classes: &["Qwen2ForCausalLM"],
    types: &["qwen2"],
    arch: "qwen2",
    defaults: &[("max_position_embeddings", 32_768.0), ("rms_norm_eps", 1e-6), ("num_key_value_heads", 32.0)],
    interleaves: false,
    keys: plain,
    ..LLAMA
};

pub(super) const QWEN3: Family = Family {
    classes: &["Qwen3ForCausalLM"],
    types: &["qwen3"],
    arch: "qwen3",
    defaults: &[
        ("max_position_embeddings", 32_768.0),
        ("rms_norm_eps", 1e-6),
        ("num_key_value_heads", 32.0),
        ("head_dim", 128.0),
    ],
    rules: &[ENDS, ATTENTION, HEAD_NORMS, FFN_NORM, GATED],
    ..QWEN2
};

pub(super) const QWEN2_MOE: Family = Family {
    classes: &["Qwen2MoeForCausalLM"],
    types: &["qwen2_moe"],
    arch: "qwen2moe",
    defaults: &[
        ("max_position_embeddings", 32_768.0),
        ("rms_norm_eps", 1e-6),
        ("num_key_value_heads", 16.0),
        ("num_experts", 60.0),
        ("num_experts_per_tok", 4.0),
        ("moe_intermediate_size", 1408.0),
        ("shared_expert_intermediate_size", 5632.0),
    ],
    rules: &[ENDS, ATTENTION, FFN_NORM, EXPERTS, SHARED_EXPERT],
    keys: qwen2_moe,
    ..QWEN2
};

pub(super) const QWEN3_MOE: Family = Family {
    classes: &["Qwen3MoeForCausalLM"],
    types: &["qwen3_moe"],
    arch: "qwen3moe",
    defaults: &[
        ("max_position_embeddings", 32_768.0),
        ("rms_norm_eps", 1e-6),
        ("num_key_value_heads", 4.0),
        ("num_experts", 128.0),
        ("num_experts_per_tok", 8.0),
        ("moe_intermediate_size", 768.0),
    ],
    rules: &[ENDS, ATTENTION, HEAD_NORMS, FFN_NORM, EXPERTS],
    keys: qwen3_moe,
    ..QWEN2
};

fn plain(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    model.turns_all()?;
    model.no_window()?;
    model.common(keys)
}

fn experts(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let config = model.config;
    config.must_be("decoder_sparse_step", |value| value == &Value::from(1), "1 (experts in every layer)")?;
    config.must_be(
        "mlp_only_layers",
        |value| value.as_array().is_some_and(Vec::is_empty),
        "[] (experts in every layer)",
    )?;
    plain(model, keys)?;
    keys.arch_if("expert_feed_forward_length", config.u32_if("moe_intermediate_size")?);
    Ok(())
}

fn qwen2_moe(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    model.config.must_be("norm_topk_prob", |value| value == &Value::Bool(false), "false")?;
    experts(model, keys)?;
    let shared = model.config.u32_if("shared_expert_intermediate_size")?;
    keys.arch_if("expert_shared_feed_forward_length", shared);
    Ok(())
}

fn qwen3_moe(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    if !model.config.bool("norm_topk_prob")? {
        let reason = "norm_topk_prob is false; of this family only models with true are understood. --raw takes the \
                      tensors as they are";
        return Err(model.config.refused(reason));
    }
    experts(model, keys)
}
