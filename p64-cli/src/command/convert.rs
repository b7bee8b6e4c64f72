//! `p64 convert`: a GGUF becomes a container.

use crate::failure::{Failure, Result};
use crate::output::{Ui, memory, number, progress::Progress};
use p64_std::convert::{self, ConvertOptions, ConvertReport, ParityReport, Phase};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  p64 convert model.gguf model.p64
  p64 convert --check-parity model.gguf model.p64
  p64 convert --for firmware model.gguf model.p64    as small as the format permits
  p64 convert model-00001-of-00003.gguf model.p64    all files of a split model

OUT appears whole or not at all; an older OUT is replaced in one step.";

/// Convert a GGUF into a P64 container, byte-preserving
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The GGUF; of a split one, its first file
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The container to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Where the container will be read from; instead of the options of the layout
    #[arg(long = "for", value_name = "TARGET", value_enum, default_value_t = Target::Host,
        conflicts_with_all = ["page_size", "no_pack", "no_schedule", "no_layer_major"])]
    target: Target,
    /// Alignment of layers in bytes, a power of two from 256
    #[arg(long, value_name = "BYTES", default_value_t = ConvertOptions::default().page_size)]
    page_size: u32,
    /// Begin every tensor on a page, not only every layer
    #[arg(long)]
    no_pack: bool,
    /// Leave the layer schedule out
    #[arg(long)]
    no_schedule: bool,
    /// Keep the tensors in the order of the source
    #[arg(long)]
    no_layer_major: bool,
    /// Compare the result with the source afterwards, byte for byte
    #[arg(long)]
    check_parity: bool,
}

/// A layout by its purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Target {
    /// A memory-mapped file: every layer begins a page
    Host,
    /// Flash: pages of 256 bytes, layers packed, a schedule
    Firmware,
}

impl Args {
    fn layout(&self) -> ConvertOptions {
        match self.target {
            Target::Firmware => ConvertOptions::FIRMWARE,
            Target::Host => ConvertOptions {
                page_size: self.page_size,
                layer_major: !self.no_layer_major,
                pack: !self.no_pack,
                schedule: !self.no_schedule,
            },
        }
    }
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let options = args.layout();
    let report = {
        let bars = [Progress::new(ui, "reading"), Progress::new(ui, "writing")];
        convert::convert_gguf(&args.input, &args.output, &options, &mut |step| {
            let [reading, writing] = &bars;
            if step.phase == Phase::Digest { reading } else { writing }.set(step.done, step.total);
        })?
    };
    // Before the comparison, which maps the container.
    let peak = memory::peak();
    report.warnings.iter().for_each(|warning| ui.warn(warning));
    let parity = args.check_parity.then(|| {
        let bar = Progress::new(ui, "comparing");
        convert::check_parity(&args.input, &args.output, &mut |step| bar.set(step.done, step.total))
    });
    let parity = parity.transpose()?;
    if ui.json() {
        ui.object(&object(args, &report, peak, parity.as_ref()))?;
    } else if !ui.quiet() {
        print(args, &report, peak, parity.as_ref(), ui)?;
    }
    match parity.as_ref().and_then(|parity| parity.differences.first()) {
        // Under `--json` the one object has told already.
        Some(_) if ui.json() => Ok(1),
        Some(first) => Err(Failure::Input {
            path: args.output.clone(),
            reason: format!("differs from its source: {first}; convert it again"),
        }),
        None => Ok(0),
    }
}

fn print(args: &Args, report: &ConvertReport, peak: Option<u64>, parity: Option<&ParityReport>, ui: &Ui) -> Result<()> {
    let tensors = number::plural(report.tensors, "tensor");
    let (bytes, source) = (number::bytes(report.bytes), number::bytes(report.source_bytes));
    let time = number::duration(report.duration);
    let speed = number::bytes_per_second(report.source_bytes, report.duration);
    ui.line(format_args!("{}: {tensors}, {bytes}", args.output.display()))?;
    let files = if report.source_files > 1 { format!(" in {} files", report.source_files) } else { String::new() };
    ui.line(format_args!("  source    {}, {source}{files}", report.source_format))?;
    for digest in &report.source_sha256 {
        ui.line(format_args!("  sha-256   {digest}"))?;
    }
    let padding = number::bytes(report.padding_bytes);
    ui.line(format_args!("  padding   {padding} ({})", number::share(report.padding_bytes, report.bytes)))?;
    let peak = peak.map(|peak| format!(", peak memory {}", number::bytes(peak)));
    ui.line(format_args!("  took      {time}, {speed}{}", peak.unwrap_or_default()))?;
    if let Some(parity) = parity.filter(|parity| parity.is_equal()) {
        let (tensors, bytes) = (number::plural(parity.tensors, "tensor"), number::bytes(parity.bytes));
        ui.line(format_args!("  parity    {tensors}, {bytes}, equal to the source"))?;
    }
    Ok(())
}

fn object(args: &Args, report: &ConvertReport, peak: Option<u64>, parity: Option<&ParityReport>) -> serde_json::Value {
    json!({
        "input": args.input.display().to_string(),
        "output": args.output.display().to_string(),
        "tensors": report.tensors,
        "bytes": report.bytes,
        "padding_bytes": report.padding_bytes,
        "source_bytes": report.source_bytes,
        "source_files": report.source_files,
        "source_format": report.source_format,
        "profile": report.profile,
        "source_sha256": report.source_sha256,
        "raw_transcode": report.raw_transcode,
        "warnings": report.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "seconds": report.duration.as_secs_f64(),
        "peak_memory_bytes": peak,
        "parity": parity.map(|parity| json!({
            "equal": parity.is_equal(),
            "tensors": parity.tensors,
            "bytes": parity.bytes,
            "differences": parity.differences,
        })),
    })
}
