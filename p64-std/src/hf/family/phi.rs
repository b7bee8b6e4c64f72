//! Phi 3, 3.5 and 4.

use super::llama::{ENDS, FFN_NORM, LLAMA};
use super::{Family, Model};
use crate::error::Result;
use crate::hf::config::to_f32;
use crate::hf::keys::Keys;
use crate::hf::names::{Rule, Step, rule, same};
use crate::hf::rope::Kind;

const LAYER: &[Rule] = &[
    rule("model.layers.{}.input_layernorm", "blk.{}.attn_norm", Step::Norm),
    same("model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv"),
    same("model.layers.{}.self_attn.o_proj", "blk.{}.attn_output"),
    same("model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
    same("model.layers.{}.mlp.down_proj", "blk.{}.ffn_down"),
];

pub(super) const PHI3: Family = Family {
    classes: &["Phi3ForCausalLM"],
    types: &["phi3"],
    arch: "phi3",
    defaults: &[
        ("max_position_embeddings", 4096.0),
        ("original_max_position_embeddings", 4096.0),
        ("rms_norm_eps", 1e-5),
    ],
    rules: &[ENDS, FFN_NORM, LAYER],
    interleaves: false,
    trusts_special: true,
    keys: phi3,
    ..LLAMA
};

fn phi3(model: &Model<'_>, keys: &mut Keys) -> Result<()> {
    let (config, rope) = (model.config, &model.rope);
    let context = config.u32("max_position_embeddings")?;
    let original = match rope.original_context {
        Some(original) => original,
        None => config.u32("original_max_position_embeddings")?,
    };
    if original == 0 || context == 0 {
        return Err(config.refused("max_position_embeddings is 0"));
    }
    match &rope.full.kind {
        Kind::Long { short, long } => {
            let pairs = model.turned(model.head_width()?)? / 2;
            if [short.len(), long.len()] != [usize::try_from(pairs).unwrap_or(usize::MAX); 2] {
                return Err(config.refused(format!(
                    "rope_parameters: {} short and {} long factors, expected {pairs} of each",
                    short.len(),
                    long.len()
                )));
            }
            let (scale, original) = (f64::from(context) / f64::from(original), f64::from(original));
            let factor = if scale > 1.0 { (1.0 + scale.ln() / original.ln()).sqrt() } else { 1.0 };
            keys.arch("rope.scaling.attn_factor", to_f32(factor));
        }
        Kind::Default => {}
        other => return Err(config.refused(format!("rope_parameters: {other:?} is not understood of this family"))),
    }
    keys.arch("context_length", context).arch("rope.scaling.original_context_length", original);
    keys.arch("embedding_length", model.hidden);
    keys.arch("feed_forward_length", config.u32("intermediate_size")?).arch("block_count", model.layers);
    keys.arch("attention.head_count", model.heads).arch("attention.head_count_kv", model.kv_heads);
    keys.arch("attention.layer_norm_rms_epsilon", config.f32("rms_norm_eps")?);
    keys.arch("rope.dimension_count", model.turned(model.head_width()?)?);
    keys.arch("rope.freq_base", to_f32(rope.full.theta));
    keys.set("general.file_type", model.file_type);
    // A window of 0 sets Phi-4 apart, which has none.
    model.layers_are(|_| false, "one kind of layer").or_else(|error| match config.get("sliding_window") {
        Some(_) => model.layers_are(|_| true, "one kind of layer"),
        None => Err(error),
    })?;
    keys.arch("attention.sliding_window", config.u32_if("sliding_window")?.unwrap_or(0));
    Ok(())
}
