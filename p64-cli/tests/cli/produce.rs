//! Weights that `p64 convert` encodes anew, and containers that it lays out anew.

use crate::{Converted, Outcome, p64, p64_on, tiny};
use std::ffi::OsString;
use std::path::Path;

fn convert(extra: &[&str], input: &Path, output: &Path) -> Outcome {
    let mut args: Vec<OsString> = vec!["convert".into()];
    args.extend(extra.iter().map(Into::into));
    args.extend([input.into(), output.into()]);
    p64(args)
}

#[test]
fn a_profile_a_rule_and_a_layout_change_what_they_name() {
    let converted = Converted::new();
    let out = converted.path("out.p64");
    for (extra, to) in [
        (&["--profile", "ffn-q4_0"][..], "Q4_0"),
        (&["--profile", "ffn-ternary", "-t", "1"], "TERNARY"),
        (&["--rule", "ffn_*=q5_1"], "Q5_1"),
        (&["--layout", "f16", "--rule", "attn_*=keep"], "F16"),
    ] {
        let report = convert(&[&["--json"], extra].concat(), &tiny(), &out).ok().object();
        assert_eq!(report["profile"], "gguf-quantized", "{extra:?}");
        let changes = report["changes"].as_array().expect("a list");
        assert!(!changes.is_empty());
        for change in changes {
            assert_eq!((change["from"].as_str(), change["to"].as_str()), (Some("Q8_0"), Some(to)), "{extra:?}");
            let name = change["name"].as_str().expect("a name");
            assert!(name.contains(".ffn_") || (to == "F16" && !name.contains("attn_")), "{extra:?}: {name}");
            assert!(change["rmse"].as_f64() <= change["max"].as_f64(), "{change}");
        }
        p64_on("verify --strict {}", &out).ok();
        p64_on("run {} -p Once -n 4 --temp 0", &out).ok();
        let back = converted.path("back.gguf");
        let export = p64(["export".as_ref(), "--json".as_ref(), out.as_os_str(), back.as_os_str()]).ok().object();
        assert!(export["identical"].is_null(), "{extra:?}");
        // Rows of 128 make Q4_0, rows of 256 TQ2_0.
        let replaced = if to == "TERNARY" { 2 } else { 0 };
        assert_eq!(export["replaced"].as_array().map(Vec::len), Some(replaced), "{export}");
        p64_on("run {} -p Once -n 4 --temp 0", &back).ok();
    }
    let text = convert(&["--profile", "ffn-q4_0"], &tiny(), &out).ok().stdout;
    assert!(text.contains("  from  to    ") && text.contains("blk.0.ffn_down.weight"), "{text}");
}

#[test]
fn a_container_laid_out_anew_still_gives_the_source_back() {
    let converted = Converted::new();
    let (anew, back) = (converted.path("anew.p64"), converted.path("back.gguf"));
    let report = convert(&["--json", "--for", "firmware"], &converted.p64, &anew).ok().object();
    assert_eq!((report["profile"].as_str(), report["source_files"].as_u64()), (Some("gguf-preserving"), Some(0)));
    let export = p64(["export".as_ref(), anew.as_os_str(), back.as_os_str()]).ok();
    assert!(export.stdout.contains("identical to the source"), "{}", export.stdout);
    assert_eq!(convert(&[], &converted.p64, &converted.p64).code, 2, "the same file");
}

#[test]
fn what_cannot_be_meant_is_2() {
    let converted = Converted::new();
    let out = converted.path("out.p64");
    for extra in [
        &["--profile", "q4_k_x"][..],
        &["--rule", "ffn_down"],
        &["--rule", "ffn_down=q8_1"],
        &["--layout", "rows"],
        &["--check-parity", "--layout", "f16"],
        &["--check-parity", "--rule", "output=f16"],
        &["--imatrix", "missing.dat", "--profile", "q4_k_m"],
    ] {
        let outcome = convert(extra, &tiny(), &out);
        assert_eq!(outcome.code, 2, "{extra:?}: {}", outcome.stderr);
        assert!(!out.exists() && outcome.stdout.is_empty(), "{extra:?}");
    }
    // Before anything is written, not after it.
    let outcome = convert(&["--check-parity"], &p64_tests::data::data("hf/llama-f32"), &out);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(!out.exists() && outcome.stderr.contains("compares with a GGUF"), "{}", outcome.stderr);
}
