//! A `config.json` from GGUF's keys.

use crate::error::{Error, Result};
use crate::hf::family::Family;
use crate::source::SourceTensor;
use p64_core::DType;
use p64_core::limits::MAX_LAYERS;
use p64_core::metadata::{Metadata, Value as Entry};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The divisors of Llama 3.1 and 3.2, which GGUF keeps as a tensor: factor, and the context that was stretched.
const LLAMA3: &[(f64, u32)] = &[(8.0, 8192), (32.0, 8192), (4.0, 8192), (16.0, 8192)];

struct Keys<'m, 'a> {
    path: &'m Path,
    arch: &'static str,
    metadata: &'m Metadata<'a>,
    out: Map<String, Value>,
}

impl Keys<'_, '_> {
    fn refused(&self, reason: impl std::fmt::Display) -> Error {
        Error::refused(self.path, format!("no config.json can be made for this model: {reason}"))
    }

    fn entry(&self, key: &str) -> Option<Entry<'_>> {
        self.metadata.get(&format!("{}.{key}", self.arch))
    }

    fn whole(&self, key: &str) -> Option<u32> {
        self.entry(key)?.as_u64().and_then(|value| u32::try_from(value).ok())
    }

    fn float(&self, key: &str) -> Option<f64> {
        match self.entry(key)? {
            // The shortest decimal that is this f32, as a person would have written it.
            Entry::F32(value) => value.to_string().parse().ok(),
            Entry::F64(value) => Some(value),
            _ => None,
        }
    }

    fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.out.insert(key.to_owned(), value.into());
    }

    fn copy(&mut self, to: &str, from: &str) -> Result<()> {
        let value = self.whole(from).ok_or_else(|| self.refused(format!("{}.{from} is missing", self.arch)))?;
        self.set(to, value);
        Ok(())
    }

    fn copy_if(&mut self, to: &str, from: &str) {
        if let Some(value) = self.whole(from) {
            self.set(to, value);
        }
    }

    fn copy_float(&mut self, to: &str, from: &str) {
        if let Some(value) = self.float(from) {
            self.set(to, value);
        }
    }
}

/// The text for a model of the family.
pub(super) fn make(
    path: &Path,
    metadata: &Metadata<'_>,
    family: &Family,
    tensors: &[SourceTensor<'_>],
) -> Result<String> {
    let mut keys = Keys { path, arch: family.arch, metadata, out: Map::new() };
    let has = |name: &str| tensors.iter().any(|tensor| tensor.name == name);
    keys.set("architectures", json!(family.classes.get(..1)));
    keys.set("model_type", family.types.first().copied().unwrap_or_default());
    let embedding = tensors.iter().find(|tensor| tensor.name == "token_embd.weight");
    let vocabulary = embedding.and_then(|tensor| tensor.payload.shape().dims().get(1).copied());
    keys.set("vocab_size", vocabulary.ok_or_else(|| keys.refused("there is no token_embd.weight"))?);
    keys.set("tie_word_embeddings", !has("output.weight"));
    let dtype = embedding.map_or("float32", |tensor| match tensor.payload.dtype() {
        p64_core::DType::F16 => "float16",
        p64_core::DType::BF16 => "bfloat16",
        _ => "float32",
    });
    keys.set("torch_dtype", dtype);
    for (name, role) in [("bos_token_id", "bos"), ("eos_token_id", "eos")] {
        if let Some(id) = metadata.u32(&format!("tokenizer.ggml.{role}_token_id")).ok().flatten() {
            keys.set(name, id);
        }
    }
    if let Some(layers) = keys.whole("block_count").filter(|&layers| layers > MAX_LAYERS) {
        return Err(keys.refused(format!("{layers} layers; {MAX_LAYERS} are the limit")));
    }
    if family.arch == "gpt2" {
        keys.set("activation_function", "gelu_new");
        for (to, from) in [
            ("n_layer", "block_count"),
            ("n_positions", "context_length"),
            ("n_ctx", "context_length"),
            ("n_embd", "embedding_length"),
            ("n_inner", "feed_forward_length"),
            ("n_head", "attention.head_count"),
        ] {
            keys.copy(to, from)?;
        }
        keys.copy_float("layer_norm_epsilon", "attention.layer_norm_epsilon");
        return Ok(text(keys.out));
    }
    let activation = family.activations.first().copied().unwrap_or_default();
    let gemma = ["gemma2", "gemma3"].contains(&family.arch);
    keys.set(if gemma { "hidden_activation" } else { "hidden_act" }, activation);
    for (to, from) in [
        ("num_hidden_layers", "block_count"),
        ("max_position_embeddings", "context_length"),
        ("hidden_size", "embedding_length"),
        ("intermediate_size", "feed_forward_length"),
        ("num_attention_heads", "attention.head_count"),
    ] {
        keys.copy(to, from)?;
    }
    let heads = keys.whole("attention.head_count");
    keys.set("num_key_value_heads", keys.whole("attention.head_count_kv").or(heads));
    for (to, from) in [
        ("head_dim", "attention.key_length"),
        ("num_experts_per_tok", "expert_used_count"),
        ("moe_intermediate_size", "expert_feed_forward_length"),
        ("shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
    ] {
        keys.copy_if(to, from);
    }
    let experts = if family.arch.starts_with("qwen") { "num_experts" } else { "num_local_experts" };
    keys.copy_if(experts, "expert_count");
    keys.copy_float("rms_norm_eps", "attention.layer_norm_rms_epsilon");
    keys.copy_float("layer_norm_eps", "attention.layer_norm_epsilon");
    let norm = if family.arch == "stablelm" { "use_qkv_bias" } else { "attention_bias" };
    keys.set(norm, has("blk.0.attn_q.bias"));
    keys.set("mlp_bias", has("blk.0.ffn_down.bias"));
    of_family(&mut keys, family, &has);
    rope(&mut keys, family, tensors)?;
    Ok(text(keys.out))
}

fn text(out: Map<String, Value>) -> String {
    let mut text = serde_json::to_string_pretty(&Value::Object(out)).unwrap_or_default();
    text.push('\n');
    text
}

/// Bytes of the longest list of factors: one for each pair of elements of a head.
const MAX_FACTORS: u64 = 1 << 16;

/// What only some families have.
fn of_family(keys: &mut Keys<'_, '_>, family: &Family, has: &dyn Fn(&str) -> bool) {
    match family.arch {
        "granite" | "granitemoe" => {
            for (to, from) in [
                ("attention_multiplier", "attention.scale"),
                ("embedding_multiplier", "embedding_scale"),
                ("residual_multiplier", "residual_scale"),
                ("logits_scaling", "logit_scale"),
            ] {
                keys.copy_float(to, from);
            }
            if let Some(length) = keys.whole("expert_shared_feed_forward_length") {
                keys.set("shared_intermediate_size", length);
            }
        }
        "command-r" | "cohere2" => {
            keys.copy_float("logit_scale", "logit_scale");
            keys.copy_if("sliding_window", "attention.sliding_window");
            if family.arch == "command-r" {
                keys.set("use_qk_norm", has("blk.0.attn_q_norm.weight"));
            }
        }
        "gemma2" | "gemma3" => {
            keys.copy_if("sliding_window", "attention.sliding_window");
            keys.copy_float("attn_logit_softcapping", "attn_logit_softcapping");
            keys.copy_float("final_logit_softcapping", "final_logit_softcapping");
            let layers = keys.whole("block_count");
            let large = layers == Some(if family.arch == "gemma2" { 46 } else { 62 });
            let width = match (keys.whole("embedding_length"), keys.whole("attention.head_count")) {
                (Some(length), Some(heads)) if large => length.checked_div(heads),
                _ => keys.whole("attention.key_length"),
            };
            if let Some(width) = width {
                keys.set("query_pre_attn_scalar", width);
            }
        }
        "olmo2" => {
            keys.copy_if("sliding_window", "attention.sliding_window");
            if let Some(pattern) = keys.entry("attention.sliding_window_pattern").and_then(|value| value.as_array()) {
                let kind = |entry: Entry<'_>| match entry.as_bool() {
                    Some(true) => "sliding_attention",
                    _ => "full_attention",
                };
                let types: Vec<&str> = pattern.iter().map(kind).collect();
                keys.set("layer_types", types);
                // Which of the two it is shows in the window alone.
                keys.set("architectures", json!(["Olmo3ForCausalLM"]));
                keys.set("model_type", "olmo3");
            }
        }
        "stablelm" => {
            keys.set("use_parallel_residual", !has("blk.0.ffn_norm.weight"));
            keys.set("qk_layernorm", has("blk.0.attn_q_norm.weight"));
        }
        "smollm3" => {
            let layers = keys.whole("block_count").unwrap_or_default();
            let turned: Vec<u8> = (0..layers).map(|i| u8::from(i % 4 != 3)).collect();
            keys.set("no_rope_layers", turned);
        }
        "phi3" => {
            let window = keys.whole("attention.sliding_window").filter(|&window| window != 0);
            keys.set("sliding_window", window);
            keys.copy_if("original_max_position_embeddings", "rope.scaling.original_context_length");
        }
        "qwen3moe" => keys.set("norm_topk_prob", true),
        "qwen2moe" => keys.set("norm_topk_prob", false),
        _ => {}
    }
}

/// How positions turn queries and keys, in the words that transformers has had longest.
fn rope(keys: &mut Keys<'_, '_>, family: &Family, tensors: &[SourceTensor<'_>]) -> Result<()> {
    let theta = keys.float("rope.freq_base").unwrap_or(family.theta.0);
    keys.set("rope_theta", theta);
    if let Some(local) = keys.float("rope.freq_base_swa").or(family.theta.1) {
        keys.set("rope_local_base_freq", local);
    }
    let width = keys
        .whole("attention.key_length")
        .or_else(|| keys.whole("embedding_length")?.checked_div(keys.whole("attention.head_count")?));
    if let Some((turned, width)) =
        keys.whole("rope.dimension_count").zip(width).filter(|(turned, width)| turned != width)
    {
        keys.set("partial_rotary_factor", f64::from(turned) / f64::from(width.max(1)));
    }
    let values = |name: &str| -> Result<Option<Vec<f64>>> {
        let Some(tensor) = tensors.iter().find(|tensor| tensor.name == name) else { return Ok(None) };
        if tensor.payload.dtype() != DType::F32 || tensor.payload.len() > MAX_FACTORS {
            return Err(keys.refused(format!("{name}: expected at most {MAX_FACTORS} bytes of F32")));
        }
        let mut bytes = vec![0u8; usize::try_from(tensor.payload.len()).unwrap_or(0)];
        tensor.payload.read_at(0, &mut bytes)?;
        let shortest = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes).to_string().parse().unwrap_or_default();
        Ok(Some(bytes.as_chunks().0.iter().map(shortest).collect()))
    };
    if let Some(factors) = values("rope_freqs.weight")? {
        let width = width.unwrap_or_default();
        let fits = |&&(factor, context): &&(f64, u32)| {
            if usize::try_from(width.div_ceil(2)) != Ok(factors.len()) {
                return false;
            }
            let made = crate::hf::rope::llama3_divisors(theta, width, factor, 1.0, 4.0, context.into());
            made.len() == factors.len()
                && made.iter().zip(&factors).all(|(a, b)| (f64::from(*a) - b).abs() <= 1e-5 * b.abs())
        };
        let Some((factor, context)) = LLAMA3.iter().find(fits) else {
            return Err(keys.refused("rope_freqs.weight holds divisors that no known rope_scaling gives"));
        };
        keys.set(
            "rope_scaling",
            json!({"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": context}),
        );
        return Ok(());
    }
    if let (Some(long), Some(short)) = (values("rope_factors_long.weight")?, values("rope_factors_short.weight")?) {
        keys.set("rope_scaling", json!({"type": "longrope", "long_factor": long, "short_factor": short}));
        return Ok(());
    }
    let factor = keys.float("rope.scaling.factor");
    match (keys.metadata.str(&format!("{}.rope.scaling.type", keys.arch)).ok().flatten(), factor) {
        (Some("linear"), Some(factor)) => keys.set("rope_scaling", json!({"rope_type": "linear", "factor": factor})),
        (Some("yarn"), Some(factor)) => {
            let mut scaling = Map::new();
            scaling.insert("rope_type".to_owned(), "yarn".into());
            scaling.insert("factor".to_owned(), factor.into());
            if let Some(context) = keys.whole("rope.scaling.original_context_length") {
                scaling.insert("original_max_position_embeddings".to_owned(), context.into());
            }
            for (to, from) in [
                ("attention_factor", "rope.scaling.yarn_attn_factor"),
                ("beta_fast", "rope.scaling.yarn_beta_fast"),
                ("beta_slow", "rope.scaling.yarn_beta_slow"),
            ] {
                if let Some(value) = keys.float(from) {
                    scaling.insert(to.to_owned(), value.into());
                }
            }
            keys.set("rope_scaling", Value::Object(scaling));
        }
        _ => {}
    }
    Ok(())
}
