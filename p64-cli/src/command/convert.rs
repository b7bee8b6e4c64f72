//! `p64 convert`: a model of any format becomes a container.

use crate::command::split;
use crate::failure::{Failure, Result};
use crate::output::table::{Align, Table};
use crate::output::{Ui, memory, number, progress::Progress};
use p64_std::convert::{
    self, ConvertOptions, ConvertReport, Layout, ParityReport, Phase, ProduceOptions, TensorChange,
};
use p64_std::quantize::{Imatrix, Profile, Rule, Rules};
use p64_std::source::OpenSource;
use p64_std::split::Cut;
use serde_json::json;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  p64 convert model.gguf model.p64
  p64 convert --check-parity model.gguf model.p64
  p64 convert --for firmware model.gguf model.p64    as small as the format permits
  p64 convert model-00001-of-00003.gguf model.p64    all files of a split model
  p64 convert --layout tuned model.gguf model.p64    rows side by side, for AVX-512
  p64 convert --layout soa model.gguf model.p64      Q4_K as Q4_K_SOA
  p64 convert --profile q4_k_m f16.gguf model.p64    quantised as llama.cpp's type of that name
  p64 convert --rule 'ffn_*=q4_k' --rule output=q6_k f16.gguf model.p64
  p64 convert --page-size 4096 old.p64 new.p64       a container laid out anew
  p64 convert ./SmolLM2-135M model.p64               a Hugging Face folder
  p64 convert --split size=2G model.gguf out/model   a set of files, as p64 split makes it

OUT appears whole or not at all; an older OUT is replaced in one step.";

/// Convert a model into a P64 container; without further options every tensor keeps its bytes
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A GGUF (of a split one, its first file), a container, or safetensors: a file, an index or a folder
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The container to write; with --split, what the names of the files begin with
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
    /// What becomes of the weights
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t = Weights::Verbatim)]
    layout: Weights,
    /// Quantise the whole model
    #[arg(long, value_name = "PROFILE", help = format!("Quantise the whole model: {}", profiles()))]
    profile: Option<Profile>,
    /// Give tensors of these names this type; the first rule that matches counts, before the profile. `keep` as the type
    /// leaves them as they are. May be repeated
    #[arg(long = "rule", value_name = "PATTERN=TYPE")]
    rules: Vec<Rule>,
    /// How much each column counts, as llama.cpp's imatrix tool writes it
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
    /// Take the tensors of a Hugging Face folder as they are, whatever files lie beside them
    #[arg(long)]
    raw: bool,
    /// Write a set of files: auto (each below 4 GiB), layers=N or size=S (bytes, 500M, 2G, 4Gi)
    #[arg(long, value_name = "HOW")]
    split: Option<Cut>,
    /// Threads that encode weights; 0 for one per core
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Compare the result with the source afterwards, byte for byte
    #[arg(long)]
    check_parity: bool,
}

/// What becomes of the weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Weights {
    /// The source's bytes
    Verbatim,
    /// Q4_K with its scales expanded, which decodes with less work and takes 11 % more room
    Soa,
    /// Every matrix as 16-bit floats
    F16,
    /// Sixteen rows side by side: the same values, fastest with AVX-512, slow without AVX2; export gives the source's bytes
    Tuned,
}

/// A layout by its purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Target {
    /// A memory-mapped file: every layer begins a page
    Host,
    /// Flash: pages of 256 bytes, layers packed, a schedule
    Firmware,
}

fn profiles() -> String {
    Profile::ALL.iter().map(|profile| profile.name()).collect::<Vec<_>>().join(", ")
}

impl Args {
    fn options(&self) -> Result<ProduceOptions> {
        let mut options = ProduceOptions::preserving(self.blobs());
        options.weights = match self.layout {
            Weights::Verbatim => Layout::Verbatim,
            Weights::Soa => Layout::Soa,
            Weights::F16 => Layout::F16,
            Weights::Tuned => Layout::Tuned,
        };
        options.rules = Rules { profile: self.profile, rules: self.rules.clone() };
        options.imatrix = self.imatrix.as_deref().map(Imatrix::open).transpose()?;
        options.raw = self.raw;
        options.split = self.split;
        options.threads = self.threads;
        Ok(options)
    }

    fn blobs(&self) -> ConvertOptions {
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
    let options = args.options()?;
    if args.check_parity && (options.weights != Layout::Verbatim || !options.rules.is_empty()) {
        let reason =
            "--check-parity compares the result with its source byte for byte: leave it out where weights change";
        return Err(Failure::Usage(reason.to_owned()));
    }
    // Before hours of work, not after them.
    if args.check_parity && !is_gguf(&args.input)? {
        let reason = "--check-parity compares with a GGUF: leave it out for other sources";
        return Err(Failure::Usage(reason.to_owned()));
    }
    let report = {
        let bars = [Progress::new(ui, "reading"), Progress::new(ui, "writing")];
        convert::convert_file(&args.input, &args.output, &options, &mut |step| {
            let [reading, writing] = &bars;
            if step.phase == Phase::Digest { reading } else { writing }.set(step.done, step.total);
        })?
    };
    // Before the comparison, which maps the container.
    let peak = memory::peak();
    report.warnings.iter().for_each(|warning| ui.warn(warning));
    let parity = args.check_parity.then(|| {
        let bar = Progress::new(ui, "comparing");
        convert::check_parity(&args.input, first_file(args, &report), &mut |step| bar.set(step.done, step.total))
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

/// What was written, or the first file of it.
fn first_file<'a>(args: &'a Args, report: &'a ConvertReport) -> &'a Path {
    let first = report.set.as_ref().and_then(|set| set.files.first());
    first.map_or(args.output.as_path(), |file| &file.path)
}

fn is_gguf(path: &Path) -> Result<bool> {
    Ok(!path.is_dir() && matches!(OpenSource::open(path)?, OpenSource::Gguf(_)))
}

fn print(args: &Args, report: &ConvertReport, peak: Option<u64>, parity: Option<&ParityReport>, ui: &Ui) -> Result<()> {
    let tensors = number::plural(report.tensors, "tensor");
    let (bytes, source) = (number::bytes(report.bytes), number::bytes(report.source_bytes));
    let time = number::duration(report.duration);
    let speed = number::bytes_per_second(report.source_bytes, report.duration);
    match &report.set {
        None => ui.line(format_args!("{}: {tensors}, {bytes}", args.output.display()))?,
        Some(set) => split::print(set, ui)?,
    }
    let files = if report.source_files > 1 { format!(" in {} files", report.source_files) } else { String::new() };
    if report.source_files > 0 {
        ui.line(format_args!("  source    {}, {source}{files}", report.source_format))?;
    } else {
        ui.line(format_args!("  source    a container of {}", report.source_format))?;
    }
    ui.line(format_args!("  profile   {}", report.profile))?;
    for digest in &report.source_sha256 {
        ui.line(format_args!("  sha-256   {digest}"))?;
    }
    let padding = number::bytes(report.padding_bytes);
    ui.line(format_args!("  padding   {padding} ({})", number::share(report.padding_bytes, report.bytes)))?;
    let peak = peak.map(|peak| format!(", peak memory {}", number::bytes(peak)));
    ui.line(format_args!("  took      {time}, {speed}{}", peak.unwrap_or_default()))?;
    if !report.changes.is_empty() {
        ui.text(&changes(&report.changes))?;
    }
    if let Some(parity) = parity.filter(|parity| parity.is_equal()) {
        let (tensors, bytes) = (number::plural(parity.tensors, "tensor"), number::bytes(parity.bytes));
        ui.line(format_args!("  parity    {tensors}, {bytes}, equal to the source"))?;
    }
    Ok(())
}

/// The tensors that were encoded anew, with the error of each.
fn changes(changes: &[TensorChange]) -> String {
    let mut table = Table::new([
        ("from", Align::Left),
        ("to", Align::Left),
        ("rmse", Align::Right),
        ("relative", Align::Right),
        ("max", Align::Right),
        ("tensor", Align::Left),
    ]);
    for TensorChange { name, from, to, error, .. } in changes {
        let (rmse, relative) = (format!("{:.3e}", error.rmse()), format!("{:.3} %", 100.0 * error.relative()));
        table.row([from.to_string(), to.to_string(), rmse, relative, format!("{:.3e}", error.max()), name.clone()]);
    }
    table.render()
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
        "set": report.set.as_ref().map(split::object),
        "source_sha256": report.source_sha256,
        "raw_transcode": report.raw_transcode,
        "changes": report.changes.iter().map(|change| json!({
            "name": change.name,
            "from": change.from.name(),
            "to": change.to.name(),
            "rmse": change.error.rmse(),
            "relative": change.error.relative(),
            "max": change.error.max(),
        })).collect::<Vec<_>>(),
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
