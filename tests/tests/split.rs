//! Split sets: a container in several files, each complete in itself, used as one model and merged back.

use p64_core::DType;
use p64_core::validate::{Integrity, Policy};
use p64_std::Error;
use p64_std::convert::{ConvertOptions, convert_gguf};
use p64_std::map::{MapOptions, MappedContainer, MappedSet};
use p64_std::split::{Cut, SplitReport, merge, split};
use p64_tests::data::data;
use p64_tests::gguf::GgufBuilder;
use std::path::{Path, PathBuf};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn cut(text: &str) -> Cut {
    text.parse().expect("a cut")
}

const STRICT: MapOptions = MapOptions { policy: Policy::Strict, integrity: Integrity::Full, threads: 1 };

fn split_ok(input: &Path, output: &Path, how: &str) -> SplitReport {
    split(input, output, &cut(how), &mut |_| ()).expect("split")
}

/// Splits, opens every file strictly by itself and the set by each of its files, merges, and compares byte for byte.
#[track_caller]
fn round_trip(whole: &Path, how: &str) -> SplitReport {
    let folder = folder();
    let report = split_ok(whole, &folder.path().join("m.p64"), how);
    let count = report.files.len();
    for (at, file) in report.files.iter().enumerate() {
        let name = format!("m-{:05}-of-{count:05}.p64", at + 1);
        assert_eq!(file.path, folder.path().join(name));
        assert_eq!(file.bytes, std::fs::metadata(&file.path).expect("there").len());
        let (part, warnings) = MappedContainer::open(&file.path, &STRICT).expect("a strict container");
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(part.container().tokenizer().is_some() && at > 0, false);
        let (set, _) = MappedSet::open(&file.path, &STRICT).expect("a set");
        assert_eq!((set.parts().len(), set.identity()), (count, Some(report.identity.as_str())));
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), count);
    let back = folder.path().join("back.p64");
    let last = &report.files[count - 1].path;
    let merged = merge(last, &back, &mut |_| ()).expect("merged");
    assert!(merged.identical);
    assert_eq!((merged.files, merged.identity.as_str()), (count, report.identity.as_str()));
    assert!(std::fs::read(whole).expect("there") == std::fs::read(&back).expect("there"), "{how}: the bytes differ");
    report
}

fn converted(folder: &Path, gguf: &Path, options: &ConvertOptions) -> PathBuf {
    let output = folder.join("whole.p64");
    convert_gguf(gguf, &output, options, &mut |_| ()).expect("converted");
    output
}

fn tiny() -> (tempfile::TempDir, PathBuf) {
    let folder = folder();
    let whole = converted(folder.path(), &data("tiny/tiny-stories-q8_0.gguf"), &ConvertOptions::default());
    (folder, whole)
}

#[test]
fn the_tiny_model_comes_back() {
    let (_folder, whole) = tiny();
    for how in ["auto", "layers=1", "layers=2", "layers=1000", "size=200k", "size=1M", "size=1", "size=100G"] {
        round_trip(&whole, how);
    }
}
