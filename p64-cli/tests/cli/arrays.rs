//! safetensors in and out, and arrays, as a user sees them.

use crate::{p64, p64_on, tiny};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

fn write(folder: &Path, name: &str, header: &str, len: u8) -> PathBuf {
    let path = folder.join(name);
    let payload: Vec<u8> = (0..len).collect();
    std::fs::write(&path, [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &payload].concat())
        .expect("written");
    path
}

const HEADER: &str = r#"{"__metadata__":{"format":"pt"},"model.layers.0.self_attn.q_proj.weight":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},"model.norm.weight":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}}"#;

#[test]
fn inspect_lists_tensors_as_the_file_has_them() {
    let folder = tempfile::tempdir().expect("folder");
    let path = write(folder.path(), "model.safetensors", HEADER, 24);
    // A folder is its model.
    for path in [&path, folder.path()] {
        let summary = p64_on("inspect {}", path).ok().stdout;
        assert!(
            summary.contains("safetensors, ") && summary.contains("BF16") && summary.contains("attn_q"),
            "{summary}"
        );
        assert!(!summary.contains("tokenizer"), "{summary}");
        let object = p64_on("inspect --json {}", path).ok().object();
        assert_eq!((object["format"].as_str(), object["version"].as_u64()), (Some("safetensors"), None));
        assert_eq!(object["tensors"][0]["shape"], serde_json::json!([2, 3]));
        assert_eq!(object["tensors"][0]["role"], "attn_q");
        let space = &object["space"];
        let sum = space["front"].as_u64().zip(space["payload"].as_u64()).map(|(front, payload)| front + payload);
        assert_eq!(sum, object["bytes"].as_u64());
        assert_eq!(object["metadata"][0]["key"], "format");
    }
    let table = p64_on("inspect --tensors {}", &path).ok().stdout;
    assert!(table.contains("2 x 3") && table.contains("model.norm.weight"), "{table}");
    let line = p64_on("verify {}", &path).ok().stdout;
    assert!(line.contains("OK, 2 tensors") && line.contains("safetensors carries no checksums"), "{line}");
}

#[test]
fn a_sharded_model_names_the_file_of_each_tensor() {
    let folder = tempfile::tempdir().expect("folder");
    write(folder.path(), "a.safetensors", r#"{"x":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}"#, 2);
    write(folder.path(), "b.safetensors", r#"{"y":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3]}}"#, 3);
    let index = folder.path().join("model.safetensors.index.json");
    std::fs::write(&index, r#"{"weight_map": {"y": "b.safetensors", "x": "a.safetensors"}}"#).expect("written");
    let object = p64_on("inspect --json {}", folder.path()).ok().object();
    let files: Vec<_> = object["tensors"].as_array().expect("a list").iter().map(|tensor| &tensor["file"]).collect();
    assert_eq!(files, ["a.safetensors", "b.safetensors"]);
    // What no container can hold is shown, and said.
    assert!(object["warnings"][0].as_str().is_some_and(|text| text.contains("F8_E4M3")), "{object}");
    let table = p64_on("inspect --tensors {}", &index).ok().stdout;
    assert!(table.contains("b.safetensors"), "{table}");
    std::fs::remove_file(folder.path().join("b.safetensors")).expect("removed");
    let outcome = p64_on("inspect {}", folder.path());
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("missing: \"b.safetensors\""), "{}", outcome.stderr);
}

#[test]
fn a_damaged_file_names_its_rule() {
    let folder = tempfile::tempdir().expect("folder");
    let path = write(folder.path(), "model.safetensors", HEADER, 23);
    for line in ["inspect {}", "verify {}"] {
        let outcome = p64_on(line, &path);
        assert_eq!((outcome.code, outcome.stderr.lines().count()), (1, 1), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("ends 1 bytes before") && outcome.stderr.contains("fetch it again"));
    }
    let error = &p64_on("inspect --json {}", &path).object()["error"];
    assert_eq!((error["kind"].as_str(), error["rule"].as_str()), (Some("malformed"), Some("S8")));
}

#[test]
fn run_asks_for_a_conversion_first() {
    let folder = tempfile::tempdir().expect("folder");
    let path = write(folder.path(), "model.safetensors", HEADER, 24);
    let outcome = p64_on("run {} -p Hello -n 1", &path);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("a safetensors file") && outcome.stderr.contains("`p64 convert`"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn export_writes_arrays_and_says_what_it_needs() {
    let folder = tempfile::tempdir().expect("folder");
    let out = |name: &str| folder.path().join(name).into_os_string();
    let args = |more: &[&OsStr]| {
        let mut args = vec![OsStr::new("export").to_owned(), tiny().into_os_string()];
        args.extend(more.iter().map(|word| (*word).to_owned()));
        args
    };
    let npz = out("some.npz");
    let object = p64(args(&[&npz, "--tensors".as_ref(), "*_norm*".as_ref(), "--json".as_ref()])).ok().object();
    assert_eq!((object["format"].as_str(), object["identical"].is_null()), (Some("npz"), true));
    assert!(object["tensors"].as_u64().is_some_and(|count| count > 0));
    let outcome = p64(args(&[&out("x.safetensors"), "--own-names".as_ref()]));
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("--dequantize f16"), "{}", outcome.stderr);
    let words = ["--own-names".as_ref(), "--dequantize".as_ref(), "f32".as_ref()];
    p64(args(&[&[out("x.safetensors").as_os_str()], &words[..]].concat())).ok();
    p64_on("verify {}", &folder.path().join("x.safetensors")).ok();
    // Options of arrays have no meaning for a GGUF.
    let outcome = p64(args(&[&out("x.gguf"), "--dequantize".as_ref(), "f16".as_ref()]));
    assert_eq!(outcome.code, 2);
    let outcome = p64(args(&[&out("x.bin")]));
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains(".safetensors or .npz"), "{}", outcome.stderr);
}
