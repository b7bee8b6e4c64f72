use super::*;
use crate::error::{Code, Error, Place};
use crate::forward::subject;
use crate::forward::tests::tiny::{GEMMA3, LLAMA, Value, metadata, pairs};
use std::vec::Vec;

/// The keys of a tiny model with some replaced or added (`Some`) or left out (`None`).
fn read(architecture: &str, keys: &[(&str, Value<'_>)], changes: &[(&str, Option<Value<'_>>)]) -> Result<Config> {
    let kept = keys.iter().filter(|(key, _)| !changes.iter().any(|(changed, _)| changed == key)).copied();
    let added = changes.iter().filter_map(|(key, value)| Some((*key, (*value)?)));
    Config::read(&metadata(&pairs(architecture, &kept.chain(added).collect::<Vec<_>>())))
}

fn llama(changes: &[(&str, Option<Value<'_>>)]) -> Result<Config> {
    read("llama", LLAMA, changes)
}

fn gemma3(changes: &[(&str, Option<Value<'_>>)]) -> Result<Config> {
    read("gemma3", GEMMA3, changes)
}

/// A rotation that nothing stretches.
fn turned(base: f32) -> Rotation {
    Rotation { base, scale: 1.0, magnitude: 1.0, yarn: None }
}

fn scale(span: Span) -> f32 {
    span.rope.expect("rotary").scale
}

#[test]
fn defaults_are_those_of_the_format() {
    let rope = [("rope.scaling.type", None), ("rope.scaling.factor", None), ("rope.freq_base", None)];
    let all = [&rope[..], &[("attention.head_count_kv", None), ("rope.dimension_count", None)]].concat();
    let config = llama(&all).expect("it reads");
    assert_eq!((config.n_head(), config.n_head_kv(), config.head_dim(), config.rope_dims()), (4, 4, 4, 4));
    assert_eq!((config.query_len(), config.kv_len()), (16, 16));
    assert_eq!(config.span(0), Span { window: None, rope: Some(turned(10_000.0)) });
    assert_eq!((config.embedding_scale(), config.attention_scale()), (1.0, 0.5));
}

#[test]
fn the_window_spares_the_last_layer_of_a_period() {
    let config = gemma3(&[("attention.sliding_window_pattern", None), ("rope.freq_base_swa", None)]);
    let config = config.expect("it reads");
    let local = Span { window: Some(3), rope: Some(turned(10_000.0)) };
    let global = Span { window: None, rope: Some(turned(1000.0)) };
    let spans = [0, 4, 5, 6, 11, 12].map(|layer| config.span(layer));
    assert_eq!(spans, [local, local, global, local, global, local]);
    assert_eq!(config.embedding_scale(), 4.0);
    // Without a window every layer is global.
    let config = gemma3(&[("attention.sliding_window", None)]).expect("it reads");
    assert_eq!((config.span(0), config.span(1)), (global, global));
    // Linear scaling is for global layers.
    let config = gemma3(&[("rope.scaling.factor", Some(Value::F32(8.0)))]).expect("it reads");
    assert_eq!((scale(config.span(0)), scale(config.span(1))), (1.0, 0.125));
}

#[test]
fn gemma3_of_62_layers_scales_by_the_share_of_a_head() {
    let config = gemma3(&[("block_count", Some(Value::U32(62)))]).expect("it reads");
    assert_eq!(config.attention_scale(), 0.5);
    let config = gemma3(&[]).expect("it reads");
    assert!((config.attention_scale() - 1.0 / 6.0f32.sqrt()).abs() < 1e-7);
}

#[test]
fn a_missing_key_is_named() {
    for key in [
        "block_count",
        "context_length",
        "embedding_length",
        "feed_forward_length",
        "attention.head_count",
        "attention.layer_norm_rms_epsilon",
    ] {
        let error = llama(&[(key, None)]).expect_err(key);
        assert_eq!((error.code, subject(&error)), (Code::MissingKey, Some(key)));
    }
    let error = Config::read(&Metadata::EMPTY).expect_err("empty");
    assert_eq!((error.code, subject(&error)), (Code::MissingKey, Some("general.architecture")));
    // A head's length follows from the embedding only when that divides.
    let error = llama(&[("attention.head_count", Some(Value::U32(6)))]).expect_err("16 / 6");
    assert_eq!((error.code, subject(&error)), (Code::MissingKey, Some("attention.key_length")));
    let error = read("mamba", LLAMA, &[]).expect_err("not one of ours");
    assert_eq!(error, Error::new(Code::UnsupportedArchitecture, Place::File));
}

#[test]
fn numbers_out_of_range_are_refused_with_limit_and_value() {
    for (key, value) in [
        ("block_count", 0),
        ("block_count", u32::MAX),
        ("context_length", 0),
        ("context_length", u32::MAX),
        ("embedding_length", 0),
        ("embedding_length", 1 << 21),
        ("feed_forward_length", 0),
        ("feed_forward_length", u32::MAX),
        ("attention.head_count", 0),
        ("attention.head_count", 1 << 15),
        ("attention.head_count_kv", 0),
        ("attention.head_count_kv", 3),
        ("attention.head_count_kv", 5),
        ("attention.key_length", 0),
        ("attention.key_length", 1 << 15),
        ("rope.dimension_count", 0),
        ("rope.dimension_count", 3),
        ("rope.dimension_count", 6),
    ] {
        let error = llama(&[(key, Some(Value::U32(value)))]).expect_err(key);
        assert_eq!((error.code, error.found), (Code::MetadataRange, u64::from(value)), "{key} = {value}");
        assert!(matches!(error.place, Place::Key(_)), "{key}");
    }
    for (key, value) in [
        ("attention.layer_norm_rms_epsilon", f32::NAN),
        ("attention.layer_norm_rms_epsilon", 0.0),
        ("rope.freq_base", f32::INFINITY),
        ("rope.freq_base", -1.0),
        ("rope.scaling.factor", -1.0),
        ("rope.scaling.factor", f32::MIN_POSITIVE / 4.0),
    ] {
        let error = llama(&[(key, Some(Value::F32(value)))]).expect_err(key);
        assert_eq!((error.code, error.found), (Code::MetadataRange, u64::from(value.to_bits())), "{key} = {value}");
    }
    // Zero is how converters write "no scaling".
    let unscaled = llama(&[("rope.scaling.factor", Some(Value::F32(0.0)))]).expect("no scaling");
    assert_eq!(scale(unscaled.global()), 1.0);
    for (key, value) in [
        ("block_count", Value::F32(2.0)),
        ("block_count", Value::Str("2")),
        ("rope.freq_base", Value::U32(1)),
        ("attention.layer_norm_rms_epsilon", Value::Bool(true)),
    ] {
        let error = llama(&[(key, Some(value))]).expect_err(key);
        assert_eq!(error.code, Code::MetadataWrongType, "{key}");
    }
}

#[test]
fn what_this_build_does_not_compute_is_refused() {
    for (key, value) in [
        ("expert_weights_scale", Value::F32(2.0)),
        ("attention.value_length", Value::U32(8)),
        ("attention.head_count_kv", Value::List(&[2, 2])),
        ("attention.sliding_window", Value::U32(4096)),
        ("attention.causal", Value::Bool(false)),
        ("attention.scale", Value::F32(0.1)),
        ("rope.scaling.type", Value::Str("ntk")),
        ("rope.scaling.type", Value::U32(1)),
        ("rope.dimension_sections", Value::List(&[1, 1])),
        ("final_logit_softcapping", Value::F32(30.0)),
        ("logit_scale", Value::F32(0.25)),
        ("attention.max_alibi_bias", Value::F32(8.0)),
        ("use_parallel_residual", Value::Bool(true)),
    ] {
        let error = llama(&[(key, Some(value))]).expect_err(key);
        assert_eq!((error.code, subject(&error)), (Code::UnsupportedFeature, Some(key)));
        assert!(matches!(error.place, Place::Key(_)), "{key}");
    }
    for (key, value) in [
        ("expert_count", Value::U32(0)),
        ("attention.value_length", Value::U32(4)),
        ("attention.sliding_window", Value::U32(0)),
        ("attention.causal", Value::Bool(true)),
        ("final_logit_softcapping", Value::F32(0.0)),
        ("logit_scale", Value::F32(1.0)),
        ("some.other.key", Value::F32(7.0)),
    ] {
        assert!(llama(&[(key, Some(value))]).is_ok(), "{key}");
    }
    let unscaled = llama(&[("rope.scaling.type", Some(Value::Str("none")))]).expect("it reads");
    assert_eq!(scale(unscaled.span(0)), 1.0);
}
