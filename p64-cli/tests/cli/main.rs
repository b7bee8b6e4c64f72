//! The `p64` command as its users see it: exit codes, what stands on which stream, JSON, files.

mod arrays;
mod chat;
mod compare;
mod edit;
mod errors;
mod json;
mod large;
mod perplexity;
mod produce;
mod round_trip;
mod split;
mod text;
mod unsupported;
mod usage;

use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a call of `p64` did.
struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs `p64`; stdin is closed.
fn p64<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_p64"));
    let output = command.args(args).stdin(Stdio::null()).output().expect("p64 starts");
    Outcome {
        code: output.status.code().expect("p64 ends by itself"),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// Runs `p64` with words separated by spaces, `{}` standing for `path`.
fn p64_on(line: &str, path: &Path) -> Outcome {
    p64(line.split(' ').map(|word| if word == "{}" { path.as_os_str() } else { OsStr::new(word) }))
}

impl Outcome {
    /// The outcome of a call that must succeed.
    #[track_caller]
    fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stderr: {}", self.stderr);
        self
    }

    /// The one object on stdout.
    #[track_caller]
    fn object(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {:?}", self.stdout))
    }
}

/// The bundled model.
fn tiny() -> PathBuf {
    p64_tests::data::data("tiny/tiny-stories-q8_0.gguf")
}

/// A folder with the bundled model converted in it.
struct Converted {
    folder: tempfile::TempDir,
    p64: PathBuf,
}

impl Converted {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let p64 = folder.path().join("tiny.p64");
        self::p64([OsStr::new("convert"), OsStr::new("--quiet"), tiny().as_os_str(), p64.as_os_str()]).ok();
        Self { folder, p64 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
