//! Tiny models of the structures that neither LLaMA nor Gemma 3 has. What they compute is compared with llama.cpp in
//! `tests/tests/families.rs`; here, that nothing but the tokens decides a result.

use super::tiny::{N_VOCAB, Tiny, Value, metadata, pairs};
use super::{Backwards, CONTEXT, N, TOKENS, bits, cache, in_pieces, with_scratch};
use crate::error::{Code, Error, Place};
use crate::forward::{KvCache, Layer, Logits, Model, Options, forward, kv, prefill, subject};
use std::format;
use std::string::String;
use std::vec::Vec;

/// Dimensions that all of them have: heads of 4 in groups of two, 2 layers.
const KEYS: &[(&str, Value<'_>)] = &[
    ("block_count", Value::U32(2)),
    ("context_length", Value::U32(CONTEXT as u32)),
    ("embedding_length", Value::U32(16)),
    ("feed_forward_length", Value::U32(24)),
    ("attention.head_count", Value::U32(4)),
    ("attention.head_count_kv", Value::U32(2)),
];
const RMS: (&str, Value<'_>) = ("attention.layer_norm_rms_epsilon", Value::F32(1e-5));
const LAYER: (&str, Value<'_>) = ("attention.layer_norm_epsilon", Value::F32(1e-5));

const QKV: &[(&str, u32, usize)] =
    &[("attn_q.weight", 16, 16), ("attn_k.weight", 16, 8), ("attn_v.weight", 16, 8), ("attn_output.weight", 16, 16)];
const GATED: &[(&str, u32, usize)] =
    &[("ffn_gate.weight", 16, 24), ("ffn_up.weight", 16, 24), ("ffn_down.weight", 24, 16)];
const NORM: &[(&str, u32, usize)] = &[("attn_norm.weight", 16, 1)];
const NORMS: &[(&str, u32, usize)] = &[("attn_norm.weight", 16, 1), ("ffn_norm.weight", 16, 1)];
const NORM_BIASES: &[(&str, u32, usize)] = &[("attn_norm.bias", 16, 1), ("ffn_norm.bias", 16, 1)];
const POST_NORMS: &[(&str, u32, usize)] = &[("post_attention_norm.weight", 16, 1), ("post_ffw_norm.weight", 16, 1)];
const QKV_BIASES: &[(&str, u32, usize)] = &[("attn_q.bias", 16, 1), ("attn_k.bias", 8, 1), ("attn_v.bias", 8, 1)];

/// A family's keys and tensors. Vectors that are no `norm.weight` get values around 0 as well as those around 1.
pub struct Structure {
    pub architecture: &'static str,
    keys: Vec<(&'static str, Value<'static>)>,
    pub tiny: Tiny,
}

impl Structure {
    fn new(
        architecture: &'static str,
        keys: &[(&'static str, Value<'static>)],
        globals: &[(&str, u32, usize)],
        layer: &[&[(&str, u32, usize)]],
    ) -> Self {
        let globals = [&[("token_embd.weight", 16, N_VOCAB), ("output_norm.weight", 16, 1)], globals].concat();
        let mut tiny = Tiny::of(&globals);
        for index in 0..2 {
            for (name, cols, rows) in layer.concat() {
                tiny.add(&format!("blk.{index}.{name}"), cols, rows);
            }
        }
        Self { architecture, keys: [KEYS, keys].concat(), tiny }
    }

    pub fn pairs(&self) -> (Vec<u8>, u64) {
        pairs(self.architecture, &self.keys)
    }
}

pub fn phi3(original_context: u32) -> Structure {
    let fused = [("attn_qkv.weight", 16, 32), ("ffn_up.weight", 16, 48)];
    let rest = [("attn_output.weight", 16, 16), ("ffn_down.weight", 24, 16)];
    let factors = [("rope_factors_long.weight", 2, 1), ("rope_factors_short.weight", 2, 1)];
    let keys = [
        RMS,
        ("attention.sliding_window", Value::U32(3)),
        ("rope.scaling.original_context_length", Value::U32(original_context)),
        ("rope.scaling.attn_factor", Value::F32(1.25)),
    ];
    Structure::new("phi3", &keys, &factors, &[NORMS, &fused, &rest])
}

fn gpt2() -> Structure {
    let layer = [
        ("attn_qkv.weight", 16, 32),
        ("attn_qkv.bias", 32, 1),
        ("attn_output.weight", 16, 16),
        ("attn_output.bias", 16, 1),
        ("ffn_up.weight", 16, 24),
        ("ffn_up.bias", 24, 1),
        ("ffn_down.weight", 24, 16),
        ("ffn_down.bias", 16, 1),
    ];
    let globals = [("position_embd.weight", 16, CONTEXT), ("output_norm.bias", 16, 1)];
    Structure::new("gpt2", &[LAYER], &globals, &[NORMS, NORM_BIASES, &layer])
}

fn stablelm(parallel: bool) -> Structure {
    let (second, head_norms): (&[_], &[_]) = match parallel {
        true => (&[], &[("attn_q_norm.weight", 4, 4), ("attn_k_norm.weight", 4, 2)]),
        false => (&[("ffn_norm.weight", 16, 1), ("ffn_norm.bias", 16, 1)], QKV_BIASES),
    };
    let keys = [LAYER, ("rope.dimension_count", Value::U32(2)), ("use_parallel_residual", Value::Bool(true))];
    let layer = [NORM, &[("attn_norm.bias", 16, 1)], second, head_norms, QKV, GATED];
    Structure::new("stablelm", &keys, &[("output_norm.bias", 16, 1)], &layer)
}

pub fn structures() -> Vec<Structure> {
    let scale = [("attn_q.scale", 1, 1), ("attn_output.scale", 1, 1), ("ffn_up.scale", 1, 1), ("ffn_down.scale", 1, 1)];
    let sub_norms = [("attn_sub_norm.weight", 16, 1), ("ffn_sub_norm.weight", 24, 1)];
    let whole = [("attn_q_norm.weight", 16, 1), ("attn_k_norm.weight", 8, 1)];
    let window = ("attention.sliding_window", Value::U32(3));
    let every_second = ("attention.sliding_window_pattern", Value::U32(2));
    let granite = [
        RMS,
        ("logit_scale", Value::F32(8.0)),
        ("residual_scale", Value::F32(0.25)),
        ("embedding_scale", Value::F32(12.0)),
        ("attention.scale", Value::F32(0.125)),
    ];
    let cohere = [LAYER, window, every_second, ("logit_scale", Value::F32(0.25))];
    let biases = [("attn_output.bias", 16, 1), ("ffn_gate.bias", 24, 1), ("ffn_down.bias", 16, 1)];
    std::vec![
        phi3(CONTEXT as u32),
        phi3(CONTEXT as u32 - 1),
        gpt2(),
        stablelm(false),
        stablelm(true),
        Structure::new("bitnet", &[RMS], &[], &[NORMS, QKV, GATED, &sub_norms, &scale]),
        Structure::new("olmo2", &[RMS, window, every_second], &[], &[QKV, GATED, &whole, POST_NORMS]),
        Structure::new("command-r", &[LAYER], &[], &[NORM, QKV, GATED]),
        Structure::new("cohere2", &cohere, &[], &[NORM, QKV, GATED]),
        Structure::new("gemma2", &[RMS, window], &[], &[NORMS, QKV, GATED, POST_NORMS]),
        Structure::new("granite", &granite, &[], &[NORMS, QKV, GATED, &biases]),
        Structure::new("smollm3", &[RMS, every_second], &[], &[NORMS, QKV, GATED]),
        Structure::new("qwen2", &[RMS], &[("output.bias", N_VOCAB as u32, 1)], &[NORMS, QKV, GATED, QKV_BIASES]),
    ]
}

fn logits(model: &Model<'_, Vec<Layer<'_>>>) -> Vec<f32> {
    in_pieces(model, &mut cache(model.config()), &[N], &mut Options::default())
}

#[test]
fn pieces_chunks_and_workers_do_not_change_a_bit() {
    for structure in structures() {
        let (name, pairs) = (structure.architecture, structure.pairs());
        let model = structure.tiny.model(&metadata(&pairs)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let whole = logits(&model);
        assert!(whole.iter().all(|logit| logit.is_finite()) && whole.iter().any(|logit| *logit != 0.0), "{name}");
        for pieces in [&[1; N][..], &[2, 1, 16]] {
            let found = in_pieces(&model, &mut cache(model.config()), pieces, &mut Options::default());
            assert_eq!(bits(&whole), bits(&found), "{name}: {pieces:?}");
        }
        let mut options = Options { workers: &Backwards, ..Options::default() };
        assert_eq!(
            bits(&whole),
            bits(&in_pieces(&model, &mut cache(model.config()), &[17, 2], &mut options)),
            "{name}"
        );
        for chunk in [1, 4, 19] {
            let (mut kv, mut last) = (cache(model.config()), std::vec![0.0; N_VOCAB]);
            with_scratch(model.config(), chunk, |scratch| {
                prefill(&model, &TOKENS, &mut kv, scratch, &mut Options::default(), &mut last).expect("it runs");
            });
            assert_eq!(bits(&whole[(N - 1) * N_VOCAB..]), bits(&last), "{name}: chunks of {chunk}");
        }
    }
}

/// Every tensor matters: a model without it, or with another in its place, does not give the same.
#[test]
fn every_tensor_has_its_part() {
    for structure in structures() {
        let (name, pairs) = (structure.architecture, structure.pairs());
        let whole = logits(&structure.tiny.model(&metadata(&pairs)).expect("it binds"));
        for index in 0..structure.tiny.tensors.len() {
            let tensor = structure.tiny.tensors[index].0.clone();
            let mut changed = structure.tiny.clone();
            changed.double(index);
            let found = logits(&changed.model(&metadata(&pairs)).expect("it binds"));
            let idle = tensor.starts_with("rope_factors");
            assert!(idle || bits(&whole) != bits(&found), "{name}: {tensor} does nothing");
        }
    }
}

/// The long divisors are for caches of more positions than the original context.
#[test]
fn the_context_chooses_the_divisors() {
    let of = |structure: &Structure| logits(&structure.tiny.model(&metadata(&structure.pairs())).expect("it binds"));
    let (short, long) = (phi3(CONTEXT as u32), phi3(CONTEXT as u32 - 1));
    assert_ne!(bits(&of(&short)), bits(&of(&long)));
    let mut swapped = phi3(CONTEXT as u32);
    for (tensor, other) in [("long", "short"), ("short", "long")]
        .map(|(a, b)| (format!("rope_factors_{a}.weight"), format!("rope_factors_{b}.weight")))
    {
        let values = long.tiny.values(&other).expect("there");
        swapped.tiny.set(&tensor, |index| values[index] as f32);
    }
    assert_eq!(bits(&of(&swapped)), bits(&of(&long)));
}

#[test]
fn learned_positions_end() {
    let structure = gpt2();
    let model = structure.tiny.model(&metadata(&structure.pairs())).expect("it binds");
    let config = model.config();
    let mut kv = KvCache::new(config, 40, std::vec![0.0; kv::required_len(config, 40)]).expect("long enough");
    let full = Error::new(Code::ContextFull, Place::File).values(CONTEXT as u64, CONTEXT as u64);
    let run = |kv: &mut _, tokens: &[u32]| {
        let need = crate::forward::scratch::required_len(config, 30, 40);
        let mut floats = std::vec![0.0; need.floats];
        let mut blocks = std::vec![crate::quant::ActivationBlock::ZERO; need.activations];
        let mut scratch = crate::forward::Scratch::new(config, 30, 40, &mut floats, &mut blocks).expect("enough");
        forward(&model, tokens, kv, &mut scratch, &mut Options::default(), Logits::None)
    };
    assert_eq!(run(&mut kv, &[1; CONTEXT + 1]), Err(full));
    assert_eq!((run(&mut kv, &[1; CONTEXT]), kv.len()), (Ok(()), CONTEXT));
    assert_eq!((run(&mut kv, &[1]), kv.len()), (Err(full), CONTEXT));
}

#[test]
fn what_a_structure_lacks_or_has_too_much_is_named() {
    let error = |mut structure: Structure, change: &dyn Fn(&mut Tiny)| {
        change(&mut structure.tiny);
        let pairs = structure.pairs();
        structure.tiny.model(&metadata(&pairs)).map(|_| ()).expect_err("it does not bind")
    };
    let lacks = |structure, tensor: &str| {
        let error = error(structure, &|tiny| tiny.remove(tensor));
        assert_eq!(error.code, Code::MissingTensor, "{tensor}");
        String::from(subject(&error).expect("a name"))
    };
    assert_eq!(lacks(gpt2(), "position_embd.weight"), "position_embd.weight");
    assert_eq!(lacks(gpt2(), "output_norm.bias"), "output_norm.bias");
    assert_eq!(lacks(gpt2(), "blk.1.attn_qkv.bias"), "attn_q.bias");
    assert_eq!(lacks(gpt2(), "blk.1.ffn_down.bias"), "ffn_down.bias");
    assert_eq!(lacks(stablelm(false), "blk.0.ffn_norm.bias"), "ffn_norm.bias");
    assert_eq!(lacks(phi3(9), "blk.0.attn_qkv.weight"), "attn_q.weight");

    // A second set of what is fused, a bias that nothing would add, divisors of another kind.
    for (structure, extra, cols, rows) in [
        (phi3(9), "blk.0.attn_q.weight", 16, 16),
        (phi3(9), "blk.1.ffn_gate.weight", 16, 24),
        (phi3(9), "rope_freqs.weight", 2, 1),
        (gpt2(), "blk.0.attn_q.bias", 16, 1),
        (gpt2(), "blk.0.ffn_gate.bias", 24, 1),
        (gpt2(), "rope_freqs.weight", 2, 1),
        (stablelm(true), "output.bias", 11, 1),
    ] {
        let error = error(structure, &|tiny| tiny.add(extra, cols, rows));
        assert_eq!(error.code, Code::UnsupportedFeature, "{extra}");
    }
    let short = error(phi3(9), &|tiny| {
        tiny.remove("blk.0.attn_qkv.weight");
        tiny.add("blk.0.attn_qkv.weight", 16, 31);
    });
    assert_eq!((short.code, short.expected, short.found), (Code::WrongShape, 32, 31));
}
