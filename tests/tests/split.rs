//! Split sets: a container in several files, each complete in itself, used as one model and merged back.

#[path = "split/cuts.rs"]
mod cuts;
#[path = "split/refused.rs"]
mod refused;
#[path = "split/used.rs"]
mod used;

use p64_core::layout::flags::Flags;
use p64_core::validate::{Integrity, Policy};
use p64_std::convert::{ConvertOptions, ProduceOptions, convert_file, convert_gguf};
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

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("there")
}

/// Splits, opens every file strictly by itself and the set by each of its files, merges, and compares byte for byte.
#[track_caller]
fn round_trip(whole: &Path, how: &str) -> SplitReport {
    let folder = folder();
    let report = split_ok(whole, &folder.path().join("m.p64"), how);
    let count = report.files.len();
    let (original, _) = MappedContainer::open(whole, &STRICT).expect("strict");
    for (at, file) in report.files.iter().enumerate() {
        let name = format!("m-{:05}-of-{count:05}.p64", at + 1);
        assert_eq!(file.path, folder.path().join(name));
        assert_eq!(file.bytes, std::fs::metadata(&file.path).expect("there").len());
        let (part, warnings) = MappedContainer::open(&file.path, &STRICT).expect("a strict container");
        assert_eq!(warnings, []);
        let container = part.container();
        assert_eq!(container.hparams(), original.container().hparams());
        assert!((0..=container.n_layer()).all(|l| container.manifold(l) == original.container().manifold(l)));
        // The model's keys and tokenizer once; and no part of several calls itself a complete model.
        assert_eq!(container.find("p64.metadata").is_some(), at == 0);
        assert_eq!(container.tokenizer().is_some(), at == 0 && original.container().tokenizer().is_some());
        let raw = |container: &p64_core::Container<'_>| container.flags().contains(Flags::RAW_TRANSCODE);
        assert_eq!(raw(container), count > 1 || raw(original.container()));
        let (set, warnings) = MappedSet::open(&file.path, &STRICT).expect("a set");
        assert_eq!(warnings, []);
        assert_eq!((set.parts().len(), set.identity()), (count, Some(report.identity.as_str())));
        assert_eq!(set.flags(), original.container().flags());
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), count);
    let back = folder.path().join("back.p64");
    let merged = merge(&report.files[count - 1].path, &back, &mut |_| ()).expect("merged");
    assert!(merged.identical);
    assert_eq!((merged.files, merged.identity.as_str()), (count, report.identity.as_str()));
    assert!(bytes(whole) == bytes(&back), "{how}: the bytes differ");
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

/// A container of what is built.
fn built(source: &GgufBuilder, options: &ConvertOptions) -> (tempfile::TempDir, PathBuf) {
    let folder = folder();
    let gguf = source.write(folder.path(), "in.gguf");
    let whole = converted(folder.path(), &gguf, options);
    (folder, whole)
}

/// Layers and tensors of each file.
fn shape(report: &SplitReport) -> Vec<(Option<(u32, u32)>, u64)> {
    report.files.iter().map(|file| (file.layers, file.tensors)).collect()
}

#[test]
fn the_tiny_model_comes_back() {
    let (_folder, whole) = tiny();
    let counts = ["auto", "layers=1", "layers=2", "layers=3", "layers=1000", "size=500k", "size=1M", "size=100G"]
        .map(|how| round_trip(&whole, how).files.len());
    assert_eq!(counts, [1, 5, 3, 3, 2, 2, 1, 1]);
}

#[test]
fn every_layout() {
    for page_size in [256, 16_384] {
        for (layer_major, pack, schedule) in
            [(true, true, true), (true, false, false), (false, true, false), (false, false, false)]
        {
            let options = ConvertOptions { page_size, layer_major, pack, schedule };
            let (_folder, whole) = built(&GgufBuilder::new(3).small_model(), &options);
            for how in ["layers=1", "size=1", "auto"] {
                round_trip(&whole, how);
            }
        }
    }
}

/// Converting into a set gives the files that splitting the container gives, whatever becomes of the payloads.
#[test]
fn converting_into_a_set_is_converting_and_splitting() {
    let folder = folder();
    let gguf = data("tiny/tiny-stories-q8_0.gguf");
    for (rule, how) in [(None, "layers=2"), (Some("ffn_*=q4_0"), "size=300k")] {
        let mut options = ProduceOptions::default();
        options.rules.rules.extend(rule.map(|rule| rule.parse().expect("a rule")));
        let (whole, direct, after) =
            (folder.path().join("whole.p64"), folder.path().join("direct"), folder.path().join("after"));
        let one = convert_file(&gguf, &whole, &options, &mut |_| ()).expect("converted");
        options.split = Some(cut(how));
        let report = convert_file(&gguf, &direct, &options, &mut |_| ()).expect("converted");
        let set = report.set.expect("a set");
        let expected = split_ok(&whole, &after, how);
        assert!(one.set.is_none());
        assert_eq!((&set.identity, shape(&set)), (&expected.identity, shape(&expected)));
        assert_eq!((one.source_sha256, one.changes), (report.source_sha256, report.changes));
        assert!(set.files.len() > 1);
        for (a, b) in set.files.iter().zip(&expected.files) {
            assert!(bytes(&a.path) == bytes(&b.path), "{}", a.path.display());
        }
        assert_eq!(report.bytes, set.files.iter().map(|file| file.bytes).sum::<u64>());
    }
}
