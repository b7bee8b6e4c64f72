//! The forward pass against llama.cpp's results on real models, at every prompt and every step.
//!
//! The golden tokens are fed back, so that one near-tie does not hide what follows. The bars are those of
//! `tests/data/llama/README.md`. The models come from `make model`.

#[path = "llama_golden/compare.rs"]
mod compare;
#[path = "llama_golden/engine.rs"]
mod engine;
#[path = "llama_golden/golden.rs"]
mod golden;
#[path = "llama_golden/probes.rs"]
mod probes;

use compare::{divergence, largest_difference, rms};
use engine::Engine;
use golden::{Case, cases};
use p64_core::forward::{Node, Options, argmax};
use p64_core::kernel::Activations;
use probes::Seen;

const SMOLLM2: &str = "smollm2-135m-q4_1";
const GEMMA3: &str = "gemma3-270m-q4_k_m";

/// Largest difference of a logit between the exact path and the plain result.
const EXACT_LOGITS: f32 = 0.02;
/// Margin below which the production path may choose differently from any one variant of llama.cpp.
const NEAR_TIE: f32 = 0.4;

/// What we give for one prompt when the plain result's tokens are fed back.
struct Ours {
    first_logits: Vec<f32>,
    /// At each step, our choice and the logit of the golden token.
    steps: Vec<(u32, f32)>,
}

fn run(engine: &mut Engine, case: &Case, activations: Activations) -> Ours {
    let mut options = Options { activations, ..Options::default() };
    let first_logits = engine.prompt(&case.prompt_ids, &mut options);
    let mut logits = first_logits.clone();
    let mut steps = Vec::new();
    for (step, id) in case.gen_ids.iter().enumerate() {
        steps.push((argmax(&logits), logits[*id as usize]));
        if step + 1 < case.gen_ids.len() {
            logits = engine.step(*id, &mut options);
        }
    }
    Ours { first_logits, steps }
}

fn exact_path(name: &str) {
    let mut engine = Engine::open(name);
    for (prompt, case) in cases(name, "deq-f32").iter().enumerate() {
        let ours = run(&mut engine, case, Activations::F32);
        if let Some(golden) = case.first_logits() {
            let difference = largest_difference(&golden, &ours.first_logits);
            println!("{name} prompt {prompt}: largest difference of all first logits {difference:.5}");
            assert!(difference <= EXACT_LOGITS, "prompt {prompt}: {difference}");
        }
        for top in &case.first_logits_top20 {
            let difference = (ours.first_logits[top.id as usize] - top.logit).abs();
            assert!(difference <= EXACT_LOGITS, "prompt {prompt}, token {}: {difference}", top.id);
        }
        let mut worst = 0.0f32;
        for (step, (id, logit)) in ours.steps.iter().enumerate() {
            let difference = (logit - case.top1_logit[step]).abs();
            assert!(difference <= EXACT_LOGITS, "prompt {prompt}, step {step}: {difference}");
            worst = worst.max(difference);
            if case.top1_top2_margin[step] > EXACT_LOGITS {
                assert_eq!(*id, case.gen_ids[step], "prompt {prompt}, step {step}");
            }
        }
        println!("{name} prompt {prompt}: largest difference of a step's first logit {worst:.5}");
    }
}

#[test]
fn smollm2_exact_path_gives_the_plain_result() {
    exact_path(SMOLLM2);
}

#[test]
fn gemma3_exact_path_gives_the_plain_result() {
    exact_path(GEMMA3);
}

fn production_path(name: &str, all_agree: &[usize]) {
    let mut engine = Engine::open(name);
    let plain = cases(name, "deq-f32");
    let variants = [cases(name, "repack0"), cases(name, "repack1")];
    for (prompt, case) in plain.iter().enumerate() {
        let ours = run(&mut engine, case, Activations::Quantized);
        compare_first_logits(name, prompt, case, [&variants[0][prompt], &variants[1][prompt]], &ours.first_logits);

        let choices: Vec<u32> = ours.steps.iter().map(|(id, _)| *id).collect();
        let agree = variants.iter().all(|variant| variant[prompt].gen_ids == case.gen_ids);
        assert_eq!(agree, all_agree.contains(&prompt), "the goldens are not those that the README describes");
        if agree {
            assert_eq!(choices, case.gen_ids, "prompt {prompt}: all variants of llama.cpp agree");
            continue;
        }
        for variant in [case, &variants[0][prompt], &variants[1][prompt]] {
            // Where a variant has left the tokens that were fed, it did so at a near-tie, and what follows is another
            // text.
            let near_tie = variant.top1_top2_margin.iter().position(|margin| *margin < NEAR_TIE);
            let left = variant.gen_ids.iter().zip(&case.gen_ids).position(|(theirs, fed)| theirs != fed);
            let steps = near_tie.or(left).unwrap_or(case.gen_ids.len());
            assert!(left.is_none_or(|left| steps <= left), "prompt {prompt}: a variant differs without a near-tie");
            assert_eq!(choices[..steps], variant.gen_ids[..steps], "prompt {prompt}");
        }
    }
}

/// We are not to be farther from the plain result than llama.cpp is: over all logits where they are kept, otherwise over
/// those that all three list among their twenty largest.
fn compare_first_logits(name: &str, prompt: usize, plain: &Case, variants: [&Case; 2], ours: &[f32]) {
    if let (Some(golden), Some(theirs)) = (plain.first_logits(), variants[0].first_logits()) {
        let (ours_rms, theirs_rms) = (rms(&golden, ours), rms(&golden, &theirs));
        let (ours_kl, theirs_kl) = (divergence(&golden, ours), divergence(&golden, &theirs));
        println!(
            "{name} prompt {prompt}: rms {ours_rms:.5} (llama.cpp {theirs_rms:.5}), KL {ours_kl:.2e} ({theirs_kl:.2e})"
        );
        assert!(ours_rms <= theirs_rms, "prompt {prompt}: rms {ours_rms} against {theirs_rms}");
        assert!(ours_kl <= theirs_kl, "prompt {prompt}: KL {ours_kl} against {theirs_kl}");
    }
    for variant in variants {
        let listed = plain.first_logits_top20.iter().filter_map(|top| {
            let theirs = variant.first_logits_top20.iter().find(|other| other.id == top.id)?;
            Some((top.logit, theirs.logit, ours[top.id as usize]))
        });
        let (mut golden, mut theirs, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for (plain, variant, ours) in listed {
            golden.push(plain);
            theirs.push(variant);
            found.push(ours);
        }
        assert!(golden.len() >= 10, "prompt {prompt}: the lists have {} tokens in common", golden.len());
        let (ours, theirs) = (rms(&golden, &found), rms(&golden, &theirs));
        println!("{name} prompt {prompt}: rms of the largest logits {ours:.5} (llama.cpp {theirs:.5})");
        assert!(ours <= theirs, "prompt {prompt}: rms {ours} against {theirs}");
    }
}

#[test]
fn smollm2_production_path_is_nearer_than_llama_cpp() {
    production_path(SMOLLM2, &[0, 3, 4]);
}

#[test]
fn gemma3_production_path_is_nearer_than_llama_cpp() {
    production_path(GEMMA3, &[3, 4]);
}

/// Compares the intermediates of the first prompt in order, so that a failure names the first one that is wrong.
///
/// `least` of them have a golden; `bar` says how far each may be, by its name.
fn intermediates(name: &str, least: usize, bar: impl Fn(&str) -> f64) {
    let (prompt, goldens) = golden::probes(name);
    let mut seen = Vec::new();
    let mut probe = |node: Node<'_>| seen.push(Seen::of(node));
    let mut options = Options { activations: Activations::F32, probe: Some(&mut probe), ..Options::default() };
    Engine::open(name).prompt(&prompt, &mut options);
    let mut compared = 0;
    let mut worst = (0.0, "");
    for ours in &seen {
        let Some(golden) = ours.golden(&goldens) else { continue };
        let deviation = ours.deviation(golden);
        assert!(deviation <= bar(&ours.name), "{} ({}) deviates by {deviation:e}", ours.name, golden.op);
        if deviation > worst.0 {
            worst = (deviation, &ours.name);
        }
        compared += 1;
    }
    println!(
        "{name}: {compared} of {} intermediates compared, the worst is {} with {:e}",
        seen.len(),
        worst.1,
        worst.0
    );
    assert!(compared >= least, "only {compared} of {} intermediates have a golden", seen.len());
}

#[test]
fn smollm2_intermediates_are_llama_cpps() {
    intermediates(SMOLLM2, 453, |_| 1e-5);
}

/// Gemma's gelu is rounded to f16: a value that falls on the other side of a rounding differs by 2^-11 at once, and the
/// layers after it carry that on. What comes before the first gelu shows that nothing else is amiss.
#[test]
fn gemma3_intermediates_are_llama_cpps() {
    let first = ["embd", "inp_scaled", "attn_norm-0", "Qcur-0", "Kcur-0", "Vcur-0", "Qcur_normed-0", "Kcur_normed-0"];
    let then = ["kqv_out-0", "attn_post_norm-0", "sa_out-0", "ffn_norm-0", "ffn_gate-0", "ffn_up-0", "ffn_geglu-0"];
    intermediates(GEMMA3, 328, |name| if first.contains(&name) || then.contains(&name) { 1e-5 } else { 3e-3 });
}
