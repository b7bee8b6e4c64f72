//! Command R and Command R7B.

use super::llama::{ATTENTION, ENDS, GATED, HEAD_NORMS, LLAMA};
use super::{Family, Model};
use crate::error::Result;
use crate::hf::keys::Keys;
use crate::hf::names::{Rule, Step, rule};
use crate::hf::rope::Kind;

/// Of norms, whose biases are all zero.
const NORM_BIASES: &[Rule] = &[
    rule("model.norm", "output_norm", Step::Norm),
    rule("model.layers.{}.input_layernorm", "blk.{}.attn_norm", Step::Norm),
];

pub(super) const COMMAND_R: Family = Family {
    classes: &["CohereForCausalLM"],
    types: &["cohere"],
    arch: "command-r",
    defaults: &[
        ("max_position_embeddings", 8192.0),
        ("layer_norm_eps", 1e-5),
        ("logit_scale", 0.0625),
        ("tie_word_embeddings", 1.0),
    ],
    theta: (500_000.0, None),
    rules: &[ENDS, ATTENTION, HEAD_NORMS, GATED],
    interleaves: false,
    keys: command_r,
    ..LLAMA
};

pub(super) const COHERE2: Family = Family {
    classes: &["Cohere2ForCausalLM"],
    types: &["cohere2"],
    arch: "cohere2",
    defaults: &[
        ("max_position_embeddings", 8192.0),
        ("layer_norm_eps", 1e-5),
        ("logit_scale", 0.0625),
        ("tie_word_embeddings", 1.0),
        ("sliding_window", 4096.0),
    ],
    theta: (10_000.0, None),
    rules: &[ENDS, NORM_BIASES, ATTENTION, GATED],
    keys: cohere2,
    ..COMMAND_R
};

fn command_r(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let config = model.config;
    model.turns_all()?;
    unscaled(model)?;
    model.common(keys)?;
    // The window of positions that it was trained for stands under the tokenizer's name for it.
    if let Some(length) = config.u32_if("model_max_length")? {
        keys.arch("context_length", length);
    }
    keys.arch("logit_scale", config.f32("logit_scale")?).arch("rope.scaling.type", "none");
    config.get("use_qk_norm");
    Ok(())
}

/// Of these families GGUF says that nothing scales the rotation.
fn unscaled(model: &Model<'_>) -> Result<()> {
    if model.rope.full.kind == Kind::Default {
        return Ok(());
    }
    Err(model.config.refused("its rope_scaling; of this family only an unscaled rotation is understood"))
}

fn cohere2(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let config = model.config;
    unscaled(model)?;
    model.common(keys)?;
    for key in ["sliding_window_pattern", "_sliding_window_pattern"] {
        config.must_be(key, |value| value == &serde_json::Value::from(4), "4 (every fourth layer sees everything)")?;
    }
    model.layers_are(|i| i % 4 != 3, "a window in all but every fourth layer")?;
    keys.arch("logit_scale", config.f32("logit_scale")?);
    keys.arch("attention.sliding_window", config.u32("sliding_window")?).arch("vocab_size", model.vocabulary);
    keys.arch("rope.dimension_count", model.turned(model.head_width()?)?).arch("rope.scaling.type", "none");
    for key in [
        "layer_switch",
        "order_of_interleaved_layers",
        "position_embedding_type",
        "rotary_pct",
        "use_embedding_sharing",
        "use_gated_activation",
        "use_parallel_block",
        "use_parallel_embedding",
        "use_qk_norm",
    ] {
        config.get(key);
    }
    Ok(())
}
