//! The forward pass against llama.cpp.
#[path = "llama_golden/engine.rs"]
mod engine;
#[path = "llama_golden/golden.rs"]
mod golden;

use engine::Engine;
use p64_core::forward::{Options, argmax};
use p64_core::kernel::Activations;
use p64_std::map::MappedGguf;
use p64_tests::data::model;
use std::time::Instant;

fn kl(p: &[f32], q: &[f32]) -> f64 {
    let lse = |x: &[f32]| {
        let m = x.iter().copied().fold(f32::MIN, f32::max) as f64;
        m + x.iter().map(|x| (*x as f64 - m).exp()).sum::<f64>().ln()
    };
    let (a, b) = (lse(p), lse(q));
    p.iter()
        .zip(q)
        .map(|(p, q)| {
            let lp = *p as f64 - a;
            lp.exp() * (lp - (*q as f64 - b))
        })
        .sum()
}
fn rms(p: &[f32], q: &[f32]) -> f64 {
    (p.iter().zip(q).map(|(p, q)| ((*p - *q) as f64).powi(2)).sum::<f64>() / p.len() as f64).sqrt()
}
fn max(p: &[f32], q: &[f32]) -> f32 {
    p.iter().zip(q).map(|(p, q)| (*p - *q).abs()).fold(0.0, f32::max)
}

#[test]
fn explore() {
    for name in ["smollm2-135m-q4_1", "gemma3-270m-q4_k_m"] {
        let file = MappedGguf::open(&model(&format!("{name}.gguf"))).expect("opens");
        let mut engine = Engine::new(&file, 128, 64);
        for activations in [Activations::F32, Activations::Quantized] {
            let mut options = Options { activations, ..Options::default() };
            for (i, case) in golden::cases(name, "deq-f32").iter().enumerate() {
                let t = Instant::now();
                let logits = engine.prompt(&case.prompt_ids, &mut options);
                let tp = t.elapsed().as_secs_f64();
                let top: f32 =
                    case.first_logits_top20.iter().map(|t| (logits[t.id as usize] - t.logit).abs()).fold(0.0, f32::max);
                print!("{name} {activations:?} p{i}: top20 max {top:.5} ");
                if let Some(g) = case.first_logits() {
                    print!("max {:.5} rms {:.5} kl {:.2e} ", max(&g, &logits), rms(&g, &logits), kl(&g, &logits));
                }
                let mut logits = logits;
                let mut worst = 0f32;
                let mut flips = vec![];
                let t = Instant::now();
                for (k, id) in case.gen_ids.iter().enumerate() {
                    worst = worst.max((logits[*id as usize] - case.top1_logit[k]).abs());
                    if argmax(&logits) != *id {
                        flips.push((k, case.top1_top2_margin[k]));
                    }
                    logits = engine.step(*id, &mut options);
                }
                println!(
                    "steps worst top1 {worst:.5} flips {flips:?}  prefill {:.1} tok/s decode {:.1} tok/s",
                    case.prompt_ids.len() as f64 / tp,
                    32.0 / t.elapsed().as_secs_f64()
                );
            }
        }
    }
}
