//! Perplexities against those of llama.cpp's tool, on the same text in the same windows.
//!
//! How the text and the figures were made, and what the bars follow from, stands in `tests/data/perplexity/README.md`. The
//! real models come from `make model`.

use p64_core::kernel::Activations;
use p64_std::map::MapOptions;
use p64_std::model::LoadedModel;
use p64_std::perplexity::{self, Estimate};
use p64_std::session::{Session, SessionOptions};
use p64_tests::data::{data, workspace};
use serde::Deserialize;
use std::fs;
use std::ops::ControlFlow;

/// Largest relative difference from the tool's result on weights de-quantised to F32, after each window.
const PLAIN: f64 = 5e-4;
/// Largest relative difference from the tool's result on the model as it is, where llama.cpp itself is within it.
const DEFAULT: f64 = 5e-3;

#[derive(Deserialize)]
struct Golden {
    model: String,
    context: usize,
    default: Run,
    plain: Run,
}

#[derive(Deserialize)]
struct Run {
    perplexity: f64,
    error: f64,
    running: Vec<f64>,
}

fn golden(model: &str, context: usize) -> Golden {
    let text = fs::read_to_string(data("perplexity/golden.json")).expect("readable");
    let goldens: Vec<Golden> = serde_json::from_str(&text).expect("well-formed");
    goldens.into_iter().find(|golden| golden.model == model && golden.context == context).expect("recorded")
}

fn distance(ours: f64, theirs: f64) -> f64 {
    (ours / theirs - 1.0).abs()
}

/// Evaluates all windows and compares; answers with the number of tokens in them.
fn compare(model: &str, context: usize, activations: Activations) -> usize {
    let golden = golden(model, context);
    let loaded = LoadedModel::open(&workspace(model), &MapOptions::default());
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}; `make model` fetches it"));
    let text = fs::read(data("perplexity/text.txt")).expect("readable");
    let tokens = perplexity::tokens(loaded.tokenizer(), &text).expect("can be cut");
    let options = SessionOptions { context: Some(context), activations, ..SessionOptions::default() };
    let mut session = Session::new(&loaded, &options).expect("fits");
    let mut running = Vec::new();
    let found = perplexity::evaluate(&mut session, &tokens, context, None, &mut |estimate| {
        running.push(estimate.perplexity());
        ControlFlow::Continue(())
    });
    let found = found.expect("computes");

    assert_eq!((found.windows, running.len()), (golden.plain.running.len(), golden.default.running.len()));
    assert_eq!(found.predicted, found.windows * (context - context / 2 - 1));
    for (window, (ours, theirs)) in running.iter().zip(&golden.plain.running).enumerate() {
        // The tool prints four decimals.
        assert!((ours - theirs).abs() <= PLAIN * theirs + 1e-4, "window {window}: {ours} and {theirs}");
    }
    check(&found, &golden);
    println!(
        "{model}, windows of {context}: {:.4} ± {:.4}; llama.cpp {:.4}, on F32 weights {:.4}",
        found.perplexity(),
        found.error(),
        golden.default.perplexity,
        golden.plain.perplexity
    );
    found.windows * context
}

fn check(found: &Estimate, golden: &Golden) {
    let (plain, default) = (&golden.plain, &golden.default);
    let to_plain = distance(found.perplexity(), plain.perplexity);
    assert!(to_plain <= PLAIN, "{} and {}", found.perplexity(), plain.perplexity);
    assert!(distance(found.error(), plain.error) <= PLAIN, "{} and {}", found.error(), plain.error);
    // The tool's default differs from its own plain result by what it rounds. We are nearer.
    let theirs = distance(default.perplexity, plain.perplexity);
    assert!(to_plain <= theirs, "we differ from the plain result by {to_plain}, llama.cpp by {theirs}");
    if theirs <= DEFAULT {
        let to_default = distance(found.perplexity(), default.perplexity);
        assert!(to_default <= DEFAULT, "{} and {}", found.perplexity(), default.perplexity);
    }
}

#[test]
fn the_bundled_model_in_both_precisions_and_windows() {
    for activations in [Activations::F32, Activations::Quantized] {
        for context in [512, 128] {
            compare("tests/data/tiny/tiny-stories-q8_0.gguf", context, activations);
        }
    }
}

#[test]
fn smollm2_equals_llama_cpp() {
    assert!(compare("models/smollm2-135m-q4_1.gguf", 512, Activations::Quantized) >= 4000);
}

#[test]
fn gemma3_equals_llama_cpp() {
    assert!(compare("models/gemma3-270m-q4_k_m.gguf", 512, Activations::Quantized) >= 4000);
}

/// Windows that are left out, breaking off, and texts too short.
#[test]
fn the_caller_decides_how_much() {
    let path = data("tiny/tiny-stories-q8_0.gguf");
    let model = LoadedModel::open(&path, &MapOptions::default()).expect("opens");
    let text = fs::read(data("perplexity/text.txt")).expect("readable");
    let tokens = perplexity::tokens(model.tokenizer(), &text).expect("can be cut");
    let golden = golden("tests/data/tiny/tiny-stories-q8_0.gguf", 128);
    let options = SessionOptions { context: Some(128), batch: 7, ..SessionOptions::default() };
    let mut session = Session::new(&model, &options).expect("fits");
    let mut run = |most, stop_after| {
        perplexity::evaluate(&mut session, &tokens, 128, most, &mut |estimate| {
            if estimate.windows < stop_after { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .expect("computes")
    };
    let (three, two) = (run(Some(3), 9), run(None, 2));
    assert_eq!((three.windows, three.of, two.windows, two.of), (3, 3, 2, golden.plain.running.len()));
    assert!(distance(three.perplexity(), golden.plain.running[2]) <= PLAIN);
    assert!(distance(two.perplexity(), golden.plain.running[1]) <= PLAIN);
    let short = perplexity::evaluate(&mut session, &tokens[..255], 128, None, &mut |_| ControlFlow::Continue(()));
    assert!(short.unwrap_err().to_string().contains("need at least 256"));
}
