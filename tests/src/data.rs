//! Where test data lies.

use std::path::PathBuf;

/// A path below the workspace's root.
#[must_use]
pub fn workspace(relative: &str) -> PathBuf {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests crate lies in the workspace").join(relative)
}

/// A path below `tests/data`.
#[must_use]
pub fn data(relative: &str) -> PathBuf {
    workspace("tests/data").join(relative)
}

/// A real model below `models/`.
///
/// # Panics
/// When it is missing: a test that needs it fails and says how to get it.
#[must_use]
pub fn model(name: &str) -> PathBuf {
    let path = workspace("models").join(name);
    assert!(path.is_file(), "{} is missing: run `make model` first", path.display());
    path
}

/// Whether golden files are to be rewritten (`P64_BLESS=1`).
#[must_use]
pub fn bless() -> bool {
    std::env::var_os("P64_BLESS").is_some_and(|value| value == "1")
}
