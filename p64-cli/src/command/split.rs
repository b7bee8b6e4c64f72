//! `p64 split`: a container becomes a set of files.

use crate::failure::Result;
use crate::output::{Ui, number, progress::Progress};
use p64_std::split::{self, Cut, SplitReport, parse_size};
use serde_json::json;
use std::num::NonZeroU32;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  p64 split model.p64 out/model                files below 4 GiB
  p64 split model.p64 out/model --layers 8     8 layers to a file, then one for the rest
  p64 split model.p64 out/model --size 500M    files of up to 500 MB
  p64 split --json model.p64 out/model | jq .files

The files are called STEM-00001-of-0000N.p64, and each is a container of its own. Every command takes any one of them
for all. They are cut between layers, never within one: a layer that is larger than --size has a file to itself.";

/// Cut a container into a set of files between its layers
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The container, or a file of a set that is to be cut anew
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// What the names of the files begin with
    #[arg(value_name = "STEM")]
    output: PathBuf,
    /// As many layers to a file as stay below 4 GiB; what is done unless told otherwise
    #[arg(long, group = "cut")]
    auto: bool,
    /// Layers to a file
    #[arg(long, value_name = "N", group = "cut")]
    layers: Option<NonZeroU32>,
    /// Largest file: bytes, or with K, M, G (powers of 1000), Ki, Mi, Gi (of 1024)
    #[arg(long, value_name = "SIZE", group = "cut", value_parser = size)]
    size: Option<u64>,
}

fn size(text: &str) -> std::result::Result<u64, String> {
    parse_size(text).ok_or_else(|| "a size is a number of bytes, or one with a unit like 500M, 2G or 4Gi".to_owned())
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let cut = match (args.layers, args.size) {
        (Some(count), _) => Cut::Layers(count),
        (None, Some(size)) => Cut::Size(size),
        (None, None) => Cut::Auto,
    };
    let report = {
        let bar = Progress::new(ui, "writing");
        split::split(&args.input, &args.output, &cut, &mut |step| bar.set(step.done, step.total))?
    };
    report.notes.iter().for_each(|note| ui.warn(note));
    if ui.json() {
        let mut object = object(&report);
        if let Some(object) = object.as_object_mut() {
            object.insert("input".to_owned(), args.input.display().to_string().into());
        }
        ui.object(&object)?;
    } else if !ui.quiet() {
        print(&report, ui)?;
    }
    Ok(0)
}

/// A new set, as a person reads it.
pub fn print(report: &SplitReport, ui: &Ui) -> Result<()> {
    for file in &report.files {
        let layers = match file.layers {
            Some((first, last)) if first != last => format!("layers {first} to {last}"),
            Some((only, _)) => format!("layer {only}"),
            None => "no layer".to_owned(),
        };
        let (tensors, bytes) = (number::plural(file.tensors, "tensor"), number::bytes(file.bytes));
        ui.line(format_args!("{}: {layers}, {tensors}, {bytes}", file.path.display()))?;
    }
    let total = report.files.iter().map(|file| file.bytes).sum();
    let speed = number::bytes_per_second(total, report.duration);
    ui.line(format_args!("  set       {}", report.identity))?;
    ui.line(format_args!("  took      {}, {speed}", number::duration(report.duration)))?;
    Ok(())
}

/// The same as an object.
pub fn object(report: &SplitReport) -> serde_json::Value {
    let files = report.files.iter().map(|file| {
        json!({
            "path": file.path.display().to_string(),
            "bytes": file.bytes,
            "tensors": file.tensors,
            "layers": file.layers.map(|(first, last)| [first, last]),
        })
    });
    json!({
        "files": files.collect::<Vec<_>>(),
        "tensors": report.tensors,
        "set": report.identity,
        "warnings": report.notes,
        "seconds": report.duration.as_secs_f64(),
    })
}
