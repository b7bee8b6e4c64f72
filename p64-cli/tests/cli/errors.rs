//! What is no model gets one clear line, and the right exit code.

use crate::{p64, p64_on, tiny};
use std::path::{Path, PathBuf};

/// A path, the exit code it leads to, and what the line must say: what it is, and what to do.
struct Case {
    path: PathBuf,
    code: i32,
    says: [&'static str; 2],
}

fn cases(folder: &Path) -> Vec<Case> {
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    let gguf = std::fs::read(tiny()).expect("the bundled model");
    let case = |path: PathBuf, code, says| Case { path, code, says };
    vec![
        case(file("notes.txt", b"Dear diary,\n"), 1, ["a text file", "begins with `p64\\0`, `GGUF` or"]),
        case(file("empty.p64", b""), 1, ["an empty file", "fetch the model again"]),
        case(file("cut.gguf", &gguf[..gguf.len() - 1000]), 1, ["the file ends", "fetch it again"]),
        case(file("cut-keys.gguf", &gguf[..12_000]), 1, ["cut short", "fetch it again"]),
        case(file("cut-early.gguf", &gguf[..1000]), 1, ["cannot fit", "fetch it again"]),
        case(folder.to_owned(), 2, ["a folder", "name a .p64, .gguf or .safetensors file in it"]),
        case(folder.join("nothing.p64"), 2, ["cannot open", "check the path"]),
    ]
}

const LINES: [&str; 3] = ["verify {}", "inspect {}", "run {} -p Hello -n 1"];

#[test]
fn one_line_with_path_reason_and_next_step() {
    let folder = tempfile::tempdir().expect("temporary folder");
    for Case { path, code, says } in cases(folder.path()) {
        for line in LINES {
            let outcome = p64_on(line, &path);
            let what = format!("p64 {line} on {}: {:?}", path.display(), outcome.stderr);
            assert_eq!(outcome.code, code, "{what}");
            assert_eq!(outcome.stdout, "", "{what}");
            assert_eq!(outcome.stderr.lines().count(), 1, "{what}");
            assert!(outcome.stderr.starts_with(&format!("error: {}: ", path.display())), "{what}");
            says.iter().for_each(|text| assert!(outcome.stderr.contains(text), "{text:?} is not in {what}"));
        }
    }
}

#[test]
fn the_same_as_an_object() {
    let folder = tempfile::tempdir().expect("temporary folder");
    for Case { path, code, says } in cases(folder.path()) {
        for line in LINES {
            let outcome = p64_on(&format!("--json {line}"), &path);
            let what = format!("p64 --json {line} on {}: {:?}", path.display(), outcome.stdout);
            assert_eq!(outcome.code, code, "{what}");
            let object = outcome.object();
            let error = if line.starts_with("verify") {
                assert_eq!(object["ok"], false, "{what}");
                &object["files"][0]["error"]
            } else {
                &object["error"]
            };
            assert_eq!(error["exit_code"], code, "{what}");
            assert_eq!(error["path"], path.display().to_string(), "{what}");
            let message = error["message"].as_str().unwrap_or_default();
            says.iter().for_each(|text| assert!(message.contains(text), "{text:?} is not in {what}"));
        }
    }
}

#[test]
fn other_commands_refuse_the_same_files() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let out = folder.path().join("out");
    for Case { path, code, says } in cases(folder.path()) {
        let name = path.display();
        let commands = [
            vec!["convert".into(), path.clone(), out.join("x.p64")],
            vec!["export".into(), path.clone(), out.join("x.gguf")],
            vec!["tokenize".into(), path.clone(), "text".into()],
            vec!["bench".into(), path.clone()],
            vec!["demo".into(), path.clone()],
        ];
        for args in commands {
            let outcome = p64(&args);
            // Export reads P64 only, so a damaged GGUF is a file of the wrong format to it.
            let export = args[0] == Path::new("export") && outcome.stderr.contains("a P64 weight container is needed");
            let what = format!("p64 {args:?}: {:?}", outcome.stderr);
            assert_eq!(outcome.code, code, "{what}");
            assert_eq!(outcome.stderr.lines().count(), 1, "{what}");
            assert!(outcome.stderr.starts_with(&format!("error: {name}: ")), "{what}");
            assert!(export || says.iter().all(|text| outcome.stderr.contains(text)), "{what}");
        }
        assert!(!out.exists(), "a refused {name} left something");
    }
}

/// Every fixture of a broken container is refused in one line, with its code in the object.
#[test]
fn broken_containers_say_which_check_failed() {
    let mut seen = 0;
    for entry in std::fs::read_dir(p64_tests::data::data("invalid")).expect("fixtures") {
        let path = entry.expect("entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let Some((_, slug)) = name.split_once('-').filter(|_| path.extension().is_some_and(|e| e == "p64")) else {
            continue;
        };
        let outcome = p64_on("verify --strict --json {}", &path);
        if ["unknown-role", "unknown-dtype"].contains(&slug) {
            // Kept as they are, whatever the policy: a file of a later draft.
            let file = &outcome.object()["files"][0];
            assert_eq!((outcome.code, file["warnings"].as_array().map(Vec::len)), (0, Some(1)), "{name}");
            continue;
        }
        assert_eq!(outcome.code, 1, "{name}: {}", outcome.stdout);
        assert_eq!(outcome.stderr.lines().count(), 1, "{name}: {}", outcome.stderr);
        let error = &outcome.object()["files"][0]["error"];
        // A file without a whole magic is refused as a foreign one, before any check.
        let Some(code) = error["code"].as_str() else { continue };
        if code != slug {
            // Version 3 is only looked into under the compatible policy.
            let compatible = p64_on("verify --json {}", &path).object();
            assert_eq!(compatible["files"][0]["error"]["code"], slug, "{name}");
        }
        seen += 1;
    }
    assert!(seen > 50, "{seen} fixtures");
}
