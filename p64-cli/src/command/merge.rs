//! `p64 merge`: the files of a set become one container.

use crate::failure::Result;
use crate::output::{Ui, number, progress::Progress};
use p64_std::split;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  p64 merge model-00001-of-00003.p64 model.p64
  p64 merge --json model-00001-of-00003.p64 model.p64 | jq .identical

The result is, byte for byte, the container that was split. OUT appears whole or not at all.";

/// Put the files of a split set together again
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Any file of the set; the others are found by its name
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The container to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let report = {
        let bar = Progress::new(ui, "writing");
        split::merge(&args.input, &args.output, &mut |step| bar.set(step.done, step.total))?
    };
    if !report.identical {
        ui.warn(
            "a file of the set was changed since the split: the result is sound, but not the container that was split",
        );
    }
    if ui.json() {
        ui.object(&json!({
            "input": args.input.display().to_string(),
            "output": args.output.display().to_string(),
            "files": report.files,
            "tensors": report.tensors,
            "bytes": report.bytes,
            "set": report.identity,
            "identical": report.identical,
            "seconds": report.duration.as_secs_f64(),
        }))?;
    } else if !ui.quiet() {
        let (tensors, bytes) = (number::plural(report.tensors, "tensor"), number::bytes(report.bytes));
        let files = number::plural(report.files as u64, "file");
        ui.line(format_args!("{}: {tensors}, {bytes}, from {files}", args.output.display()))?;
        let equal = if report.identical { " (identical to what was split)" } else { "" };
        ui.line(format_args!("  set       {}{equal}", report.identity))?;
        let speed = number::bytes_per_second(report.bytes, report.duration);
        ui.line(format_args!("  took      {}, {speed}", number::duration(report.duration)))?;
    }
    Ok(0)
}
