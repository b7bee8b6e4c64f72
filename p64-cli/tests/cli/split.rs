//! `p64 split`, `p64 merge`, and a set in the place of a container.

use crate::{Converted, p64, p64_on, tiny};
use std::path::Path;

fn words<'a>(paths: &'a [&'a Path], line: &'a str) -> Vec<&'a std::ffi::OsStr> {
    let mut paths = paths.iter();
    line.split(' ')
        .map(|word| if word == "{}" { paths.next().expect("a path").as_os_str() } else { word.as_ref() })
        .collect()
}

#[test]
fn a_set_and_back() {
    let converted = Converted::new();
    let stem = converted.path("set");
    let report = p64(words(&[&converted.p64, &stem], "split --json {} {} --layers 2")).ok().object();
    let files: Vec<_> = report["files"].as_array().expect("files").clone();
    assert_eq!((files.len(), report["tensors"].as_u64()), (3, Some(38)));
    assert_eq!((&files[1]["layers"], &files[2]["layers"]), (&serde_json::json!([2, 3]), &serde_json::Value::Null));
    let paths: Vec<_> = files.iter().map(|file| converted.path(file["path"].as_str().expect("a path"))).collect();
    let all: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();

    let verify = p64(words(&all, "verify --json --strict {} {} {}")).ok().object();
    assert_eq!(verify["files"].as_array().map(Vec::len), Some(3));
    assert!(verify["files"][0]["bytes"].is_u64() && verify["files"][1]["bytes"].is_null(), "one pass over the set");
    assert_eq!(verify["files"][1]["set"].as_array().map(Vec::len), Some(3));
    let text = p64(words(&all, "verify {} {} {}")).ok().stdout;
    assert!(text.contains("3 files, 42 tensors") && text.matches("checked with its set").count() == 2, "{text}");

    let inspect = p64_on("inspect --json {}", all[1]).ok().object();
    assert_eq!((&inspect["header"]["set"], &inspect["files"][1]["layers"]), (&report["set"], &files[1]["layers"]));
    let space = inspect["space"].as_object().expect("an object");
    assert_eq!(inspect["bytes"], space.values().filter_map(serde_json::Value::as_u64).sum::<u64>());
    let tensors = inspect["tensors"].as_array().expect("tensors");
    assert!(tensors.iter().any(|tensor| tensor["file"] == "set-00003-of-00003.p64"));
    let whole = p64_on("inspect --json {}", &converted.p64).ok().object();
    assert_eq!((&inspect["metadata"], &inspect["model"]), (&whole["metadata"], &whole["model"]));
    let text = p64_on("inspect {}", all[0]).ok().stdout;
    assert!(text.contains("Files\n") && text.contains("set-00002-of-00003.p64"), "{text}");
    assert!(p64_on("inspect --tensors {}", all[0]).ok().stdout.contains("set-00002-of-00003.p64"));

    let line = "run --json {} -p Once -n 8 --temp 0 -t 1 -c 64";
    let (set, one) = (p64_on(line, all[2]).ok().object(), p64_on(line, &converted.p64).ok().object());
    assert_eq!((&set["ids"], &set["text"]), (&one["ids"], &one["text"]));
    assert_eq!(p64_on("tokenize {} Once", all[1]).ok().stdout, p64_on("tokenize {} Once", &converted.p64).ok().stdout);

    let back = converted.path("back.p64");
    let merge = p64(words(&[all[1], &back], "merge --json {} {}")).ok().object();
    assert_eq!((&merge["identical"], &merge["set"]), (&true.into(), &report["set"]));
    assert!(std::fs::read(&back).expect("there") == std::fs::read(&converted.p64).expect("there"));
}

#[test]
fn converting_into_a_set() {
    let converted = Converted::new();
    let (direct, after) = (converted.path("direct"), converted.path("after"));
    let gguf = tiny();
    let report = p64(words(&[&gguf, &direct], "convert --json --check-parity --split layers=3 {} {}")).ok().object();
    assert_eq!(report["parity"]["equal"], true);
    let split = p64(words(&[&converted.p64, &after], "split --json {} {} --layers 3")).ok().object();
    assert_eq!(report["set"]["set"], split["set"]);
    for (a, b) in
        report["set"]["files"].as_array().expect("files").iter().zip(split["files"].as_array().expect("files"))
    {
        let read = |file: &serde_json::Value| std::fs::read(file["path"].as_str().expect("a path")).expect("there");
        assert!(read(a) == read(b));
    }
}

#[test]
fn what_is_refused() {
    let converted = Converted::new();
    let stem = converted.path("set");
    for line in
        ["split {} {} --layers 0", "split {} {} --size 0", "split {} {} --size 1.5G", "split {} {} --auto --layers 1"]
    {
        assert_eq!(p64(words(&[&converted.p64, &stem], line)).code, 2, "{line}");
    }
    assert_eq!(p64(words(&[&tiny(), &stem], "convert --split layers {} {}")).code, 2);
    p64(words(&[&converted.p64, &stem], "split -q {} {} --layers 2")).ok();
    std::fs::remove_file(converted.path("set-00002-of-00003.p64")).expect("removed");
    let first = converted.path("set-00001-of-00003.p64");
    for line in ["run {} -p x -n 1", "verify {}", "inspect {}", "tokenize {} x"] {
        let outcome = p64_on(line, &first);
        assert_eq!(outcome.code, 1, "{line}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains("set-00002-of-00003.p64: file 2 of the 3 of a set is missing"),
            "{}",
            outcome.stderr
        );
    }
    assert_eq!(p64(words(&[&converted.p64, &stem], "merge {} {}")).code, 1, "one container is no set");
}
