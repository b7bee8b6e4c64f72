//! LLaMA and the families that differ from it in little.

use super::{Family, Model};
use crate::error::Result;
use crate::hf::keys::Keys;
use crate::hf::names::{Rule, Step, rule, same};
use serde_json::Value;

/// What is around the layers.
pub(super) const ENDS: &[Rule] = &[
    same("model.embed_tokens", "token_embd"),
    rule("model.norm", "output_norm", Step::Norm),
    same("lm_head", "output"),
];

/// Attention with a norm in front of it.
pub(super) const ATTENTION: &[Rule] = &[
    rule("model.layers.{}.input_layernorm", "blk.{}.attn_norm", Step::Norm),
    rule("model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", Step::Queries),
    rule("model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", Step::Keys),
    same("model.layers.{}.self_attn.v_proj", "blk.{}.attn_v"),
    same("model.layers.{}.self_attn.o_proj", "blk.{}.attn_output"),
];

/// Norms of queries and keys.
pub(super) const HEAD_NORMS: &[Rule] = &[
    rule("model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm", Step::Norm),
    rule("model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm", Step::Norm),
];

/// The norm in front of the feed-forward network.
pub(super) const FFN_NORM: &[Rule] = &[rule("model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm", Step::Norm)];

/// A feed-forward network with a gate.
pub(super) const GATED: &[Rule] = &[
    same("model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate"),
    same("model.layers.{}.mlp.up_proj", "blk.{}.ffn_up"),
    same("model.layers.{}.mlp.down_proj", "blk.{}.ffn_down"),
];

const MIXTRAL_EXPERTS: &[Rule] = &[
    same("model.layers.{}.block_sparse_moe.gate", "blk.{}.ffn_gate_inp"),
    rule("model.layers.{}.block_sparse_moe.experts.{e}.w1", "blk.{}.ffn_gate_exps", Step::Expert),
    rule("model.layers.{}.block_sparse_moe.experts.{e}.w2", "blk.{}.ffn_down_exps", Step::Expert),
    rule("model.layers.{}.block_sparse_moe.experts.{e}.w3", "blk.{}.ffn_up_exps", Step::Expert),
];

const GRANITE_EXPERTS: &[Rule] = &[
    same("model.layers.{}.block_sparse_moe.router.layer", "blk.{}.ffn_gate_inp"),
    rule(
        "model.layers.{}.block_sparse_moe.input_linear",
        "blk.{}.ffn_gate_exps",
        Step::ExpertHalves("blk.{}.ffn_up_exps"),
    ),
    same("model.layers.{}.block_sparse_moe.output_linear", "blk.{}.ffn_down_exps"),
    rule("model.layers.{}.shared_mlp.input_linear", "blk.{}.ffn_gate_shexp", Step::Halves("blk.{}.ffn_up_shexp")),
    same("model.layers.{}.shared_mlp.output_linear", "blk.{}.ffn_down_shexp"),
];

pub(super) const LLAMA: Family = Family {
    classes: &["LlamaForCausalLM", "LLaMAForCausalLM"],
    types: &["llama"],
    arch: "llama",
    activations: &["silu", "swish"],
    defaults: &[("max_position_embeddings", 2048.0), ("rms_norm_eps", 1e-6)],
    theta: (10_000.0, None),
    rules: &[ENDS, ATTENTION, FFN_NORM, GATED],
    interleaves: true,
    norm_offset: 0.0,
    trusts_special: false,
    keys: llama,
};

pub(super) const MISTRAL: Family = Family {
    classes: &["MistralForCausalLM"],
    types: &["mistral"],
    defaults: &[("max_position_embeddings", 131_072.0), ("rms_norm_eps", 1e-6), ("num_key_value_heads", 8.0)],
    keys: mistral,
    ..LLAMA
};

pub(super) const MIXTRAL: Family = Family {
    classes: &["MixtralForCausalLM"],
    types: &["mixtral"],
    defaults: &[
        ("max_position_embeddings", 131_072.0),
        ("rms_norm_eps", 1e-5),
        ("num_key_value_heads", 8.0),
        ("num_local_experts", 8.0),
        ("num_experts_per_tok", 2.0),
    ],
    theta: (1_000_000.0, None),
    rules: &[ENDS, ATTENTION, FFN_NORM, MIXTRAL_EXPERTS],
    keys: mixtral,
    ..LLAMA
};

pub(super) const SMOLLM3: Family = Family {
    classes: &["SmolLM3ForCausalLM"],
    types: &["smollm3"],
    arch: "smollm3",
    defaults: &[
        ("max_position_embeddings", 32_768.0),
        ("rms_norm_eps", 1e-6),
        ("num_key_value_heads", 4.0),
        ("tie_word_embeddings", 1.0),
    ],
    theta: (2_000_000.0, None),
    keys: smollm3,
    ..LLAMA
};

pub(super) const GRANITE: Family =
    Family { classes: &["GraniteForCausalLM"], types: &["granite"], arch: "granite", keys: granite, ..LLAMA };

pub(super) const GRANITE_MOE: Family = Family {
    classes: &["GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"],
    types: &["granitemoe", "granitemoeshared"],
    arch: "granitemoe",
    defaults: &[
        ("max_position_embeddings", 2048.0),
        ("rms_norm_eps", 1e-6),
        ("num_local_experts", 8.0),
        ("num_experts_per_tok", 2.0),
    ],
    rules: &[ENDS, ATTENTION, FFN_NORM, GRANITE_EXPERTS],
    keys: granite_moe,
    ..LLAMA
};

/// The common keys, and what is turned of a head.
fn with_head_width(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    model.turns_all()?;
    model.common(keys)?;
    let width = model.head_width()?;
    keys.arch("vocab_size", model.vocabulary).arch("rope.dimension_count", width);
    Ok(())
}

fn llama(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    with_head_width(model, keys)?;
    state_head_width(model, keys)
}

/// transformers derives the width where a configuration leaves it out, and states it as if it had been there.
fn state_head_width(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let width = model.head_width()?;
    keys.arch("attention.key_length", width).arch("attention.value_length", width);
    Ok(())
}

fn mistral(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    model.config.leave_out("sliding_window", "positions beyond it are seen, as llama.cpp sees them");
    model.layers_are(|_| model.config.get("sliding_window").is_some(), "one kind of layer")?;
    with_head_width(model, keys)?;
    state_head_width(model, keys)
}

fn mixtral(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    model.config.must_be("sliding_window", Value::is_null, "null")?;
    with_head_width(model, keys)
}

fn smollm3(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let config = model.config;
    model.no_window()?;
    config.must_be("no_rope_layer_interval", |value| value == &Value::from(4), "4")?;
    let every_fourth = |value: &Value| {
        let list = value.as_array();
        list.is_some_and(|list| list.iter().enumerate().all(|(i, n)| n == &Value::from(u8::from(i % 4 != 3))))
    };
    config.must_be("no_rope_layers", every_fourth, "0 for every fourth layer and 1 for the others")?;
    with_head_width(model, keys)
}

fn multipliers(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    for (from, to) in [
        ("attention_multiplier", "attention.scale"),
        ("embedding_multiplier", "embedding_scale"),
        ("residual_multiplier", "residual_scale"),
        ("logits_scaling", "logit_scale"),
    ] {
        // Where a file says nothing, transformers multiplies by 1, and GGUF's absent keys are not always 1.
        keys.arch(to, model.config.f32_if(from)?.filter(|factor| *factor != 0.0).unwrap_or(1.0));
    }
    Ok(())
}

fn granite(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    if let Some(head) = model.head
        && Some(head) != model.hidden.checked_div(model.heads)
    {
        return Err(model
            .config
            .refused(format!("head_dim is {head}; models of this family derive it from hidden_size")));
    }
    with_head_width(model, keys)?;
    multipliers(model, keys)
}

fn granite_moe(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    granite(model, keys)?;
    let shared = model.config.u32_if("shared_intermediate_size")?.filter(|&length| length != 0);
    keys.arch_if("expert_shared_feed_forward_length", shared);
    Ok(())
}
