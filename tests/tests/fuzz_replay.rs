//! Runs every fuzz target's body over its committed corpus, without libFuzzer: a finding that was mended stays mended.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files of a folder in the order of their names; a missing folder fails the test.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("readable entry").path()).collect();
    files.sort();
    files
}

#[test]
fn every_seed_is_handled() {
    for (name, run) in p64_fuzz::TARGETS {
        let seeds = files(&root().join("fuzz/corpus").join(name));
        assert!(!seeds.is_empty(), "{name} has no seed");
        for seed in seeds {
            let data = fs::read(&seed).expect("readable seed");
            // Named before it runs: a panic then says which seed.
            println!("{}", seed.display());
            run(&data);
        }
    }
}

/// A target that is not in the list would never be replayed.
#[test]
fn the_list_names_every_target() {
    let mut listed: Vec<_> = p64_fuzz::TARGETS.iter().map(|(name, _)| format!("{name}.rs")).collect();
    listed.sort();
    let found: Vec<_> = files(&root().join("fuzz/fuzz_targets"))
        .iter()
        .map(|path| path.file_name().expect("a file").to_string_lossy().into_owned())
        .collect();
    assert_eq!(listed, found);
}
