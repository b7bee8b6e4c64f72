#[cfg(feature = "all-families")]
mod experts;
mod kv_types;
mod naive;
#[cfg(feature = "all-families")]
mod structures;
pub mod tiny;

use super::*;
use crate::error::{Code, Error, Place};
use crate::kernel::Workers;
use crate::kernel::workers::Job;
use crate::layout::role::Role;
use crate::quant::ActivationBlock;
use std::vec;
use std::vec::Vec;
use tiny::{N_VOCAB, Tiny};

/// More than a tile of attention.
const TOKENS: [u32; N] = [3, 1, 4, 1, 5, 9, 2, 6, 10, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8];
const N: usize = 19;
const CONTEXT: usize = 22;

type Kv = KvCache<Vec<f32>>;

fn cache(config: &Config) -> Kv {
    KvCache::new(config, CONTEXT, vec![f32::NAN; kv::required_len(config, CONTEXT)]).expect("long enough")
}

/// Runs `f` with a scratch for `positions` tokens at once, its buffers exactly as long as required and full of NaN.
fn with_scratch<R>(config: &Config, positions: usize, f: impl FnOnce(&mut Scratch<'_>) -> R) -> R {
    let need = scratch::required_len(config, positions, CONTEXT);
    let (mut floats, mut blocks) = (vec![f32::NAN; need.floats], vec![ActivationBlock::ZERO; need.activations]);
    f(&mut Scratch::new(config, positions, CONTEXT, &mut floats, &mut blocks).expect("long enough"))
}

/// Logits of every position, the tokens passed in pieces of these lengths.
fn in_pieces(model: &Model<'_, Vec<Layer<'_>>>, kv: &mut Kv, pieces: &[usize], options: &mut Options<'_>) -> Vec<f32> {
    let mut all = Vec::new();
    let mut rest = &TOKENS[kv.len()..];
    for piece in pieces {
        let (now, later) = rest.split_at(*piece);
        rest = later;
        let mut logits = vec![0.0; now.len() * N_VOCAB];
        with_scratch(model.config(), *piece, |scratch| {
            forward(model, now, kv, scratch, options, Logits::All(&mut logits)).expect("it runs");
        });
        all.extend(logits);
    }
    all
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// A model, its metadata, what the f64 pass knows about it, and the share of the largest logit by which the two may differ.
type Subject = (Tiny, (Vec<u8>, u64), &'static naive::Facts, f64);

fn models() -> [Subject; 2] {
    let (llama, gemma3) = (tiny::pairs("llama", tiny::LLAMA), tiny::pairs("gemma3", tiny::GEMMA3));
    // Gemma's gelu is rounded to f16, 11 bits.
    [(Tiny::llama(), llama, &naive::LLAMA, 2e-6), (Tiny::gemma3(), gemma3, &naive::GEMMA3, 1e-3)]
}

#[test]
fn logits_are_those_of_the_formulas() {
    for (tiny, pairs, facts, tolerance) in models() {
        let model = tiny.model(&tiny::metadata(&pairs)).expect("it binds");
        let expected: Vec<f64> = naive::logits(&tiny, facts, &TOKENS).concat();
        let ours = in_pieces(&model, &mut cache(model.config()), &[N], &mut Options::default());
        let largest = expected.iter().fold(0.0f64, |max, value| value.abs().max(max));
        for (index, (ours, expected)) in ours.iter().zip(&expected).enumerate() {
            let difference = (f64::from(*ours) - expected).abs() / largest;
            let (position, id) = (index / N_VOCAB, index % N_VOCAB);
            assert!(difference <= tolerance, "position {position}, token {id}: {ours}, not {expected}");
        }
    }
}

/// Cuts outputs in an awkward way and works from the back.
struct Backwards;

impl Workers for Backwards {
    fn for_each_chunk(&self, out: &mut [f32], unit: usize, job: Job<'_>) {
        for (index, chunk) in out.chunks_mut(unit * 3).enumerate().rev() {
            job(index * 3, chunk);
        }
    }

    fn threads(&self) -> usize {
        3
    }
}

#[test]
fn pieces_and_workers_do_not_change_a_bit() {
    for (tiny, pairs, ..) in models() {
        let model = tiny.model(&tiny::metadata(&pairs)).expect("it binds");
        let whole = in_pieces(&model, &mut cache(model.config()), &[N], &mut Options::default());
        for pieces in [&[1; N][..], &[4, 15], &[2, 1, 16], &[18, 1]] {
            let found = in_pieces(&model, &mut cache(model.config()), pieces, &mut Options::default());
            assert_eq!(bits(&whole), bits(&found), "{pieces:?}");
        }
        let mut options = Options { workers: &Backwards, ..Options::default() };
        assert_eq!(bits(&whole), bits(&in_pieces(&model, &mut cache(model.config()), &[17, 2], &mut options)));
    }
}

#[test]
fn prefill_gives_the_last_position_whatever_the_chunk() {
    for (tiny, pairs, ..) in models() {
        let model = tiny.model(&tiny::metadata(&pairs)).expect("it binds");
        let whole = in_pieces(&model, &mut cache(model.config()), &[N], &mut Options::default());
        for chunk in [1, 2, 3, 4, 9, 18, 19, 22] {
            let mut kv = cache(model.config());
            let mut logits = vec![0.0; N_VOCAB];
            with_scratch(model.config(), chunk, |scratch| {
                prefill(&model, &TOKENS, &mut kv, scratch, &mut Options::default(), &mut logits).expect("it runs");
            });
            assert_eq!(bits(&whole[(N - 1) * N_VOCAB..]), bits(&logits), "chunks of {chunk}");
            assert_eq!(kv.len(), N);
        }
    }
}

#[test]
fn a_truncated_cache_replays() {
    for (tiny, pairs, ..) in models() {
        let model = tiny.model(&tiny::metadata(&pairs)).expect("it binds");
        let mut kv = cache(model.config());
        let whole = in_pieces(&model, &mut kv, &[N], &mut Options::default());
        kv.truncate(40);
        assert_eq!(kv.len(), N);
        kv.truncate(4);
        let replayed = in_pieces(&model, &mut kv, &[3, 12], &mut Options::default());
        assert_eq!(bits(&whole[4 * N_VOCAB..]), bits(&replayed));
        kv.clear();
        assert!(kv.is_empty());
        assert_eq!(bits(&whole), bits(&in_pieces(&model, &mut kv, &[N], &mut Options::default())));
    }
}

#[test]
fn the_last_position_alone_is_the_last_of_all() {
    for (tiny, pairs, ..) in models() {
        let model = tiny.model(&tiny::metadata(&pairs)).expect("it binds");
        let whole = in_pieces(&model, &mut cache(model.config()), &[N], &mut Options::default());
        let mut logits = vec![0.0; N_VOCAB];
        let mut kv = cache(model.config());
        with_scratch(model.config(), N, |scratch| {
            forward(&model, &TOKENS[..5], &mut kv, scratch, &mut Options::default(), Logits::None).expect("it runs");
            let last = Logits::Last(&mut logits);
            forward(&model, &TOKENS[5..], &mut kv, scratch, &mut Options::default(), last).expect("it runs");
        });
        assert_eq!(bits(&whole[(N - 1) * N_VOCAB..]), bits(&logits));
    }
}

#[test]
fn probes_see_the_graph_in_order() {
    let [_, (tiny, pairs, ..)] = models();
    let model = tiny.model(&tiny::metadata(&pairs)).expect("it binds");
    let mut names = Vec::new();
    let mut probe = |node: Node<'_>| {
        assert_eq!(node.values.len() % node.row_len, 0, "{}", node.name);
        names.push((node.name, node.op, node.layer));
    };
    let mut options = Options { probe: Some(&mut probe), ..Options::default() };
    in_pieces(&model, &mut cache(model.config()), &[N], &mut options);
    assert_eq!(names[..3], [("embd", "GET_ROWS", None), ("inp_scaled", "SCALE", None), ("attn_norm", "MUL", Some(0))]);
    assert_eq!(
        names[names.len() - 3..],
        [("l_out", "ADD", Some(2)), ("result_norm", "MUL", None), ("result_output", "MUL_MAT", None)]
    );
    assert_eq!(names.len(), 2 + 3 * 19 + 2);
}

#[test]
fn the_callers_mistakes_leave_the_cache_as_it_was() {
    let [(tiny, pairs, ..), _] = models();
    let model = tiny.model(&tiny::metadata(&pairs)).expect("it binds");
    let config = *model.config();
    let mut kv = cache(&config);
    let mut logits = vec![0.0; N_VOCAB];
    let options = &mut Options::default();
    with_scratch(&config, 4, |scratch| {
        forward(&model, &TOKENS[..3], &mut kv, scratch, options, Logits::None).expect("it runs");

        let beyond = prefill(&model, &[1, 2, 3, 4, 5, 11], &mut kv, scratch, options, &mut logits);
        assert_eq!(beyond, Err(Error::new(Code::TokenRange, Place::Token(5)).values(11, 11)));
        let full = prefill(&model, &[1; 20], &mut kv, scratch, options, &mut logits);
        assert_eq!(full, Err(Error::new(Code::ContextFull, Place::File).values(22, 22)));
        let many = forward(&model, &[1; 5], &mut kv, scratch, options, Logits::None);
        assert_eq!(many, Err(Error::buffer_too_small(5, 4)));
        let none = forward(&model, &[], &mut kv, scratch, options, Logits::None);
        assert_eq!(none.map_err(|error| error.code), Err(Code::LengthMismatch));
        for wrong in [N_VOCAB - 1, N_VOCAB + 1] {
            let mut logits = vec![0.0; wrong];
            let short = forward(&model, &[1], &mut kv, scratch, options, Logits::Last(&mut logits));
            let expected = Error::new(Code::LengthMismatch, Place::File).values(N_VOCAB as u64, wrong as u64);
            assert_eq!(short, Err(expected));
        }
        assert_eq!(kv.len(), 3);
    });
    // A scratch and a cache for another model, or a shorter context.
    let other = tiny::pairs("gemma3", tiny::GEMMA3);
    let other = Config::read(&tiny::metadata(&other)).expect("it reads");
    with_scratch(&config, 1, |scratch| {
        let mut long = KvCache::new(&config, 23, vec![0.0; kv::required_len(&config, 23)]).expect("long enough");
        let short = forward(&model, &[1], &mut long, scratch, options, Logits::None);
        assert_eq!(short, Err(Error::buffer_too_small(23, 22)));
        let foreign = forward(&model, &[1], &mut cache(&other), scratch, options, Logits::None);
        assert_eq!(foreign.map_err(|error| error.code), Err(Code::LengthMismatch));
    });
    let need = scratch::required_len(&config, 4, CONTEXT);
    let (mut floats, mut blocks) = (vec![0.0; need.floats - 1], vec![ActivationBlock::ZERO; need.activations]);
    let short = Scratch::new(&config, 4, CONTEXT, &mut floats, &mut blocks).map(|_| ());
    assert_eq!(short, Err(Error::buffer_too_small(need.floats, need.floats - 1)));
    let need = kv::required_len(&config, 4);
    let short = KvCache::new(&config, 4, vec![0.0; need - 1]).map(|_| ());
    assert_eq!(short, Err(Error::buffer_too_small(need, need - 1)));
}

#[test]
fn sizes_that_do_not_fit_saturate() {
    let [(_, pairs, ..), _] = models();
    let config = Config::read(&tiny::metadata(&pairs)).expect("it reads");
    assert_eq!(kv::required_len(&config, usize::MAX / 2), usize::MAX);
    assert_eq!(scratch::required_len(&config, usize::MAX / 2, 1).floats, usize::MAX);
    assert!(KvCache::new(&config, usize::MAX / 2, vec![0.0; 64]).is_err());
}

fn bind_error(change: impl FnOnce(&mut Tiny)) -> Error {
    let [_, (mut tiny, pairs, ..)] = models();
    change(&mut tiny);
    tiny.model(&tiny::metadata(&pairs)).map(|_| ()).expect_err("it does not bind")
}

#[test]
fn a_model_that_lacks_or_has_too_much_does_not_bind() {
    let error = bind_error(|tiny| tiny.remove("blk.1.ffn_up.weight"));
    let up = u64::from(Role::FfnUp.id());
    assert_eq!(error, Error::new(Code::MissingTensor, Place::Layer(1)).values(0, up));
    let error = bind_error(|tiny| tiny.remove("blk.2.attn_k_norm.weight"));
    assert_eq!((error.code, error.place), (Code::MissingTensor, Place::Layer(2)));
    assert_eq!(subject(&error), Some("attn_k_norm.weight"));
    let error = bind_error(|tiny| tiny.remove("output_norm.weight"));
    assert_eq!((error.place, subject(&error)), (Place::File, Some("output_norm.weight")));
    let error = bind_error(|tiny| tiny.remove("token_embd.weight"));
    assert_eq!(subject(&error), Some("token_embd.weight"));

    let error = bind_error(|tiny| {
        tiny.remove("blk.0.attn_v.weight");
        tiny.add("blk.0.attn_v.weight", 16, 7);
    });
    assert_eq!(error, Error::new(Code::WrongShape, Place::Tensor(40)).values(6, 7));
    let error = bind_error(|tiny| {
        tiny.remove("output_norm.weight");
        tiny.add("output_norm.weight", 15, 1);
    });
    assert_eq!(error, Error::new(Code::WrongShape, Place::Tensor(40)).values(16, 15));

    for extra in
        ["blk.0.ffn_up.bias", "blk.3.attn_q.weight", "blk.x.attn_q_norm.weight", "vision.weight", "output.bias"]
    {
        let error = bind_error(|tiny| tiny.add(extra, 16, 1));
        assert_eq!((error.code, error.place), (Code::UnsupportedFeature, Place::Tensor(41)), "{extra}");
        assert!(subject(&error).is_some());
    }
    // Norms that only the other family has.
    let [(mut tiny, pairs, ..), _] = models();
    tiny.add("blk.0.attn_q_norm.weight", 4, 1);
    let error = tiny.model(&tiny::metadata(&pairs)).map(|_| ()).expect_err("it does not bind");
    assert_eq!(error.code, Code::UnsupportedFeature);

    let [(tiny, pairs, ..), _] = models();
    let config = Config::read(&tiny::metadata(&pairs)).expect("it reads");
    assert_eq!(Layer::bind(&&tiny, &config, 2).map(|_| ()).map_err(|e| e.code), Err(Code::LengthMismatch));
    let layer = Layer::bind(&&tiny, &config, 0).expect("it binds");
    assert_eq!(Model::new(&&tiny, config, [layer]).map(|_| ()).map_err(|e| e.code), Err(Code::LengthMismatch));
    assert!(Model::new(&&tiny, config, [layer; 2]).is_ok());
}
