//! Perplexity; its figures are compared with llama.cpp's in `tests/tests/perplexity.rs`.

use crate::{Converted, Outcome, p64, p64_on, tiny};
use std::ffi::OsStr;
use std::path::Path;

/// Evaluates the fixed text; `options` are words separated by spaces.
fn run(options: &str, model: &Path) -> Outcome {
    let text = p64_tests::data::data("perplexity/text.txt");
    let front = ["perplexity", "-t", "1", "-f"].map(OsStr::new);
    p64(front.into_iter().chain([text.as_os_str(), model.as_os_str()]).chain(options.split(' ').map(OsStr::new)))
}

#[test]
fn gguf_and_container_give_the_same() {
    let converted = Converted::new();
    let gguf = run("-c 64 --chunks 3 --json", &tiny()).ok().object();
    let p64 = run("-c 64 --chunks 3 --json", &converted.p64).ok().object();
    for key in ["perplexity", "error", "mean_nll", "running", "windows", "predicted_tokens", "text_tokens"] {
        assert_eq!(gguf[key], p64[key], "{key}");
        assert!(!gguf[key].is_null(), "{key}");
    }
    assert_eq!((gguf["windows"].as_u64(), gguf["predicted_tokens"].as_u64()), (Some(3), Some(3 * 31)));
    let text = run("-c 64 --chunks 3", &tiny()).ok();
    let value = gguf["perplexity"].as_f64().expect("a number");
    assert!(text.stdout.starts_with(&format!("perplexity {value:.4} ± ")), "{}", text.stdout);
    assert!(text.stderr.contains("[3] ") && text.stderr.contains("3 windows of 64 tokens"), "{}", text.stderr);
}

#[test]
fn what_cannot_be_measured_is_the_requests_fault() {
    for (options, reason) in [
        ("--chunks 0", "--chunks must be at least 1"),
        ("-c 3", "at least 4"),
        ("-c 100000", "windows of 100000 need at least 200000"),
    ] {
        let outcome = run(options, &tiny());
        assert_eq!(outcome.code, 2, "{options}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(reason), "{options}: {}", outcome.stderr);
    }
    assert_eq!(p64_on("perplexity {}", &tiny()).code, 2, "a text is needed");
}
