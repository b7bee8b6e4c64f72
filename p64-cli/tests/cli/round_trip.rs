//! GGUF to P64 and back through the command, and what happens to damaged and replaced files.

use crate::{Converted, p64, p64_on, tiny};
use std::path::Path;

fn convert(extra: &[&str], input: &Path, output: &Path) -> crate::Outcome {
    let mut args: Vec<std::ffi::OsString> = vec!["convert".into()];
    args.extend(extra.iter().map(Into::into));
    args.extend([input.into(), output.into()]);
    p64(args)
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("readable")
}

#[test]
fn the_source_comes_back_identical() {
    let converted = Converted::new();
    for line in ["verify {}", "verify --strict {}", "verify --lazy {}", "verify --lazy --strict {}"] {
        let outcome = p64_on(line, &converted.p64).ok();
        assert_eq!(outcome.stderr, "");
        assert!(outcome.stdout.contains(": OK, ") && outcome.stdout.lines().count() == 1, "{}", outcome.stdout);
    }
    let back = converted.path("back.gguf");
    let outcome = p64(["export".as_ref(), converted.p64.as_os_str(), back.as_os_str()]).ok();
    assert!(outcome.stdout.contains("identical to the source"), "{}", outcome.stdout);
    assert!(bytes(&back) == bytes(&tiny()));
    let named = converted.path("back");
    p64(["export".as_ref(), converted.p64.as_os_str(), named.as_os_str(), "--to".as_ref(), "gguf".as_ref()]).ok();
    assert!(bytes(&named) == bytes(&tiny()));
}

#[test]
fn every_layout_verifies_strictly_and_has_parity() {
    let converted = Converted::new();
    let other = converted.path("other.p64");
    for extra in [
        &["--check-parity"][..],
        &["--check-parity", "--no-pack"],
        &["--check-parity", "--no-schedule"],
        &["--check-parity", "--no-layer-major", "--no-pack", "--no-schedule"],
        &["--check-parity", "--page-size", "256"],
        &["--check-parity", "--for", "firmware"],
    ] {
        let outcome = convert(extra, &tiny(), &other).ok();
        assert!(outcome.stdout.contains("equal to the source"), "{extra:?}: {}", outcome.stdout);
        p64_on("verify --strict {}", &other).ok();
    }
    assert_eq!(convert(&["--page-size", "1000"], &tiny(), &other).code, 2);
}

#[test]
fn the_firmware_layout_is_small_and_has_what_a_reader_without_memory_needs() {
    let converted = Converted::new();
    let firmware = converted.path("firmware.p64");
    let report = convert(&["--json", "--for", "firmware"], &tiny(), &firmware).ok().object();
    let [host, firmware] = [&converted.p64, &firmware].map(|file| p64_on("inspect --json {}", file).ok().object());
    let header = &firmware["header"];
    assert_eq!(header["page_size"], 256);
    let flags: Vec<&str> = header["flags"].as_array().into_iter().flatten().filter_map(|flag| flag.as_str()).collect();
    assert_eq!(flags, ["LITTLE_ENDIAN", "LAYER_MAJOR", "LAYER_PACK", "LAYER_SCHEDULE"]);
    assert_eq!(firmware["padding"]["bytes"], report["padding_bytes"]);
    let padding = |report: &serde_json::Value| report["padding"]["bytes"].as_u64().expect("bytes");
    // A blob begins at most 63 bytes behind the one before it, a layer (or what belongs to none) at most 255.
    let most = firmware["tensors"].as_array().map_or(0, Vec::len) * 63
        + firmware["layers"].as_array().map_or(0, Vec::len) * 255;
    assert!(padding(&firmware) <= most as u64, "{} of at most {most}", padding(&firmware));
    assert!(padding(&firmware) < padding(&host));
}

#[test]
fn a_target_and_a_layout_option_exclude_each_other() {
    let converted = Converted::new();
    let other = converted.path("other.p64");
    for extra in [&["--page-size", "4096"][..], &["--no-pack"], &["--no-schedule"], &["--no-layer-major"]] {
        let outcome = convert(&[&["--for", "firmware"], extra].concat(), &tiny(), &other);
        assert_eq!(outcome.code, 2, "{extra:?}");
    }
    assert_eq!(convert(&["--for", "toaster"], &tiny(), &other).code, 2);
    assert!(!other.exists());
}

#[test]
fn conversions_are_deterministic_and_replace_what_was_there() {
    let converted = Converted::new();
    let other = converted.path("other.p64");
    std::fs::write(&other, b"an older file").expect("written");
    convert(&[], &tiny(), &other).ok();
    assert!(bytes(&other) == bytes(&converted.p64));
    convert(&[], &tiny(), &other).ok();
    let left: Vec<_> = std::fs::read_dir(converted.folder.path()).expect("folder").collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn input_and_output_must_differ() {
    let converted = Converted::new();
    let copy = converted.path("copy.gguf");
    std::fs::copy(tiny(), &copy).expect("copied");
    let outcome = convert(&[], &copy, &copy);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("same file; give another name to the output"), "{}", outcome.stderr);
    assert!(bytes(&copy) == bytes(&tiny()));
}

/// With several files each has its line, and the worst decides.
#[test]
fn verify_checks_all_and_the_worst_decides() {
    let converted = Converted::new();
    let damaged = converted.path("damaged.p64");
    let mut flipped = bytes(&converted.p64);
    let middle = flipped.len() / 2;
    flipped[middle] ^= 4;
    std::fs::write(&damaged, flipped).expect("written");
    let missing = converted.path("missing.p64");
    let (good, damaged, missing) = (converted.p64.as_os_str(), damaged.as_os_str(), missing.as_os_str());

    let outcome = p64(["verify".as_ref(), damaged, good]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stdout.contains("tiny.p64: OK"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("damaged.p64: ") && outcome.stderr.lines().count() == 1, "{}", outcome.stderr);
    let outcome = p64(["verify".as_ref(), "--lazy".as_ref(), damaged]);
    assert_eq!(outcome.code, 1);
    let outcome = p64(["verify".as_ref(), damaged, missing, good]);
    assert_eq!((outcome.code, outcome.stderr.lines().count()), (2, 2), "{}", outcome.stderr);
}
