//! `p64 verify`: every check of the format over every byte of a file.

use crate::failure::{Failure, Result};
use crate::input::Input;
use crate::output::{Ui, number, progress::Progress};
use p64_core::validate::{Integrity, Policy};
use p64_core::{DType, Place};
use p64_std::map::{MapOptions, MappedContainer};
use p64_std::tokenizer::TokenizerError;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  p64 verify model.p64
  p64 verify --strict *.p64
  p64 verify --json model.p64 | jq .ok

With several files, every one is checked; the exit code is the highest of theirs.
Of a split set any file stands for all of them; a set of which several are given is checked once.
A GGUF carries no checksums: of one, the structure is checked and the tokenizer.";

/// From this size on, verifying takes long enough to show progress.
const LARGE: u64 = 1 << 30;

/// Check files completely: structure, every checksum, metadata, tokenizer
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files to check, .p64 or GGUF
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Refuse what the compatible policy only warns of
    #[arg(long)]
    strict: bool,
    /// Check as programs do that open lazily: first the structure, then each tensor when it is taken
    #[arg(long)]
    lazy: bool,
}

/// What was found about a file.
#[derive(Debug, Serialize)]
struct Outcome {
    path: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    /// Files of the set that was checked, or of the set in which this file has been checked already.
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tensors: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

#[derive(Debug, Serialize)]
struct Outcomes {
    ok: bool,
    files: Vec<Outcome>,
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let mut code = 0;
    let mut files = Vec::new();
    let mut sets: Vec<Vec<PathBuf>> = Vec::new();
    for path in &args.files {
        if let Some(set) = path.canonicalize().ok().and_then(|path| sets.iter().find(|set| set.contains(&path))) {
            if !ui.json() && !ui.quiet() {
                ui.line(format_args!("{}: OK, checked with its set", path.display()))?;
            }
            files.push(Outcome::again(path, set));
            continue;
        }
        match check(args, path, ui) {
            Ok(checked) => {
                sets.extend(checked.set.clone());
                if !ui.json() {
                    checked.warnings.iter().for_each(|warning| ui.warn(format_args!("{}: {warning}", path.display())));
                    if !ui.quiet() {
                        ui.line(checked.line(path))?;
                    }
                }
                files.push(checked.outcome(path));
            }
            Err(failure @ Failure::Output(_)) => return Err(failure),
            Err(failure) => {
                code = code.max(failure.exit_code());
                ui.error(&failure.message());
                let error = Some(failure.object());
                let path = path.display().to_string();
                let warnings = Vec::new();
                let (format, tensors, bytes, seconds) = (None, None, None, None);
                let set = None;
                files.push(Outcome { path, ok: false, format, set, tensors, bytes, seconds, warnings, error });
            }
        }
    }
    if ui.json() {
        ui.object(&Outcomes { ok: code == 0, files })?;
    }
    Ok(code)
}

impl Outcome {
    /// Of a file that has been checked with its set.
    fn again(path: &Path, set: &[PathBuf]) -> Self {
        Self {
            path: path.display().to_string(),
            ok: true,
            format: Some("p64"),
            set: Some(shown(set)),
            tensors: None,
            bytes: None,
            seconds: None,
            warnings: Vec::new(),
            error: None,
        }
    }
}

fn shown(set: &[PathBuf]) -> Vec<String> {
    set.iter().map(|path| path.display().to_string()).collect()
}

struct Checked {
    format: &'static str,
    /// The files of a split set, by their canonical paths.
    set: Option<Vec<PathBuf>>,
    tensors: u64,
    bytes: u64,
    time: Duration,
    warnings: Vec<String>,
}

impl Checked {
    fn line(&self, path: &Path) -> String {
        let found = format!("{}, {}", number::plural(self.tensors, "tensor"), number::bytes(self.bytes));
        match self.format {
            "p64" => {
                let speed = number::bytes_per_second(self.bytes, self.time);
                let files = self.set.as_ref().map_or(1, Vec::len) as u64;
                let files = if files > 1 { format!("{}, ", number::plural(files, "file")) } else { String::new() };
                format!("{}: OK, {files}{found}, {speed}", path.display())
            }
            format => {
                let what = if format == "gguf" { "a GGUF" } else { "safetensors" };
                format!("{}: OK, {found}, structure only ({what} carries no checksums)", path.display())
            }
        }
    }

    fn outcome(self, path: &Path) -> Outcome {
        Outcome {
            path: path.display().to_string(),
            ok: true,
            format: Some(self.format),
            set: self.set.as_deref().map(shown),
            tensors: Some(self.tensors),
            bytes: Some(self.bytes),
            seconds: Some(self.time.as_secs_f64()),
            warnings: self.warnings,
            error: None,
        }
    }
}

fn check(args: &Args, path: &Path, ui: &Ui) -> Result<Checked> {
    let began = Instant::now();
    // Opening says nothing of how far it has come, so of large files each tensor is taken here instead.
    let large = std::fs::metadata(path).is_ok_and(|about| about.len() >= LARGE);
    let options = MapOptions {
        policy: if args.strict { Policy::Strict } else { Policy::Compatible },
        integrity: if args.lazy || large { Integrity::Lazy } else { Integrity::Full },
        ..MapOptions::default()
    };
    let progress = Progress::new(ui, "verifying");
    let input = Input::open(path, &options)?;
    let mut checked = match &input {
        Input::P64(set, warnings) => {
            let (mut done, mut tensors) = (0, 0);
            for part in set.parts() {
                check_container(part, &mut |bytes| {
                    done += bytes;
                    progress.set(done, set.file_len());
                })?;
                tensors += u64::from(part.container().tensor_count());
            }
            let shown = |(at, warning): &(usize, p64_core::Error)| match set.parts().get(*at) {
                Some(part) if set.is_split() => format!("{}: {warning}", part.path().display()),
                _ => warning.to_string(),
            };
            let paths = set.parts().iter().filter_map(|part| part.path().canonicalize().ok());
            Checked {
                format: "p64",
                set: set.is_split().then(|| paths.collect()),
                tensors,
                bytes: set.file_len(),
                time: began.elapsed(),
                warnings: warnings.iter().map(shown).collect(),
            }
        }
        Input::Gguf(mapped) => Checked {
            format: "gguf",
            set: None,
            tensors: mapped.gguf().tensors().len() as u64,
            bytes: mapped.gguf().file_len(),
            time: began.elapsed(),
            warnings: Vec::new(),
        },
        Input::Safetensors(set) => Checked {
            format: "safetensors",
            set: None,
            tensors: set.tensors().count() as u64,
            bytes: set.file_len(),
            time: began.elapsed(),
            warnings: set.notes(),
        },
    };
    match input.read_tokenizer()? {
        Ok(_) => {}
        // The file is sound; that this build cannot run it, or that a key is not there, is another matter.
        Err(
            error @ (TokenizerError::UnknownModel { .. }
            | TokenizerError::UnknownPre { .. }
            | TokenizerError::Missing { .. }),
        ) => {
            checked.warnings.push(error.to_string());
        }
        Err(error) => {
            return Err(Failure::Input { path: path.to_owned(), reason: format!("tokenizer: {error}") });
        }
    }
    Ok(checked)
}

/// Every tensor of one file and its metadata; `done` is told the bytes of each.
fn check_container(part: &MappedContainer, done: &mut dyn FnMut(u64)) -> Result<()> {
    let container = part.container();
    let core = |source| p64_std::Error::Core { path: part.path().to_owned(), source };
    // Under `Full` every one of them has been verified, and this costs nothing.
    for info in container.tensors() {
        let tensor = container.tensor(&info).map_err(core)?;
        if info.dtype() == DType::Ternary {
            // The one type of which not every byte is a value; the digits are looked at when they are used.
            let about = |mut error: p64_core::Error| {
                error.place = Place::Tensor(info.index());
                core(error)
            };
            tensor.matrix().map_err(about)?;
        }
        done(tensor.bytes().len() as u64);
    }
    container.metadata().map_err(core)?;
    container.provenance().map_err(core)?;
    Ok(())
}
