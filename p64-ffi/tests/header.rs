//! `include/p64.h` is what cbindgen makes of these sources. `P64_BLESS=1` writes it anew.

use std::fs;
use std::path::{Path, PathBuf};

/// The sources in the order in which the header presents them.
const SOURCES: [&str; 15] = [
    "version",
    "status",
    "error",
    "names",
    "crc",
    "container",
    "tensor",
    "layer",
    "metadata",
    "tokenizer",
    "vocabulary",
    "kernel",
    "decoder",
    "stream",
    "tier1",
];

fn crate_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn generate() -> String {
    let config = cbindgen::Config::from_file(crate_dir().join("cbindgen.toml")).expect("cbindgen.toml");
    let builder = SOURCES.iter().fold(cbindgen::Builder::new().with_config(config), |builder, source| {
        builder.with_src(crate_dir().join(format!("src/{source}.rs")))
    });
    let mut text = Vec::new();
    builder.generate().expect("sources that cbindgen reads").write(&mut text);
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn the_header_is_fresh() {
    let path = crate_dir().join("../include/p64.h");
    let fresh = generate();
    if std::env::var_os("P64_BLESS").is_some() {
        fs::write(&path, &fresh).expect("include/ is writable");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    for (number, (fresh, committed)) in (1..).zip(fresh.lines().zip(committed.lines())) {
        assert_eq!(committed, fresh, "include/p64.h, line {number}: run this test with P64_BLESS=1");
    }
    assert_eq!(committed.lines().count(), fresh.lines().count(), "include/p64.h: run this test with P64_BLESS=1");
}

/// Every exported function stands in a source that the header is made of.
#[test]
fn the_header_declares_every_exported_function() {
    let header = generate();
    let mut count = 0;
    for source in rust_files(&crate_dir().join("src")) {
        let text = fs::read_to_string(&source).expect("a source");
        for (_, rest) in text.match_indices("#[unsafe(no_mangle)]").map(|(at, mark)| text.split_at(at + mark.len())) {
            let name = rest.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).expect("a function").0;
            assert!(header.contains(&format!("{name}(")), "{name} of {} is not in p64.h", source.display());
            count += 1;
        }
    }
    assert!(count > 10, "only {count} functions found");
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| rust_files(folder))).collect()
}
