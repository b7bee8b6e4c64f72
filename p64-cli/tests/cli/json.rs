//! The shape of the one object that each command prints under `--json`.

use crate::{Converted, p64, p64_on, tiny};
use serde_json::Value;

/// The keys of an object, in order.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[track_caller]
fn has(value: &Value, names: &[&str]) {
    let keys = keys(value);
    names.iter().for_each(|name| assert!(keys.contains(name), "{name} is not among {keys:?}"));
}

#[test]
fn files() {
    let converted = Converted::new();
    let out = converted.path("x.p64");
    let args = ["convert".as_ref(), "--json".as_ref(), "--check-parity".as_ref()];
    let convert = p64(args.into_iter().chain([tiny().as_os_str(), out.as_os_str()])).ok().object();
    has(&convert, &["input", "output", "tensors", "bytes", "padding_bytes", "source_sha256", "warnings", "seconds"]);
    assert_eq!(convert["bytes"], std::fs::metadata(&out).expect("written").len());
    assert_eq!(convert["parity"]["equal"], true);

    let verify = p64_on("verify --json --strict {}", &out).ok().object();
    assert_eq!(keys(&verify), ["ok", "files"]);
    assert_eq!((&verify["ok"], &verify["files"][0]["ok"]), (&Value::Bool(true), &Value::Bool(true)));
    has(&verify["files"][0], &["path", "format", "tensors", "bytes", "seconds", "warnings"]);

    let back = converted.path("x.gguf");
    let export = p64(["--json".as_ref(), "export".as_ref(), out.as_os_str(), back.as_os_str()]).ok().object();
    assert_eq!(export["identical"], true);
    assert_eq!(export["files"][0]["sha256"], convert["source_sha256"][0]);
}

#[test]
fn inspect_of_both_formats() {
    let converted = Converted::new();
    let p64 = p64_on("inspect --json {}", &converted.p64).ok().object();
    let gguf = p64_on("inspect --json {}", &tiny()).ok().object();
    for report in [&p64, &gguf] {
        has(report, &["path", "format", "version", "bytes", "header", "model", "space", "sections", "types", "layers"]);
        has(report, &["tensors", "metadata", "provenance", "warnings"]);
        let space = report["space"].as_object().expect("an object");
        let sum: u64 = space.values().filter_map(Value::as_u64).sum();
        assert_eq!(report["bytes"], sum, "the four parts are the whole file");
        let padding = ["page_padding", "other_padding"].map(|part| space[part].as_u64().expect("bytes"));
        assert_eq!(report["padding"]["bytes"], padding.iter().sum::<u64>());
        let share = report["padding"]["share"].as_f64().expect("a share");
        assert!((share * sum as f64 - padding.iter().sum::<u64>() as f64).abs() < 0.5, "{share}");
        assert_eq!(report["model"]["architecture"], "llama");
    }
    assert_eq!((p64["format"].as_str(), gguf["format"].as_str()), (Some("p64"), Some("gguf")));
    assert_eq!(p64["metadata"], gguf["metadata"], "the keys are the source's");
    assert_eq!(p64["model"]["parameters"], gguf["model"]["parameters"]);
    // Two more: the keys, and the provenance.
    let count = |report: &Value| report["tensors"].as_array().map_or(0, Vec::len);
    assert_eq!(count(&p64), count(&gguf) + 2);
}

#[test]
fn long_values_are_shortened_unless_full() {
    let tokens = |line: &str| {
        let report = p64_on(line, &tiny()).ok().object();
        let keys = report["metadata"].as_array().expect("keys").clone();
        keys.into_iter().find(|key| key["key"] == "tokenizer.ggml.tokens").expect("a vocabulary")
    };
    let (short, full) = (tokens("inspect --json {}"), tokens("inspect --json --full {}"));
    assert_eq!((&short["shortened"], &full["shortened"]), (&Value::Bool(true), &Value::Bool(false)));
    assert_eq!(short["value"].as_array().map(Vec::len), Some(5));
    assert_eq!(full["value"].as_array().map(Vec::len), full["len"].as_u64().and_then(|n| usize::try_from(n).ok()));
}

#[test]
fn run_gives_ids_and_text_the_same_for_both_formats() {
    let converted = Converted::new();
    let line = "run --json {} -p Once -n 12 --temp 0 -t 1 -c 64";
    let p64 = p64_on(line, &converted.p64).ok().object();
    let gguf = p64_on(line, &tiny()).ok().object();
    has(&p64, &["ids", "text", "prompt_ids", "reason", "stats", "description"]);
    assert_eq!((&p64["ids"], &p64["text"]), (&gguf["ids"], &gguf["text"]));
    assert_eq!(p64["ids"].as_array().map(Vec::len), Some(12));
    assert_eq!((p64["format"].as_str(), gguf["format"].as_str()), (Some("p64"), Some("gguf")));
    assert_eq!(p64["stats"]["generated_tokens"], 12);

    let ids: Vec<String> = p64["ids"].as_array().expect("ids").iter().map(ToString::to_string).collect();
    let printed = p64_on("run -q --ids {} -p Once -n 12 --temp 0 -t 1", &converted.p64).ok().stdout;
    assert_eq!(printed.trim_end(), ids.join(" "));
    let text = p64_on("run -q {} -p Once -n 12 --temp 0 -t 1", &converted.p64).ok().stdout;
    assert_eq!(text.strip_suffix('\n'), p64["text"].as_str());
    let text = p64_on("run -q --no-stream {} -p Once -n 12 --temp 0 -t 2", &converted.p64).ok().stdout;
    assert_eq!(text.strip_suffix('\n'), p64["text"].as_str());
}

#[test]
fn bench_gives_medians() {
    let bench = p64_on("bench --json {} -p 8 -n 4 -t 1 -r 3", &tiny()).ok().object();
    for (name, test) in [("pp_tok_s", 0), ("tg_tok_s", 1)] {
        let mut samples: Vec<f64> = bench["tests"][test]["samples_tok_s"]
            .as_array()
            .expect("samples")
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        assert_eq!(samples.len(), 3);
        samples.sort_by(f64::total_cmp);
        assert!(samples[0] > 0.0);
        assert_eq!(bench[name].as_f64(), Some(samples[1]));
    }
    let scalar = p64_on("bench --json {} -p 8 -n 0 -t 1 -r 1 --level scalar", &tiny()).ok().object();
    assert_eq!(scalar["level"], "scalar");
    assert!(["scalar", "avx2", "avx512"].contains(&bench["level"].as_str().expect("a level")));
    let deep = p64_on("bench --json {} -p 3 -n 4 -d 9 -t 1 -r 1", &tiny()).ok().object();
    assert_eq!(deep["depth"], 9);
    assert_eq!(deep["tests"][1]["test"], "tg4 @ d9");
    assert!(deep["tg_tok_s"].as_f64().expect("a rate") > 0.0);
    let only_pp = p64_on("bench --json {} -p 8 -n 0 -t 1 -r 1", &tiny()).ok().object();
    assert!(only_pp["tg_tok_s"].is_null() && only_pp["pp_tok_s"].is_number());
    assert!(only_pp["tg_of_bandwidth"].is_null());
    for name in ["tg_gb_s", "tg_of_bandwidth", "bandwidth_gb_s", "bandwidth_best_gb_s", "peak_memory"] {
        assert!(bench[name].as_f64() > Some(0.0), "{name}: {}", bench[name]);
    }
    // What the bandwidth is measured on is larger than the model.
    let alone = p64_on("bench --json {} -p 8 -n 4 -t 1 -r 1 --no-bandwidth", &tiny()).ok().object();
    assert!(alone["tg_gb_s"].is_number() && alone["tg_of_bandwidth"].is_null() && alone["bandwidth_gb_s"].is_null());
    assert!(alone["peak_memory"].as_u64() < bench["peak_memory"].as_u64());
}

#[test]
fn bandwidth_is_measured_alone_too() {
    let found = p64(["bench", "--bandwidth", "--json", "-t", "1"]).ok().object();
    for name in ["median_gb_s", "best_gb_s", "bytes"] {
        assert!(found[name].as_f64() > Some(0.0), "{name}: {}", found[name]);
    }
    assert_eq!(found["threads"], 1);
    assert!(found["samples_gb_s"].as_array().is_some_and(|samples| samples.len() > 2));
    assert!(p64(["bench", "--bandwidth", "-t", "1"]).ok().stdout.contains("GB/s read by 1 thread"));
}

#[test]
fn demo_and_completions() {
    let demo = p64(["demo", "--json", "-n", "5"]).ok().object();
    assert_eq!(demo["identical"], true);
    assert_eq!(demo["ids"].as_array().map(Vec::len), Some(5));
    assert_eq!(demo["source_sha256"][0], demo["exported_sha256"]);
    has(&p64(["completions", "bash", "--json"]).ok().object(), &["shell", "script"]);
}
