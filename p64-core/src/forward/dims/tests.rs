use super::*;
use crate::error::{Code, Error, Place};
use crate::forward::subject;
use crate::forward::tests::tiny::{GEMMA3, LLAMA, Value, metadata, pairs};
#[cfg(feature = "all-families")]
use crate::kernel::generic::rope::Yarn;
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

#[cfg(feature = "all-families")]
/// A head of 64, trained on 4096 positions: the pairs that turn 32 times and once over them are 10.47 and 22.51.
#[test]
fn yarn_is_llama_cpps() {
    let keys = [
        ("embedding_length", Some(Value::U32(256))),
        ("rope.dimension_count", Some(Value::U32(64))),
        ("rope.freq_base", Some(Value::F32(10_000.0))),
        ("rope.scaling.type", Some(Value::Str("yarn"))),
        ("rope.scaling.factor", Some(Value::F32(4.0))),
        ("rope.scaling.original_context_length", Some(Value::U32(4096))),
    ];
    let rotation = llama(&keys).expect("it reads").span(0).rope.expect("rotary");
    assert_eq!((rotation.base, rotation.scale), (10_000.0, 0.25));
    assert_eq!(rotation.yarn, Some(Yarn { low: 10.0, high: 23.0 }));
    assert!((rotation.magnitude - 1.138_629_4).abs() < 1e-6, "{}", rotation.magnitude);
    let factor = ("rope.scaling.attn_factor", Some(Value::F32(2.0)));
    let rotation = llama(&[&keys[..], &[factor]].concat()).expect("it reads").span(0).rope.expect("rotary");
    assert!((rotation.magnitude - 2.277_258_9).abs() < 1e-6, "{}", rotation.magnitude);
    // A factor below 1 sharpens nothing; without the key the context is the original one: 64 positions, so that no pair
    // turns 32 times over it, and the pair that turns once is 8.06.
    let short = [&keys[..4], &[("rope.scaling.factor", Some(Value::F32(0.5)))]].concat();
    let rotation = llama(&short).expect("it reads").span(0).rope.expect("rotary");
    assert_eq!((rotation.scale, rotation.magnitude), (2.0, 1.0));
    assert_eq!(rotation.yarn, Some(Yarn { low: 0.0, high: 9.0 }));
}

#[test]
fn the_attention_factor_goes_with_every_scaling() {
    let factor = ("rope.scaling.attn_factor", Some(Value::F32(1.25)));
    let magnitude = |config: Config, layer| config.span(layer).rope.map(|rope| rope.magnitude);
    assert_eq!(magnitude(llama(&[factor]).expect("it reads"), 0), Some(1.25));
    let config = gemma3(&[factor]).expect("it reads");
    assert_eq!((magnitude(config, 0), magnitude(config, 1)), (Some(1.25), Some(1.25)));
    if cfg!(not(feature = "all-families")) {
        return;
    }
    // OLMo 3's local layers are not touched by anything.
    let window = ("attention.sliding_window", Some(Value::U32(3)));
    let config = read("olmo2", LLAMA, &[factor, window]).expect("it reads");
    assert_eq!((magnitude(config, 2), magnitude(config, 3)), (Some(1.0), Some(1.25)));
    assert_eq!(config.span(2), Span { window: Some(3), rope: Some(turned(100.0)) });
}

#[cfg(feature = "all-families")]
#[test]
fn long_divisors_are_for_some_families_and_types() {
    let context = ("rope.scaling.original_context_length", Some(Value::U32(32)));
    let long = ("rope.scaling.type", Some(Value::Str("longrope")));
    assert_eq!(llama(&[context]).expect("it reads").short_context(), None);
    assert_eq!(llama(&[context, long]).expect("it reads").short_context(), Some(32));
    assert_eq!(read("phi3", LLAMA, &[context]).expect("it reads").short_context(), Some(32));
    assert_eq!(read("phi3", LLAMA, &[]).expect("it reads").short_context(), Some(64));
    assert_eq!(read("qwen2", LLAMA, &[context, long]).expect("it reads").short_context(), None);
}

#[cfg(feature = "all-families")]
#[test]
fn layers_that_differ_are_those_of_the_family() {
    let window = ("attention.sliding_window", Some(Value::U32(7)));
    let spans = |config: Result<Config>| {
        let config = config.expect("it reads");
        [0, 1, 2, 3, 4].map(|layer| config.span(layer)).map(|span| (span.window, span.rope.is_some()))
    };
    let (all, none) = ((None, true), (None, false));
    let local = (Some(7), true);
    assert_eq!(spans(read("smollm3", LLAMA, &[])), [all, all, all, none, all]);
    assert_eq!(spans(read("gemma2", LLAMA, &[window])), [local, all, local, all, local]);
    assert_eq!(spans(read("gemma2", LLAMA, &[]))[..2], [(Some(4096), true), all]);
    assert_eq!(spans(read("phi3", LLAMA, &[window])), [all; 5]);
    assert_eq!(spans(read("olmo2", LLAMA, &[])), [all; 5]);
    let keys =
        [window, ("logit_scale", Some(Value::F32(0.5))), ("attention.layer_norm_epsilon", Some(Value::F32(1e-5)))];
    assert_eq!(spans(read("cohere2", LLAMA, &keys)), [local, local, local, none, local]);
    for (at, key) in ["attention.sliding_window", "logit_scale", "attention.layer_norm_epsilon"].iter().enumerate() {
        let others: Vec<_> = keys.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, key)| *key).collect();
        let error = read("cohere2", LLAMA, &others).expect_err(key);
        assert_eq!((error.code, subject(&error)), (Code::MissingKey, Some(*key)));
    }
    // A list that says the same for each layer; one that no period gives is refused.
    let pattern = |list| ("attention.sliding_window_pattern", Some(Value::List(list)));
    assert_eq!(spans(read("olmo2", LLAMA, &[window, pattern(&[1, 0])])), [local, all, local, all, local]);
    assert_eq!(spans(read("olmo2", LLAMA, &[window, pattern(&[1, 1, 1])])), [local; 5]);
    assert_eq!(spans(read("olmo2", LLAMA, &[window, pattern(&[0, 0])])), [all; 5]);
    for list in [&[1, 0, 0, 1][..], &[1]] {
        let error = read("olmo2", LLAMA, &[window, pattern(list)]).expect_err("irregular, or too short");
        assert_eq!(subject(&error), Some("attention.sliding_window_pattern"));
    }
    let nothing = ("attention.sliding_window_pattern", Some(Value::U32(0)));
    assert_eq!(spans(read("olmo2", LLAMA, &[window, nothing])), [local; 5]);
    let off = ("rope.scaling.finetuned", Some(Value::Bool(false)));
    assert_eq!(spans(read("granite", LLAMA, &[off, keys[1]])), [none; 5]);
    assert_eq!(spans(read("llama", LLAMA, &[off])), [all; 5]);
}

#[cfg(feature = "all-families")]
#[test]
fn factors_and_caps_are_those_of_the_family() {
    let keys = [
        ("logit_scale", Some(Value::F32(8.0))),
        ("residual_scale", Some(Value::F32(0.25))),
        ("embedding_scale", Some(Value::F32(12.0))),
        ("attention.scale", Some(Value::F32(0.125))),
    ];
    let factors = |config: Config| {
        (config.logit_scale(), config.residual_scale(), config.embedding_scale(), config.attention_scale())
    };
    assert_eq!(factors(read("granite", LLAMA, &keys).expect("it reads")), (0.125, 0.25, 12.0, 0.125));
    assert_eq!(factors(read("granite", LLAMA, &keys[..1]).expect("it reads")), (0.125, 1.0, 1.0, 0.5));
    let error = read("granite", LLAMA, &keys[1..]).expect_err("it is needed");
    assert_eq!((error.code, subject(&error)), (Code::MissingKey, Some("logit_scale")));
    let layer = ("attention.layer_norm_epsilon", Some(Value::F32(1e-5)));
    assert_eq!(factors(read("command-r", LLAMA, &[keys[0], layer]).expect("it reads")).0, 8.0);
    assert_eq!(factors(read("command-r", LLAMA, &[layer]).expect("it reads")).0, 1.0);

    let cap = ("final_logit_softcapping", Some(Value::F32(20.0)));
    let caps = |config: Config| (config.attention_softcap(), config.final_softcap());
    assert_eq!(caps(read("gemma2", LLAMA, &[]).expect("it reads")), (Some(50.0), Some(30.0)));
    assert_eq!(caps(read("gemma2", LLAMA, &[cap]).expect("it reads")), (Some(50.0), Some(20.0)));
    assert_eq!(caps(read("gemma3", LLAMA, &[cap]).expect("it reads")), (None, Some(20.0)));
    assert_eq!(caps(read("gemma3", LLAMA, &[]).expect("it reads")), (None, None));
    // One over it would be infinite, and the logits no numbers.
    for cap in [1e-39, f32::INFINITY, -1.0] {
        let error = read("gemma2", LLAMA, &[("final_logit_softcapping", Some(Value::F32(cap)))]).expect_err("a cap");
        assert_eq!((error.code, error.found), (Code::MetadataRange, u64::from(cap.to_bits())));
    }
    let scale = |layers| read("gemma2", LLAMA, &[("block_count", Some(Value::U32(layers))), KEY_LENGTH]);
    assert_eq!(scale(46).expect("it reads").attention_scale(), 0.5);
    assert_eq!(scale(26).expect("it reads").attention_scale(), 0.25);
}

#[cfg(feature = "all-families")]
const KEY_LENGTH: (&str, Option<Value<'_>>) = ("attention.key_length", Some(Value::U32(16)));

/// Firmware builds without `all-families`; what that leaves out is refused, not computed differently.
#[cfg(not(feature = "all-families"))]
#[test]
fn a_small_build_refuses_what_it_left_out() {
    use crate::forward::Architecture;
    assert_eq!(Architecture::SUPPORTED, ["llama", "gemma3"]);
    for name in ["qwen2", "gemma2", "smollm3", "granite", "gpt2", "phi3"] {
        let error = read(name, LLAMA, &[]).expect_err(name);
        assert_eq!((error.code, error.place), (Code::UnsupportedArchitecture, Place::File));
    }
    // Gemma 3's files say a period, if anything.
    let keys = [7, 3].map(Value::U32).map(Some);
    let list = Some(Value::List(&[1, 1, 1, 1, 1, 0]));
    let window = [("attention.sliding_window", keys[0]), ("attention.sliding_window_pattern", list)];
    let error = gemma3(&window).expect_err("a list");
    assert_eq!((error.code, subject(&error)), (Code::UnsupportedFeature, Some("attention.sliding_window_pattern")));
    assert!(gemma3(&[window[0], ("attention.sliding_window_pattern", keys[1])]).is_ok());
    let experts = [("expert_count", Some(Value::U32(8))), ("expert_used_count", Some(Value::U32(2)))];
    for (key, changes) in [
        ("expert_count", &experts[..]),
        ("rope.scaling.type", &[("rope.scaling.type", Some(Value::Str("yarn")))]),
        ("rope.scaling.type", &[("rope.scaling.type", Some(Value::Str("longrope")))]),
    ] {
        for error in [llama(changes), gemma3(changes)].map(|config| config.expect_err(key)) {
            assert_eq!((error.code, subject(&error)), (Code::UnsupportedFeature, Some(key)));
            assert!(matches!(error.place, Place::Key(_)), "{key}");
        }
    }
}
