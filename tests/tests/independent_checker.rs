//! A second reading of `docs/spec/p64.md`, in Python and without a line of the project's code, agrees with the first.
//!
//! `scripts/check_p64.py` needs nothing but Python's standard library; where `python3` is missing this test fails.

use p64_core::Code;
use p64_std::convert::{ConvertOptions, convert_bytes};
use p64_tests::assemble::Assembly;
use p64_tests::gguf::GgufBuilder;
use p64_tests::{broken, data, toy};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the checker says of each `.p64` in a folder, by file stem.
fn verdicts(folder: &Path, canonical: bool) -> BTreeMap<String, String> {
    let mut paths: Vec<_> = fs::read_dir(folder).expect("there").map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    let mut command = Command::new("python3");
    command.arg(data::workspace("scripts/check_p64.py")).args(canonical.then_some("--canonical")).args(&paths);
    let output = command.output().expect("python3 is installed");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.stderr.is_empty() && text.lines().count() == paths.len(), "{text}{errors}");
    let verdict = |(path, line): (&std::path::PathBuf, &str)| {
        let found = line.strip_prefix(&format!("{}: ", path.display())).expect("begins with the path").to_owned();
        (path.file_stem().expect("a name").to_str().expect("UTF-8").to_owned(), found)
    };
    paths.iter().zip(text.lines()).map(verdict).collect()
}

/// The writer's files are strict, and laid out as the specification asks of a writer.
#[test]
fn what_is_written_passes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut files = vec![("assembled".to_owned(), Assembly::small().build())];
    files.push(("toy".to_owned(), toy::model(&toy::metadata()).build()));
    let ggufs = [
        ("model", GgufBuilder::new(3).small_model()),
        ("version 2", GgufBuilder::new(2).small_model()),
        ("aligned", GgufBuilder::new(3).alignment(256).small_model()),
        ("another order", GgufBuilder::new(3).small_model().data_order(&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0])),
        ("empty", GgufBuilder::new(3)),
        ("layers without tensors", GgufBuilder::new(3).model_keys(7)),
    ];
    for (name, gguf) in ggufs {
        for (layout, page_size, bits) in
            [("default", 16_384, 7), ("packed", 256, 3), ("ordered", 4096, 1), ("plain", 256, 0)]
        {
            let [layer_major, pack, schedule] = [1, 2, 4].map(|bit| bits & bit != 0);
            let options = ConvertOptions { page_size, layer_major, pack, schedule };
            let (p64, _) = convert_bytes(Path::new(name), gguf.build(), &options).expect("converts");
            files.push((format!("{name}, {layout}"), p64));
        }
    }
    let bundled = fs::read(data::data("tiny/tiny-stories-q8_0.gguf")).expect("there");
    let (p64, _) = convert_bytes(Path::new("bundled"), bundled, &ConvertOptions::default()).expect("converts");
    files.push(("the bundled model".to_owned(), p64));
    for (name, bytes) in &files {
        fs::write(folder.path().join(name).with_extension("p64"), bytes).expect("written");
    }
    let verdicts = verdicts(folder.path(), true);
    assert_eq!(verdicts.len(), files.len());
    for (name, verdict) in verdicts {
        assert_eq!(verdict, "OK", "{name}");
    }
}

/// Every fixture is refused, but for those whose code is a warning.
#[test]
fn what_is_broken_is_refused() {
    let verdicts = verdicts(&data::data("invalid"), false);
    let warnings = [Code::UnknownRole, Code::UnknownDType];
    for &code in Code::ALL.iter().filter(|code| broken::file(**code).is_some()) {
        let name = format!("{:03}-{}", code.number(), code.slug());
        let verdict = verdicts.get(&name).unwrap_or_else(|| panic!("{name} was not looked at"));
        assert_eq!(verdict == "OK", warnings.contains(&code), "{name}: {verdict}");
        assert!(verdict == "OK" || verdict.contains("(\u{a7}"), "{name}: {verdict}");
    }
}

/// One flipped bit in every byte of the small file, in one go of the checker's.
#[test]
fn every_flipped_byte_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let original = Assembly::small().build();
    // The bit moves along, so that each of the eight is tried hundreds of times.
    for at in (0..original.len()).step_by(3) {
        let mut file = original.clone();
        file[at] ^= 1 << (at / 3 % 8);
        fs::write(folder.path().join(format!("{at:04}.p64")), file).expect("written");
    }
    for (at, verdict) in verdicts(folder.path(), false) {
        assert_ne!(verdict, "OK", "byte {at}");
    }
}
