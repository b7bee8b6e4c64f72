//! A container past 4 GiB through the command: made, looked at, verified, run and turned back.

use crate::{Converted, p64, p64_on, tiny};
use serde_json::Value;
use std::ffi::OsStr;

/// The bundled model with 1 GiB before each layer, all but its weights a hole.
#[test]
fn every_command_takes_a_file_of_version_5() {
    let small = Converted::new();
    let (large, back) = (small.path("large.p64"), small.path("back.gguf"));
    let page = ["convert", "--quiet", "--page-size", "1073741824"].map(OsStr::new);
    p64(page.into_iter().chain([tiny().as_os_str(), large.as_os_str()])).ok();

    let report = p64_on("inspect --json {}", &large).ok().object();
    assert_eq!(report["version"], 5);
    assert!(report["bytes"].as_u64() > Some(1 << 32), "{}", report["bytes"]);
    let text = p64_on("inspect {}", &large).ok().stdout;
    assert!(text.contains("version 5"), "{text}");
    let outcome = p64_on("verify --strict {}", &large).ok();
    assert!(outcome.stdout.contains(": OK, ") && outcome.stderr.is_empty(), "{}{}", outcome.stdout, outcome.stderr);

    let ids = |path| p64_on("run --json {} -p Once -n 12 --temp 0 -t 1 -c 64", path).ok().object()["ids"].clone();
    let expected = ids(&small.p64);
    assert_eq!(expected.as_array().map(Vec::len), Some(12));
    assert_eq!(ids(&large), expected);

    let report = p64([OsStr::new("export"), OsStr::new("--json"), large.as_os_str(), back.as_os_str()]).ok().object();
    assert_eq!(report["identical"], Value::Bool(true));
    assert!(std::fs::read(&back).expect("there") == std::fs::read(tiny()).expect("there"));
}
