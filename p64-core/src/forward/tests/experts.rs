//! Expertss of experts against the formulas in f64, and what they may not depend on.

use super::tiny::{self, Tiny, Value};
use super::{Backwards, bits, with_scratch};
use crate::error::{Code, Place, Result};
use crate::forward::dims::Built;
use crate::forward::experts::feed_forward;
use crate::forward::{At, Config, ExpertTensors, Experts, FeedForward, Layer, Options, subject};
use crate::kernel::Activations;
use std::format;
use std::vec;
use std::vec::Vec;

const EMBD: usize = 16;
const N: usize = 9;
/// Qwen2's kind of mixture: the weights as they are, a network for every token with a factor of its own.
const GATED: Experts =
    Experts { count: 6, used: 3, n_ff: 10, shared_n_ff: 14, shared_gate: true, normalise: false, built: Built::Yes };
/// Granite's: normalised, the network for every token as it is.
const PLAIN: Experts = Experts { shared_gate: false, normalise: true, ..GATED };
/// Mixtral's.
const ALONE: Experts = Experts { shared_n_ff: 0, ..PLAIN };
/// One expert, used by all.
const SINGLE: Experts = Experts { count: 1, used: 1, ..ALONE };

fn config(mixture: Experts) -> Config {
    let pairs = tiny::pairs("llama", tiny::LLAMA);
    Config { n_ff: mixture.n_ff, experts: Some(mixture), ..Config::read(&tiny::metadata(&pairs)).expect("it reads") }
}

fn tensors(mixture: &Experts) -> Tiny {
    let mut tiny = Tiny::llama();
    let Experts { count, n_ff, shared_n_ff, .. } = *mixture;
    tiny.add_shape("blk.0.ffn_gate_inp.weight", &[EMBD, count]);
    tiny.add_shape("blk.0.ffn_gate_exps.weight", &[EMBD, n_ff, count]);
    tiny.add_shape("blk.0.ffn_up_exps.weight", &[EMBD, n_ff, count]);
    tiny.add_shape("blk.0.ffn_down_exps.weight", &[n_ff, EMBD, count]);
    if shared_n_ff > 0 {
        tiny.add_shape("blk.0.ffn_gate_shexp.weight", &[EMBD, shared_n_ff]);
        tiny.add_shape("blk.0.ffn_up_shexp.weight", &[EMBD, shared_n_ff]);
        tiny.add_shape("blk.0.ffn_down_shexp.weight", &[shared_n_ff, EMBD]);
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
    let layer = bind(config, tiny).expect("it binds");
    let n = x.len() / EMBD;
    let options = &mut Options { activations: Activations::F32, ..core::mem::take(options) };
    with_scratch(config, n, |scratch| {
        scratch.branch.copy_from_slice(x);
        let at = At { config, layer: 0, n, start: 0, freqs: false };
        feed_forward(&at, &layer, scratch, options).expect("it runs");
        assert_eq!(bits(scratch.branch), bits(x));
        scratch.experts[..x.len()].to_vec()
    })
}

fn bind<'w>(config: &Config, tiny: &'w Tiny) -> Result<ExpertTensors<'w>> {
    match Layer::bind(&tiny, config, 0)?.feed_forward {
        FeedForward::Experts(tensors) => Ok(tensors),
        _ => panic!("no experts"),
    }
}

/// The formulas, one position at a time.
fn naive(mixture: &Experts, tiny: &Tiny, x: &[f64]) -> Vec<f64> {
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
    let sum: f64 = if mixture.normalise { ranked.iter().map(|(_, p)| p).sum() } else { 1.0 };
    let mut y = vec![0.0; EMBD];
    let part = |w: &[f64], expert: usize| w.chunks(w.len() / mixture.count).nth(expert).expect("there").to_vec();
    for (expert, p) in ranked {
        let [gate, up, down] = ["gate_exps", "up_exps", "down_exps"].map(|name| part(&weight(name), expert));
        network(&gate, &up, &down).iter().zip(&mut y).for_each(|(given, y)| *y += given * p / sum);
    }
    if mixture.shared_n_ff > 0 {
        let given = network(&weight("gate_shexp"), &weight("up_shexp"), &weight("down_shexp"));
        let factor =
            if mixture.shared_gate { 1.0 / (1.0 + (-product(&weight("gate_inp_shexp"), x)[0]).exp()) } else { 1.0 };
        given.iter().zip(&mut y).for_each(|(given, y)| *y += given * factor);
    }
    y
}

#[test]
fn results_are_those_of_the_formulas() {
    for mixture in [GATED, PLAIN, ALONE, SINGLE, Experts { used: 6, ..GATED }, Experts { used: 1, ..PLAIN }] {
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
    let mixture = Experts { used: 2, ..ALONE };
    let mut tiny = tensors(&mixture);
    // The router says the same about all.
    tiny.set("blk.0.ffn_gate_inp.weight", |_| 0.0);
    let both = run(&config(mixture), &tiny, &inputs(), &mut Options::default());
    // Without the others the first two have everything.
    let part = |name: &str, len: usize| {
        let all = tiny.values(name).expect("there");
        all[..len].iter().map(|value| *value as f32).collect::<Vec<_>>()
    };
    let pair = Experts { count: 2, ..mixture };
    let mut two = tensors(&pair);
    two.set("blk.0.ffn_gate_inp.weight", |_| 0.0);
    for name in ["gate", "up", "down"] {
        let name = format!("blk.0.ffn_{name}_exps.weight");
        let values = part(&name, 2 * EMBD * mixture.n_ff);
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

fn read(
    architecture: &str,
    more: &[(&str, Value<'_>)],
) -> core::result::Result<Option<Experts>, (Code, Option<&'static str>)> {
    let keys: Vec<_> = tiny::LLAMA.iter().chain(more).copied().collect();
    let pairs = tiny::pairs(architecture, &keys);
    Config::read(&tiny::metadata(&pairs)).map(|config| config.experts).map_err(|error| (error.code, subject(&error)))
}

#[test]
fn metadata_say_how_many_there_are() {
    let count = ("expert_count", Value::U32(6));
    let used = ("expert_used_count", Value::U32(2));
    assert_eq!(read("llama", &[]), Ok(None));
    assert_eq!(read("llama", &[("expert_count", Value::U32(0)), ("expert_used_count", Value::U32(0))]), Ok(None));
    let mixtral = Experts { used: 2, n_ff: 24, ..ALONE };
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
        let error = bind(&config(GATED), &tiny).map(|_| ()).expect_err("it does not bind");
        (error.code, error.place, subject(&error))
    };
    for name in ["ffn_gate_inp.weight", "ffn_down_exps.weight", "ffn_up_shexp.weight", "ffn_gate_inp_shexp.weight"] {
        let found = bind(&|tiny| tiny.remove(&format!("blk.0.{name}")));
        assert_eq!(found, (Code::MissingTensor, Place::Layer(0), Some(name)));
    }
    for shape in [&[EMBD, 10, 5][..], &[EMBD, 9, 6], &[15, 10, 6], &[EMBD, 60], &[EMBD, 10, 6, 2], &[EMBD, 6, 10]] {
        let index = tensors(&GATED).tensors.len() as u32 - 1;
        let (code, place, _) = bind(&|tiny| {
            tiny.remove("blk.0.ffn_gate_exps.weight");
            tiny.add_shape("blk.0.ffn_gate_exps.weight", shape);
        });
        assert_eq!((code, place), (Code::WrongShape, Place::Tensor(index)), "{shape:?}");
    }
}

#[test]
fn only_the_experts_used_are_read() {
    let tiny = tensors(&GATED);
    let experts = bind(&config(GATED), &tiny).expect("it binds");
    let floats = EMBD * 6 + 3 * (3 * EMBD * 10) + 3 * EMBD * 14 + EMBD;
    assert_eq!(experts.size(&GATED), 4 * floats);
}
