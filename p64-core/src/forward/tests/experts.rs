//! Mixtures of experts against the formulas in f64, and what they may not depend on.

use super::tiny::{self, Tiny, Value};
use super::{Backwards, bits};
use crate::error::{Code, Place};
use crate::forward::experts::{Inside, Mixture, feed_forward, scratch_len};
use crate::forward::weights::experts::Experts;
use crate::forward::{At, Config, Options, subject};
use crate::kernel::matmul::transposed_len;
use crate::kernel::{Activations, MatmulScratch};
use std::format;
use std::vec;
use std::vec::Vec;

const EMBD: usize = 16;
const N: usize = 9;
/// Qwen2's kind of mixture: the weights as they are, a network for every token with a factor of its own.
const GATED: Mixture = Mixture { count: 6, used: 3, ff: 10, shared_ff: 14, shared_gate: true, normalised: false };
/// Granite's: normalised, the network for every token as it is.
const PLAIN: Mixture = Mixture { shared_gate: false, normalised: true, ..GATED };
/// Mixtral's.
const ALONE: Mixture = Mixture { shared_ff: 0, ..PLAIN };
/// One expert, used by all.
const SINGLE: Mixture = Mixture { count: 1, used: 1, ..ALONE };

fn config(mixture: Mixture) -> Config {
    let pairs = tiny::pairs("llama", tiny::LLAMA);
    Config { mixture: Some(mixture), ..Config::read(&tiny::metadata(&pairs)).expect("it reads") }
}

fn tensors(mixture: &Mixture) -> Tiny {
    let mut tiny = Tiny::empty();
    let Mixture { count, ff, shared_ff, .. } = *mixture;
    tiny.add_shape("blk.0.ffn_gate_inp.weight", &[EMBD, count]);
    tiny.add_shape("blk.0.ffn_gate_exps.weight", &[EMBD, ff, count]);
    tiny.add_shape("blk.0.ffn_up_exps.weight", &[EMBD, ff, count]);
    tiny.add_shape("blk.0.ffn_down_exps.weight", &[ff, EMBD, count]);
    if shared_ff > 0 {
        tiny.add_shape("blk.0.ffn_gate_shexp.weight", &[EMBD, shared_ff]);
        tiny.add_shape("blk.0.ffn_up_shexp.weight", &[EMBD, shared_ff]);
        tiny.add_shape("blk.0.ffn_down_shexp.weight", &[shared_ff, EMBD]);
    }
    if mixture.shared_gate {
        tiny.add_shape("blk.0.ffn_gate_inp_shexp.weight", &[EMBD]);
    }
    tiny
}

fn inputs() -> Vec<f32> {
    let mut tiny = Tiny::empty();
    tiny.add_shape("inputs", &[EMBD, N]);
    tiny.tensors[0].2.iter().map(|x| x * 6.0).collect()
}

fn run(config: &Config, tiny: &Tiny, x: &[f32], options: &mut Options<'_>) -> Vec<f32> {
    let mixture = config.mixture.expect("a mixture");
    let experts = Experts::bind(&tiny, config, &mixture, 0).expect("it binds");
    let n = x.len() / EMBD;
    let widest = config.inside_len().max(EMBD).max(mixture.count);
    let (mut gate, mut up) = (vec![f32::NAN; n * config.inside_len()], vec![f32::NAN; n * config.inside_len()]);
    let (mut own, mut transposed) = (vec![f32::NAN; scratch_len(config, n)], vec![f32::NAN; transposed_len(widest, n)]);
    let mut matmul = MatmulScratch { activations: &mut [], transposed: &mut transposed };
    let mut inside = Inside { gate: &mut gate, up: &mut up, matmul: &mut matmul };
    let at = At { config, layer: 0, n, start: 0, freqs: false };
    let mut branch = x.to_vec();
    let options = &mut Options { activations: Activations::F32, ..core::mem::take(options) };
    feed_forward(&at, &experts, &mut branch, &mut inside, &mut own, options).expect("it runs");
    branch
}

/// The formulas, one position at a time.
fn naive(mixture: &Mixture, tiny: &Tiny, x: &[f64]) -> Vec<f64> {
    let weight = |name: &str| tiny.values(&format!("blk.0.ffn_{name}.weight")).expect("there");
    let product = |w: &[f64], x: &[f64]| -> Vec<f64> {
        w.chunks(x.len()).map(|w| w.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
    };
    let network = |gate: &[f64], up: &[f64], down: &[f64]| {
        let (gate, up) = (product(gate, x), product(up, x));
        let inner: Vec<f64> = gate.iter().zip(&up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
        product(down, &inner)
    };
    let logits = product(&weight("gate_inp"), x);
    let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
    let mut ranked: Vec<(usize, f64)> = logits.iter().map(|logit| logit.exp() / total).enumerate().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.truncate(mixture.used);
    let sum: f64 = if mixture.normalised { ranked.iter().map(|(_, p)| p).sum() } else { 1.0 };
    let mut y = vec![0.0; EMBD];
    let part = |w: &[f64], expert: usize| w.chunks(w.len() / mixture.count).nth(expert).expect("there").to_vec();
    for (expert, p) in ranked {
        let [gate, up, down] = ["gate_exps", "up_exps", "down_exps"].map(|name| part(&weight(name), expert));
        network(&gate, &up, &down).iter().zip(&mut y).for_each(|(given, y)| *y += given * p / sum);
    }
    if mixture.shared_ff > 0 {
        let given = network(&weight("gate_shexp"), &weight("up_shexp"), &weight("down_shexp"));
        let factor =
            if mixture.shared_gate { 1.0 / (1.0 + (-product(&weight("gate_inp_shexp"), x)[0]).exp()) } else { 1.0 };
        given.iter().zip(&mut y).for_each(|(given, y)| *y += given * factor);
    }
    y
}

#[test]
fn results_are_those_of_the_formulas() {
    for mixture in [GATED, PLAIN, ALONE, SINGLE, Mixture { used: 6, ..GATED }, Mixture { used: 1, ..PLAIN }] {
        let (tiny, x) = (tensors(&mixture), inputs());
        let ours = run(&config(mixture), &tiny, &x, &mut Options::default());
        for (x, ours) in x.chunks(EMBD).zip(ours.chunks(EMBD)) {
            let x: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
            for (ours, exact) in ours.iter().zip(naive(&mixture, &tiny, &x)) {
                assert!(
                    (f64::from(*ours) - exact).abs() <= 2e-6 * exact.abs().max(1.0),
                    "{mixture:?}: {ours}, not {exact}"
                );
            }
        }
    }
}

#[test]
fn company_and_workers_do_not_change_a_bit() {
    for mixture in [GATED, ALONE] {
        let (config, tiny, x) = (config(mixture), tensors(&mixture), inputs());
        let whole = run(&config, &tiny, &x, &mut Options::default());
        for piece in [1, 2, 4, 5] {
            let parts = x.chunks(piece * EMBD).flat_map(|x| run(&config, &tiny, x, &mut Options::default()));
            assert_eq!(bits(&parts.collect::<Vec<_>>()), bits(&whole), "{piece} at once");
        }
        let mut options = Options { workers: &Backwards, ..Options::default() };
        assert_eq!(bits(&run(&config, &tiny, &x, &mut options)), bits(&whole));
    }
}

#[test]
fn of_equal_experts_the_first_are_chosen() {
    let mixture = Mixture { used: 2, ..ALONE };
    let mut tiny = tensors(&mixture);
    // The router says the same about all.
    tiny.set("blk.0.ffn_gate_inp.weight", |_| 0.0);
    let both = run(&config(mixture), &tiny, &inputs(), &mut Options::default());
    // Without the others the first two have everything.
    let part = |name: &str, len: usize| {
        let all = tiny.values(name).expect("there");
        all[..len].iter().map(|value| *value as f32).collect::<Vec<_>>()
    };
    let pair = Mixture { count: 2, ..mixture };
    let mut two = tensors(&pair);
    two.set("blk.0.ffn_gate_inp.weight", |_| 0.0);
    for name in ["gate", "up", "down"] {
        let name = format!("blk.0.ffn_{name}_exps.weight");
        let values = part(&name, 2 * EMBD * mixture.ff);
        two.set(&name, |index| values[index]);
    }
    assert_eq!(bits(&both), bits(&run(&config(pair), &two, &inputs(), &mut Options::default())));
}

#[test]
fn what_is_not_finite_stays_where_it_was() {
    let (config, tiny, mut x) = (config(GATED), tensors(&GATED), inputs());
    x[2 * EMBD + 3] = f32::NAN;
    let y = run(&config, &tiny, &x, &mut Options::default());
    for (position, y) in y.chunks(EMBD).enumerate() {
        assert_eq!(y.iter().all(|y| y.is_nan()), position == 2, "{position}");
        assert_eq!(y.iter().any(|y| y.is_nan()), position == 2, "{position}");
    }
}

fn read(architecture: &str, more: &[(&str, Value<'_>)]) -> Result<Option<Mixture>, (Code, Option<&'static str>)> {
    let keys: Vec<_> = tiny::LLAMA.iter().chain(more).copied().collect();
    let pairs = tiny::pairs(architecture, &keys);
    Config::read(&tiny::metadata(&pairs)).map(|config| config.mixture).map_err(|error| (error.code, subject(&error)))
}

#[test]
fn metadata_say_how_many_there_are() {
    let count = ("expert_count", Value::U32(6));
    let used = ("expert_used_count", Value::U32(2));
    assert_eq!(read("llama", &[]), Ok(None));
    assert_eq!(read("llama", &[("expert_count", Value::U32(0)), ("expert_used_count", Value::U32(0))]), Ok(None));
    let mixtral = Mixture { used: 2, ff: 24, ..ALONE };
    assert_eq!(read("llama", &[count, used]), Ok(Some(mixtral)));
    assert_eq!(read("llama", &[count]), Err((Code::MissingKey, Some("expert_used_count"))));
    assert_eq!(
        read("llama", &[count, ("expert_used_count", Value::U32(7))]).map_err(|e| e.0),
        Err(Code::MetadataRange)
    );
    assert_eq!(
        read("llama", &[count, ("expert_used_count", Value::U32(0))]).map_err(|e| e.0),
        Err(Code::MetadataRange)
    );
    for key in [
        ("expert_used_count", Value::List(&[2, 2])),
        ("expert_feed_forward_length", Value::U32(12)),
        ("expert_shared_feed_forward_length", Value::U32(12)),
        ("expert_weights_scale", Value::F32(2.5)),
        ("expert_weights_norm", Value::Bool(false)),
        ("expert_gating_func", Value::U32(2)),
        ("expert_group_count", Value::U32(4)),
    ] {
        let keys = if key.0 == used.0 { vec![count, key] } else { vec![count, used, key] };
        assert_eq!(read("llama", &keys), Err((Code::UnsupportedFeature, Some(key.0))));
    }
    let neutral = [
        count,
        used,
        ("expert_feed_forward_length", Value::U32(24)),
        ("expert_weights_norm", Value::Bool(true)),
        ("expert_gating_func", Value::U32(1)),
    ];
    assert_eq!(read("llama", &neutral), Ok(Some(mixtral)));
    assert_eq!(read("gemma3", &[count, used]), Err((Code::UnsupportedFeature, Some("expert_count"))));
}

#[test]
fn tensors_that_do_not_fit_are_refused() {
    let bind = |change: &dyn Fn(&mut Tiny)| {
        let mut tiny = tensors(&GATED);
        change(&mut tiny);
        let error = Experts::bind(&&tiny, &config(GATED), &GATED, 0).map(|_| ()).expect_err("it does not bind");
        (error.code, error.place, subject(&error))
    };
    for name in ["ffn_gate_inp.weight", "ffn_down_exps.weight", "ffn_up_shexp.weight", "ffn_gate_inp_shexp.weight"] {
        let found = bind(&|tiny| tiny.remove(&format!("blk.0.{name}")));
        assert_eq!(found, (Code::MissingTensor, Place::Layer(0), Some(name)));
    }
    for shape in [&[EMBD, 10, 5][..], &[EMBD, 9, 6], &[15, 10, 6], &[EMBD, 60], &[EMBD, 10, 6, 2], &[EMBD, 6, 10]] {
        let (code, place, _) = bind(&|tiny| {
            tiny.remove("blk.0.ffn_gate_exps.weight");
            tiny.add_shape("blk.0.ffn_gate_exps.weight", shape);
        });
        assert_eq!((code, place), (Code::WrongShape, Place::Tensor(7)), "{shape:?}");
    }
}

#[test]
fn only_the_experts_used_are_read() {
    let tiny = tensors(&GATED);
    let experts = Experts::bind(&&tiny, &config(GATED), &GATED, 0).expect("it binds");
    let floats = EMBD * 6 + 3 * (3 * EMBD * 10) + 3 * EMBD * 14 + EMBD;
    assert_eq!(experts.bytes_per_token(&GATED), 4 * floats as u64);
}
