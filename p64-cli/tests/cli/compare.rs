//! `p64 diff` and `p64 stats` as their users see them.

use crate::{Converted, p64, p64_on, tiny};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

fn diff(options: &str, a: &Path, b: &Path) -> crate::Outcome {
    let options = options.split(' ').filter(|option| !option.is_empty()).map(OsStr::new);
    p64([OsStr::new("diff")].into_iter().chain(options).chain([a.as_os_str(), b.as_os_str()]))
}

/// The bundled model with one byte of its last tensor changed.
fn changed(folder: &Path) -> PathBuf {
    let mut bytes = std::fs::read(tiny()).expect("the bundled model");
    let last = bytes.len() - 40;
    bytes[last] ^= 1;
    let path = folder.join("changed.gguf");
    std::fs::write(&path, bytes).expect("written");
    path
}

#[test]
fn the_same_model_in_two_formats() {
    let converted = Converted::new();
    let outcome = diff("--exit-code", &tiny(), &converted.p64).ok();
    assert!(outcome.stdout.contains("the same model: 38 tensors"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("Layout") && outcome.stderr.is_empty());
    let object = diff("--json", &tiny(), &converted.p64).ok().object();
    assert_eq!((&object["same_model"], &object["counts"]["rewritten"]), (&Value::Bool(true), &Value::from(0)));
    assert_eq!(diff("-q", &tiny(), &converted.p64).ok().stdout, "");
}

#[test]
fn another_model() {
    let converted = Converted::new();
    let other = changed(converted.folder.path());
    let outcome = diff("", &tiny(), &other).ok();
    assert!(outcome.stdout.contains("1 of 38 tensors differ, no key differs"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("rewritten"));
    assert_eq!(diff("--exit-code", &tiny(), &other).code, 1);
    assert_eq!(diff("--exit-code", &other, &converted.p64).code, 1);
    let object = diff("--json", &tiny(), &other).ok().object();
    let tensor = &object["tensors"][0];
    assert_eq!(object["tensors"].as_array().map(Vec::len), Some(1));
    assert!(tensor["numbers"]["rmse"].as_f64().is_some_and(|rmse| rmse > 0.0));
    assert_eq!(tensor["first_difference"].as_u64(), tensor["a"]["bytes"].as_u64().map(|bytes| bytes - 40));
    let without = diff("--json --no-values", &tiny(), &other).ok().object();
    assert!(without["tensors"][0]["numbers"].is_null());
    assert_eq!(diff("--tensors no-such-*", &tiny(), &other).code, 2);
    assert_eq!(diff("", &tiny(), Path::new("missing.gguf")).code, 2);
}

#[test]
fn statistics() {
    let text = p64_on("stats {} --tensors *attn_q* -t 1", &tiny()).ok().stdout;
    assert!(text.contains("4 tensors of 38") && text.contains("blk.3.attn_q.weight"), "{text}");
    assert!(!text.contains("ffn_down"));
    let object = p64_on("stats --json {}", &tiny()).ok().object();
    let tensors = object["tensors"].as_array().expect("tensors");
    assert_eq!((tensors.len(), object["not_finite"].as_u64()), (38, Some(0)));
    for tensor in tensors {
        let histogram = &tensor["histogram"];
        let counts: u64 = histogram["counts"].as_array().expect("counts").iter().filter_map(Value::as_u64).sum();
        let all =
            counts + ["below", "above"].map(|side| histogram[side].as_u64().expect("a number")).iter().sum::<u64>();
        assert_eq!(Some(all), tensor["elements"].as_u64());
    }
    assert_eq!(p64_on("stats {} --tensors nothing", &tiny()).code, 2);
}

/// A model whose norm holds a NaN.
fn with_nan(folder: &Path) -> PathBuf {
    let name = b"output_norm.weight";
    let mut bytes = std::fs::read(tiny()).expect("the bundled model");
    let gguf = p64_std::gguf::GgufFile::open(&tiny()).expect("the bundled model");
    let tensor = gguf.gguf().tensors().iter().find(|tensor| tensor.name.as_bytes() == name).expect("a norm");
    let at = usize::try_from(gguf.extent(tensor).start()).expect("small");
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    let path = folder.join("nan.gguf");
    std::fs::write(&path, bytes).expect("written");
    path
}

#[test]
fn what_is_no_number_is_said_loudly() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = with_nan(folder.path());
    let outcome = p64_on("stats {}", &path).ok();
    assert!(outcome.stderr.contains("warning: output_norm.weight: 1 NaN among 128 values"), "{}", outcome.stderr);
    assert_eq!(p64_on("stats --finite {}", &tiny()).code, 0);
    let outcome = p64_on("stats --finite {}", &path);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("1 value NaN or infinite"), "{}", outcome.stderr);
    assert_eq!(p64_on("stats --finite --json {}", &path).object()["not_finite"], 1);
}

fn page(model: &Path, out: &Path) -> String {
    p64([OsStr::new("stats"), OsStr::new("--html"), out.as_os_str(), model.as_os_str()]).ok();
    std::fs::read_to_string(out).expect("the page")
}

/// What a browser makes of the page is tried by `.ci/browser.sh`; here is what must hold before it.
#[test]
fn the_page_needs_nothing_and_trusts_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = std::fs::read(tiny()).expect("the bundled model");
    let name = b"blk.2.ffn_down.weight";
    let hostile = b"<img src=x onerror=1>";
    let at = bytes.windows(name.len()).position(|window| window == name).expect("a name");
    bytes[at..at + name.len()].copy_from_slice(hostile);
    let model = folder.path().join("hostile.gguf");
    std::fs::write(&model, bytes).expect("written");
    let page = page(&model, &folder.path().join("page.html"));
    assert!(page.contains("&lt;img src=x onerror=1&gt;") && !page.contains("<img"), "names are escaped");
    assert_eq!((page.matches("<script").count(), page.matches("<style").count()), (1, 1));
    assert!(page.contains("default-src 'none'") && page.contains("script-src 'sha256-"));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("url("), "nothing is fetched");
    for figure in ["strip", "rows", "columns", "grid-types", "grid-std", "grid-peaks", "panel", "scatter", "spark"] {
        assert!(page.contains(&format!("<svg class=\"{figure}\"")), "{figure} is missing");
    }
    assert!(page.len() < 3_000_000);
}

#[test]
fn the_page_does_not_replace_its_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("m.gguf");
    std::fs::copy(tiny(), &model).expect("copied");
    let outcome = p64([OsStr::new("stats"), OsStr::new("--html"), model.as_os_str(), model.as_os_str()]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("the same file"), "{}", outcome.stderr);
    assert_eq!(std::fs::read(&model).ok(), std::fs::read(tiny()).ok());
}
