//! `p64 export`: a model becomes the file it was made from, or arrays that other programs read.

use crate::failure::{Failure, Result};
use crate::output::{Ui, number, progress::Progress};
use p64_core::DType;
use p64_std::export::{self, ExportReport, TensorExport, TensorOptions};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  p64 export model.p64 model.gguf                       the identical GGUF
  p64 export model.p64 model.safetensors                tensors of a raw transcode, or floats
  p64 export model.p64 folder --to safetensors          with the files that belong to them
  p64 export model.gguf folder --to safetensors --dequantize f16
  p64 export model.p64 norms.npz --tensors '*_norm*'    for numpy.load

A file that was made byte for byte from a source is compared with the SHA-256 that the container remembers.";

/// Get a model back out: as GGUF, as safetensors, or tensors for NumPy
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The container; for safetensors and npz also a GGUF or a safetensors model
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write, its extension names the format; for safetensors also a folder
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// The format, whatever the extension
    #[arg(long, value_enum)]
    to: Option<Target>,
    /// Write the values of quantised tensors as floats of this type
    #[arg(long, value_name = "TYPE", value_enum)]
    dequantize: Option<Float>,
    /// Only tensors of names like this (`*` for any characters, `?` for one); may be repeated
    #[arg(long, value_name = "PATTERN")]
    tensors: Vec<String>,
    /// For safetensors: keep the names and rows of the container instead of Hugging Face's
    #[arg(long)]
    own_names: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Target {
    Gguf,
    Safetensors,
    Npz,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Float {
    F16,
    Bf16,
    F32,
}

impl Float {
    const fn dtype(self) -> DType {
        match self {
            Self::F16 => DType::F16,
            Self::Bf16 => DType::BF16,
            Self::F32 => DType::F32,
        }
    }
}

fn target(args: &Args) -> Result<Target> {
    let extension = args.output.extension().map(|extension| extension.to_ascii_lowercase());
    match (args.to, extension.as_ref().and_then(|extension| extension.to_str())) {
        (Some(target), _) => Ok(target),
        (None, Some("gguf")) => Ok(Target::Gguf),
        (None, Some("safetensors")) => Ok(Target::Safetensors),
        (None, Some("npz")) => Ok(Target::Npz),
        (None, _) => Err(Failure::Usage(format!(
            "{}: the extension names no format to export to; end the name in .gguf, .safetensors or .npz, or add --to \
             gguf, --to safetensors or --to npz",
            args.output.display()
        ))),
    }
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    match target(args)? {
        Target::Gguf => to_gguf(args, ui),
        Target::Safetensors => to_arrays(args, "safetensors", ui),
        Target::Npz => to_arrays(args, "npz", ui),
    }
}

fn to_gguf(args: &Args, ui: &Ui) -> Result<u8> {
    if !args.tensors.is_empty() || args.dequantize.is_some() || args.own_names {
        let reason = "a GGUF is exported whole and as it is: leave --tensors, --dequantize and --own-names out";
        return Err(Failure::Usage(reason.to_owned()));
    }
    let report: ExportReport = {
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
    report.replaced.iter().for_each(|note| ui.note(format_args!("{note}")));
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
            "replaced": report.replaced,
            "edited": report.edited,
            "seconds": report.duration.as_secs_f64(),
        }))?;
    } else if !ui.quiet() {
        for file in &report.files {
            print_file(&file.path, file.bytes, Some(&file.sha256), report.identical, ui)?;
        }
        let tensors = number::plural(report.tensors, "tensor");
        ui.line(format_args!("  took      {}, {tensors}", number::duration(report.duration)))?;
    }
    Ok(0)
}

fn to_arrays(args: &Args, format: &str, ui: &Ui) -> Result<u8> {
    let mut options = TensorOptions::default();
    options.dequantize = args.dequantize.map(Float::dtype);
    options.select.clone_from(&args.tensors);
    options.own_names = args.own_names;
    let report: TensorExport = {
        let bar = Progress::new(ui, "writing");
        let export = if format == "npz" { export::export_npz } else { export::export_safetensors };
        export(&args.input, &args.output, &options, &mut |step| bar.set(step.done, step.total))?
    };
    if report.identical == Some(false) {
        ui.warn("the result is not byte for byte the source: its SHA-256 differs, its tensors are the same");
    }
    report.notes.iter().for_each(|note| ui.warn(note));
    if ui.json() {
        let file = |file: &export::TensorFile| -> Value {
            json!({ "path": show(&file.path), "bytes": file.bytes, "sha256": file.sha256 })
        };
        ui.object(&json!({
            "input": show(&args.input),
            "format": format,
            "files": report.files.iter().map(file).collect::<Vec<_>>(),
            "tensors": report.tensors,
            "identical": report.identical,
            "notes": report.notes,
            "seconds": report.duration.as_secs_f64(),
        }))?;
    } else if !ui.quiet() {
        for file in &report.files {
            print_file(&file.path, file.bytes, file.sha256.as_deref(), report.identical, ui)?;
        }
        let tensors = number::plural(report.tensors, "tensor");
        ui.line(format_args!("  took      {}, {tensors}", number::duration(report.duration)))?;
    }
    Ok(0)
}

fn print_file(path: &Path, bytes: u64, sha256: Option<&str>, identical: Option<bool>, ui: &Ui) -> Result<()> {
    ui.line(format_args!("{}: {}", show(path), number::bytes(bytes)))?;
    if let Some(sha256) = sha256 {
        let equal = if identical == Some(true) { " (identical to the source)" } else { "" };
        ui.line(format_args!("  sha-256   {sha256}{equal}"))?;
    }
    Ok(())
}

fn show(path: &Path) -> String {
    path.display().to_string()
}
