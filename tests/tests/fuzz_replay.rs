//! Runs every fuzz target's body over its committed corpus, without libFuzzer: a finding that was mended stays mended.

use p64_core::validate::Policy;
use p64_tests::data::{data, workspace};
use std::fs;
use std::path::{Path, PathBuf};

/// Targets that the malformed files of the acceptance tests are seeds of too, as in `scripts/fuzz.sh`.
const GGUF_TARGETS: [&str; 2] = ["gguf_reader", "convert_and_back"];

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
        let mut seeds = files(&workspace("fuzz/corpus").join(name));
        assert!(!seeds.is_empty(), "{name} has no seed");
        if GGUF_TARGETS.contains(name) {
            seeds.extend(files(&data("malformed/gguf")));
        }
        if *name == "safetensors" {
            seeds.extend(files(&data("malformed/safetensors")));
        }
        for seed in seeds {
            let bytes = fs::read(&seed).expect("readable seed");
            // Named before it runs: a panic then says which seed.
            println!("{}", seed.display());
            run(&bytes);
        }
    }
}

/// A seed that is refused on the way would leave the forward pass to chance.
#[test]
fn seeds_of_models_pass_tokens() {
    let seeds = files(&workspace("fuzz/corpus/model_run"));
    let passing = |seed: &&PathBuf| p64_fuzz::model_run::passes(&fs::read(seed).expect("readable seed"));
    let names: Vec<_> = seeds.iter().filter(passing).filter_map(|seed| seed.file_name()).collect();
    assert!(names.len() >= 15, "only these of {} reach their logits: {names:?}", seeds.len());
}

/// A seed of a file past 4 GiB that does not open would leave version 5 to chance.
#[test]
fn the_seed_past_4_gib_opens() {
    let seed = fs::read(workspace("fuzz/corpus/container_stream/past_4_gib")).expect("readable seed");
    let opened = p64_fuzz::container_stream::far(&seed[1..], Policy::Strict, 256);
    assert_eq!(opened, Ok(13));
}

/// A target that is not in the list would never be replayed.
#[test]
fn the_list_names_every_target() {
    let mut listed: Vec<_> = p64_fuzz::TARGETS.iter().map(|(name, _)| format!("{name}.rs")).collect();
    listed.sort();
    let found: Vec<_> = files(&workspace("fuzz/fuzz_targets"))
        .iter()
        .map(|path| path.file_name().expect("a file").to_string_lossy().into_owned())
        .collect();
    assert_eq!(listed, found);
}
