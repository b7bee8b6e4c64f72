//! Files that are no set, and what a split or a merge refuses.

use super::{bytes, cut, folder, split_ok, tiny};
use p64_std::Error;
use p64_std::convert::{ProduceOptions, convert_file};
use p64_std::export::export_gguf;
use p64_std::map::{MapOptions, MappedSet};
use p64_std::model::LoadedModel;
use p64_std::source::OpenSource;
use p64_std::split::{SplitReport, merge, split};
use p64_tests::mutate::refix;
use std::path::{Path, PathBuf};

/// The tiny model in three files.
fn three() -> (tempfile::TempDir, Vec<PathBuf>) {
    let (_folder, whole) = tiny();
    let folder = folder();
    let report: SplitReport = split_ok(&whole, &folder.path().join("m"), "layers=2");
    (folder, report.files.into_iter().map(|file| file.path).collect())
}

/// Every way of opening a model refuses with these words, in an error about the input.
#[track_caller]
fn refused(path: &Path, words: &[&str]) {
    let folder = folder();
    let out = folder.path().join("out");
    let options = MapOptions::default();
    let errors = [
        MappedSet::open(path, &options).map(drop).expect_err("no set"),
        LoadedModel::open(path, &options).map(drop).expect_err("no model"),
        OpenSource::open(path).map(drop).expect_err("no source"),
        export_gguf(path, &out, &mut |_| ()).map(drop).expect_err("no export"),
        convert_file(path, &out, &ProduceOptions::default(), &mut |_| ()).map(drop).expect_err("no conversion"),
        merge(path, &out, &mut |_| ()).map(drop).expect_err("no merge"),
        split(path, &out, &cut("auto"), &mut |_| ()).map(drop).expect_err("no split"),
    ];
    for error in errors {
        let text = error.to_string();
        words.iter().for_each(|word| assert!(text.contains(word), "{word:?} is not in {text:?}"));
        assert!(matches!(error, Error::Refused { .. }), "{error:?}");
        assert_eq!(error.exit_code(), 1);
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

/// Changes a file's bytes where `from` stands, and puts its checksums right.
fn replace(path: &Path, from: &[u8], to: &[u8]) {
    let mut file = bytes(path);
    let at = file.windows(from.len()).rposition(|window| window == from).expect("there");
    file[at..at + to.len()].copy_from_slice(to);
    refix(&mut file);
    std::fs::write(path, file).expect("written");
}

fn key(name: &str, kind: u32, value: &[u8]) -> Vec<u8> {
    [name.as_bytes(), &kind.to_le_bytes(), value].concat()
}

#[test]
fn a_missing_file_is_named() {
    for (missing, opened) in [(1, 0), (0, 2), (2, 1)] {
        let (_folder, files) = three();
        std::fs::remove_file(&files[missing]).expect("removed");
        let place = files[missing].display().to_string();
        let number = format!("file {} of the 3 of a set is missing", missing + 1);
        refused(&files[opened], &[&place, &number, &files[opened].display().to_string()]);
    }
}

#[test]
fn a_file_under_another_name() {
    let (folder, files) = three();
    for name in ["part.p64", "m-00002-of-00004.p64", "m-00003-of-00003.p64", "m-2-of-3.p64"] {
        let renamed = folder.path().join(name);
        std::fs::copy(&files[1], &renamed).expect("copied");
        refused(&renamed, &["this is file 2 of the 3 of a set", "<stem>-00002-of-00003.p64"]);
    }
    // The third is now the second under another name, which is told when the set is opened by another file too.
    refused(&files[0], &["m-00003-of-00003.p64", "this is file 2 of the set (split.no), its name says 3"]);
}

#[test]
fn a_file_of_another_set() {
    let (folder, files) = three();
    let other = folder.path().join("other.p64");
    let mut options = ProduceOptions::default();
    options.rules.rules.push("blk.3.ffn_down.weight=q4_0".parse().expect("a rule"));
    convert_file(&files[0], &other, &options, &mut |_| ()).expect("converted");
    split_ok(&other, &folder.path().join("o"), "layers=2");
    // The same names, shapes and number of tensors, but for one type: only the identity tells.
    std::fs::copy(folder.path().join("o-00001-of-00003.p64"), &files[0]).expect("copied");
    refused(&files[1], &["belongs to another set", "00001-of-00003.p64"]);
}

#[test]
fn a_whole_model_among_the_files() {
    let (_folder, files) = three();
    let (_other, whole) = tiny();
    std::fs::copy(whole, &files[2]).expect("copied");
    refused(&files[0], &["m-00003-of-00003.p64", "a whole model of its own, no file of a set"]);
}

#[test]
fn keys_that_contradict_each_other() {
    type Edit<'a> = (Vec<u8>, Vec<u8>, &'a [&'a str]);
    let (u16_kind, i32_kind, u32_in_array) = (2, 5, 4u32);
    let places = |first: u32| {
        let array = [&u32_in_array.to_le_bytes()[..], &18u64.to_le_bytes(), &first.to_le_bytes()].concat();
        key("p64.split.tensors", 9, &array)
    };
    let edits: [Edit<'_>; 6] = [
        (
            key("split.count", u16_kind, &[3, 0]),
            key("split.count", u16_kind, &[4, 0]),
            &["00002-of-00003.p64", "split.count is 4", "says 3"],
        ),
        (
            key("split.no", u16_kind, &[1, 0]),
            key("split.no", u16_kind, &[2, 0]),
            &["00002-of-00003.p64", "this is file 3 of the set (split.no), its name says 2"],
        ),
        (
            key("split.no", u16_kind, &[1, 0]),
            key("split.no", u16_kind, &[9, 0]),
            &["split.no is missing or makes no sense"],
        ),
        (
            key("split.tensors.count", i32_kind, &[38, 0, 0, 0]),
            key("split.tensors.count", i32_kind, &[39, 0, 0, 0]),
            &["split.tensors.count", "differs from that of"],
        ),
        (places(18), places(17), &["p64.split.tensors: place 17 where 18 is the next"]),
        (
            b"p64.split.tensors".to_vec(),
            b"p64.split.tensorz".to_vec(),
            &["p64.split.tensors is missing or makes no sense"],
        ),
    ];
    for (from, to, words) in edits {
        let (_folder, files) = three();
        replace(&files[1], &from, &to);
        refused(&files[0], words);
    }
}

#[test]
fn files_that_disagree_about_the_model() {
    // Name, and both strings of one length.
    let (_folder, files) = three();
    replace(&files[1], b"blk.2.attn_norm.weight", b"blk.0.attn_norm.weight");
    refused(&files[0], &["00002-of-00003.p64", "\"blk.0.attn_norm.weight\" stands in another file of the set too"]);

    let (_folder, files) = three();
    let mut file = bytes(&files[1]);
    file[64 + 12..64 + 16].copy_from_slice(&4u32.to_le_bytes());
    refix(&mut file);
    std::fs::write(&files[1], file).expect("written");
    refused(&files[0], &["00002-of-00003.p64", "the hyperparameters or the manifold differ"]);
}

#[test]
fn damage_is_found_in_every_file() {
    let (_folder, files) = three();
    let mut file = bytes(&files[1]);
    let middle = file.len() / 2;
    file[middle] ^= 1;
    std::fs::write(&files[1], file).expect("written");
    let error = LoadedModel::open(&files[0], &MapOptions::default()).map(drop).expect_err("damaged");
    assert!(matches!(&error, Error::Core { path, .. } if *path == files[1]), "{error}");
    let out = folder();
    for error in [
        merge(&files[2], &out.path().join("out"), &mut |_| ()).map(drop).expect_err("damaged"),
        split(&files[2], &out.path().join("out"), &cut("layers=1"), &mut |_| ()).map(drop).expect_err("damaged"),
    ] {
        assert!(matches!(&error, Error::Core { path, .. } if *path == files[1]), "{error}");
    }
    assert_eq!(std::fs::read_dir(out.path()).expect("a folder").count(), 0, "nothing appears before all is complete");
}

#[test]
fn outputs_that_are_inputs() {
    let (folder, files) = three();
    let before: Vec<_> = files.iter().map(|file| bytes(file)).collect();
    let mut options = ProduceOptions::default();
    options.split = Some(cut("layers=2"));
    for error in [
        merge(&files[0], &files[1], &mut |_| ()).map(drop),
        split(&files[0], &folder.path().join("m"), &cut("layers=2"), &mut |_| ()).map(drop),
        convert_file(&files[0], &folder.path().join("m.p64"), &options, &mut |_| ()).map(drop),
        export_gguf(&files[0], &files[2], &mut |_| ()).map(drop),
    ] {
        let error = error.expect_err("the input");
        assert!(matches!(error, Error::SameFile { .. }), "{error}");
    }
    assert!(files.iter().map(|file| bytes(file)).eq(before));
}

#[test]
fn a_whole_container_cannot_be_merged() {
    let (folder, whole) = tiny();
    let error = merge(&whole, &folder.path().join("out.p64"), &mut |_| ()).expect_err("whole");
    assert!(error.to_string().contains("no file of a split set"), "{error}");
}

/// A file of the set that was edited on purpose still fits; the merge says that it is not what was split.
#[test]
fn an_edited_file() {
    let (folder, files) = three();
    replace(&files[0], b"Tiny Stories", b"Tidy Stories");
    let out = folder.path().join("out.p64");
    let report = merge(&files[0], &out, &mut |_| ()).expect("merged");
    assert!(!report.identical);
    LoadedModel::open(&out, &MapOptions::default()).expect("a model");
}
