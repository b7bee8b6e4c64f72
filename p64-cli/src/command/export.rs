//! `p64 export`: a container becomes the GGUF it was made from.

use crate::failure::{Failure, Result};
use crate::output::{Ui, number, progress::Progress};
use p64_std::export;
use serde_json::json;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  p64 export model.p64 model.gguf
  p64 export model.p64 /mnt/backup/model --to gguf

The result is compared with the SHA-256 of the source that the container remembers.";

/// Get a model back out of a container; the source GGUF comes back identical
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The container
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write; its extension names the format
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// The format, whatever the extension
    #[arg(long, value_enum)]
    to: Option<Target>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Target {
    Gguf,
}

fn target(args: &Args) -> Result<Target> {
    let extension = args.output.extension().map(|extension| extension.to_ascii_lowercase());
    match (args.to, extension) {
        (Some(target), _) => Ok(target),
        (None, Some(extension)) if extension == "gguf" => Ok(Target::Gguf),
        (None, _) => Err(Failure::Usage(format!(
            "{}: the extension names no format to export to; end the name in .gguf or add --to gguf",
            args.output.display()
        ))),
    }
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let Target::Gguf = target(args)?;
    let report = {
        let bar = Progress::new(ui, "writing");
        export::export_gguf(&args.input, &args.output, &mut |step| bar.set(step.done, step.total))?
    };
    match report.identical {
        Some(true) => {}
        Some(false) => ui.warn("the result is not byte for byte the source: its SHA-256 differs"),
        None if !report.edited.is_empty() => {
            let edits = report.edited.join(", ");
            ui.warn(format_args!(
                "the container was edited since its conversion ({edits}): the result is not its source"
            ));
        }
        None => ui.warn("the container does not tell the SHA-256 that this file should have"),
    }
    if ui.json() {
        let files = report
            .files
            .iter()
            .map(|file| json!({ "path": show(&file.path), "bytes": file.bytes, "sha256": file.sha256 }));
        ui.object(&json!({
            "input": show(&args.input),
            "format": "gguf",
            "files": files.collect::<Vec<_>>(),
            "tensors": report.tensors,
            "identical": report.identical,
            "edited": report.edited,
            "seconds": report.duration.as_secs_f64(),
        }))?;
    } else if !ui.quiet() {
        for file in &report.files {
            ui.line(format_args!("{}: {}", show(&file.path), number::bytes(file.bytes)))?;
            let equal = if report.identical == Some(true) { " (identical to the source)" } else { "" };
            ui.line(format_args!("  sha-256   {}{equal}", file.sha256))?;
        }
        let tensors = number::plural(report.tensors, "tensor");
        ui.line(format_args!("  took      {}, {tensors}", number::duration(report.duration)))?;
    }
    Ok(0)
}

fn show(path: &Path) -> String {
    path.display().to_string()
}
