//! Gemma 1, 2 and 3.

use super::llama::{ATTENTION, ENDS, FFN_NORM, GATED, HEAD_NORMS, LLAMA};
use super::{Family, Model};
use crate::error::Result;
use crate::hf::keys::Keys;
use crate::hf::names::{Rule, Step, rule};
use crate::hf::rope::Kind;
use serde_json::Value;

const FOUR_NORMS: &[Rule] = &[
    rule("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm", Step::Norm),
    rule("model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm", Step::Norm),
    rule("model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm", Step::Norm),
];

pub(super) const GEMMA: Family = Family {
    classes: &["GemmaForCausalLM"],
    types: &["gemma"],
    arch: "gemma",
    // What the first files call gelu is computed by the tanh form.
    activations: &["gelu_pytorch_tanh", "gelu"],
    defaults: &[
        ("max_position_embeddings", 8192.0),
        ("rms_norm_eps", 1e-6),
        ("num_key_value_heads", 16.0),
        ("head_dim", 256.0),
        ("tie_word_embeddings", 1.0),
    ],
    rules: &[ENDS, ATTENTION, FFN_NORM, GATED],
    interleaves: false,
    norm_offset: 1.0,
    keys: gemma,
    ..LLAMA
};

pub(super) const GEMMA2: Family = Family {
    classes: &["Gemma2ForCausalLM"],
    types: &["gemma2"],
    arch: "gemma2",
    activations: &["gelu_pytorch_tanh"],
    defaults: &[
        ("max_position_embeddings", 8192.0),
        ("rms_norm_eps", 1e-6),
        ("num_key_value_heads", 4.0),
        ("head_dim", 256.0),
        ("tie_word_embeddings", 1.0),
        ("query_pre_attn_scalar", 256.0),
        ("sliding_window", 4096.0),
        ("attn_logit_softcapping", 50.0),
        ("final_logit_softcapping", 30.0),
    ],
    rules: &[ENDS, ATTENTION, FOUR_NORMS, GATED],
    keys: gemma2,
    ..GEMMA
};

pub(super) const GEMMA3: Family = Family {
    classes: &["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"],
    types: &["gemma3_text", "gemma3"],
    arch: "gemma3",
    defaults: &[
        ("vocab_size", 262_208.0),
        ("max_position_embeddings", 131_072.0),
        ("rms_norm_eps", 1e-6),
        ("num_attention_heads", 8.0),
        ("num_key_value_heads", 4.0),
        ("head_dim", 256.0),
        ("tie_word_embeddings", 1.0),
        ("query_pre_attn_scalar", 256.0),
        ("sliding_window", 4096.0),
    ],
    theta: (1_000_000.0, Some(10_000.0)),
    rules: &[ENDS, ATTENTION, HEAD_NORMS, FOUR_NORMS, GATED],
    keys: gemma3,
    ..GEMMA2
};

/// The keys of the first two, which have no rotary ones.
fn bare(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let config = model.config;
    model.turns_all()?;
    no_both_ways(model)?;
    keys.arch("context_length", config.u32("max_position_embeddings")?);
    keys.arch("embedding_length", model.hidden).arch("block_count", model.layers);
    keys.arch("feed_forward_length", config.u32("intermediate_size")?);
    keys.arch("attention.head_count", model.heads).arch("attention.head_count_kv", model.kv_heads);
    keys.arch("attention.layer_norm_rms_epsilon", config.f32("rms_norm_eps")?);
    keys.arch_if("attention.key_length", model.head).arch_if("attention.value_length", model.head);
    keys.set("general.file_type", model.file_type);
    if (model.rope.full.theta, &model.rope.full.kind) != (10_000.0, &Kind::Default) {
        model.rope.write(keys);
    }
    config.get("attention_bias");
    Ok(())
}

fn gemma(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    bare(model, keys)
}

fn gemma2(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let config = model.config;
    scale_follows(model, 46)?;
    model.layers_are(|i| i % 2 == 0, "a window in every other layer, the first one with")?;
    bare(model, keys)?;
    keys.arch("attn_logit_softcapping", config.f32("attn_logit_softcapping")?);
    keys.arch("final_logit_softcapping", config.f32("final_logit_softcapping")?);
    keys.arch("attention.sliding_window", config.u32("sliding_window")?);
    Ok(())
}

fn gemma3(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let config = model.config;
    model.turns_all()?;
    no_both_ways(model)?;
    scale_follows(model, 62)?;
    config.must_be("attn_logit_softcapping", Value::is_null, "null")?;
    for key in ["sliding_window_pattern", "_sliding_window_pattern"] {
        config.must_be(key, |value| value == &Value::from(6), "6 (every sixth layer sees everything)")?;
    }
    model.layers_are(|i| i % 6 != 5, "a window in all but every sixth layer")?;
    model.common(keys)?;
    let cap = config.f32_if("final_logit_softcapping")?.filter(|cap| *cap != 0.0);
    keys.arch_if("final_logit_softcapping", cap);
    keys.arch_if("attention.sliding_window", config.u32_if("sliding_window")?);
    Ok(())
}

fn no_both_ways(model: &Model<'_>) -> Result<()> {
    model.config.must_be("use_bidirectional_attention", |value| value == &Value::Bool(false), "false")
}

/// GGUF has no key for what queries are scaled by: it follows from the width of a head, in the one model of `layers` layers from
/// that of all.
fn scale_follows(model: &Model<'_>, layers: u32) -> Result<()> {
    let width = if model.layers == layers { model.hidden.checked_div(model.heads) } else { model.head };
    let stated = model.config.f32_if("query_pre_attn_scalar")?.map(f64::from);
    if stated != width.map(f64::from) {
        return Err(model.config.refused(format!(
            "query_pre_attn_scalar is {}; of this family only models with {} are understood. --raw takes the tensors as \
             they are",
            stated.unwrap_or_default(),
            width.unwrap_or_default()
        )));
    }
    Ok(())
}
