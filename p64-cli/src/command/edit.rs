//! `p64 edit`: keys, the chat template and names of a container, without its weights being read.

use crate::failure::{Failure, Result};
use crate::output::{Ui, number, progress::Progress};
use p64_std::edit::{self, EditReport, Edits, Recovery, Verify};
use serde_json::json;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  p64 edit model.p64 -o new.p64 --name \"My model\"
  p64 edit model.p64 --in-place --chat-template template.jinja
  p64 edit model.p64 -o new.p64 --set llama.context_length=8192 --set general.url:string=example.org
  p64 edit model.p64 -o new.p64 --set 'tokenizer.ggml.eos_token_id=2' --unset general.license
  p64 edit model.p64 -o new.p64 --rename blk.0.old.weight=blk.0.new.weight
  p64 edit model.p64 --recover               complete an edit in place that was interrupted

A key keeps its type; a new one needs it: KEY:TYPE=VALUE, with u8 ... i64, f32, f64, bool, string, or [TYPE] and a
JSON array. Hyperparameters and the tokenizer section follow from the keys. Weights are neither read nor checked,
unless --verify asks for it: every reader checks a tensor before it uses it.

With --in-place the file's front and its last two blobs are rewritten through a journal beside the file. Killed at any
moment, it leaves the old file or, after --recover (or the next edit), the new one. It is refused while the file is open.";

/// Change keys, the chat template or names of tensors
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("where").required(true).args(["output", "in_place", "recover"]))]
pub struct Args {
    /// The container
    file: PathBuf,
    /// Write the result to another file
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Change the file itself
    #[arg(long)]
    in_place: bool,
    /// Complete or drop an interrupted --in-place, and change nothing else
    #[arg(long, conflicts_with_all = ["set", "unset", "chat_template", "rename", "name", "from_json", "verify"])]
    recover: bool,
    /// Give a key a value
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Drop a key
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// The model's name, general.name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The chat template, a file with Jinja in it
    #[arg(long, value_name = "FILE")]
    chat_template: Option<PathBuf>,
    /// Keys and values from a file with a JSON object; null drops a key
    #[arg(long, value_name = "FILE")]
    from_json: Option<PathBuf>,
    /// Give a tensor another name, and the role that goes with it
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<String>,
    /// Verify the checksum of every weight of the result
    #[arg(long)]
    verify: bool,
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    if args.recover {
        return recover(&args.file, ui);
    }
    let edits = edits(args)?;
    if edits.is_empty() {
        return Err(Failure::Usage(
            "nothing to change: give --set, --unset, --name, --chat-template or --rename".into(),
        ));
    }
    let verify = if args.verify { Verify::Now } else { Verify::OnUse };
    let report = {
        let bar = Progress::new(ui, "writing");
        let progress = &mut |step: p64_std::convert::Progress| bar.set(step.done, step.total);
        match &args.output {
            Some(output) => edit::edit_file(&args.file, output, &edits, verify, progress)?,
            None => edit::edit_in_place(&args.file, &edits, verify, progress)?,
        }
    };
    if report.recovered != Recovery::Nothing {
        ui.note(format_args!("{}: {}", args.file.display(), recovered(report.recovered)));
    }
    report.warnings.iter().for_each(|warning| ui.warn(warning));
    if ui.json() {
        ui.object(&object(args, &report))?;
    } else if !ui.quiet() {
        print(args, &report, ui)?;
    }
    Ok(0)
}

fn edits(args: &Args) -> Result<Edits> {
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(|error| p64_std::Error::io(path, "read it as text", error));
    let mut edits = Edits::new();
    if let Some(path) = &args.from_json {
        let named = |error: p64_std::Error| Failure::Usage(format!("{}: {error}", path.display()));
        edits.set_json(&read(path)?).map_err(named)?;
    }
    for assignment in &args.set {
        edits.set(assignment)?;
    }
    for key in &args.unset {
        edits.unset(key);
    }
    if let Some(name) = &args.name {
        edits.set_text("general.name", name);
    }
    if let Some(path) = &args.chat_template {
        edits.set_text("tokenizer.chat_template", &read(path)?);
    }
    for names in &args.rename {
        edits.rename(names)?;
    }
    Ok(edits)
}

fn recover(path: &Path, ui: &Ui) -> Result<u8> {
    let recovery = edit::recover(path)?;
    if ui.json() {
        let name = match recovery {
            Recovery::Nothing => "nothing",
            Recovery::Discarded => "discarded",
            Recovery::Completed => "completed",
        };
        ui.object(&json!({ "file": path.display().to_string(), "recovered": name }))?;
    } else if !ui.quiet() {
        ui.line(format_args!("{}: {}", path.display(), recovered(recovery)))?;
    }
    Ok(0)
}

const fn recovered(recovery: Recovery) -> &'static str {
    match recovery {
        Recovery::Nothing => "no edit was interrupted",
        Recovery::Discarded => "an edit was interrupted before it changed anything; what it left is gone",
        Recovery::Completed => "an interrupted edit was completed",
    }
}

fn target(args: &Args) -> &Path {
    args.output.as_deref().unwrap_or(&args.file)
}

fn print(args: &Args, report: &EditReport, ui: &Ui) -> Result<()> {
    let bytes = number::bytes(report.bytes);
    let unchanged = if report.is_changed() { "" } else { ", nothing is different" };
    ui.line(format_args!("{}: {bytes}{unchanged}", target(args).display()))?;
    for change in &report.keys {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        ui.line(format_args!("  key       {}: {} -> {}", change.key, side(&change.before), side(&change.after)))?;
    }
    for (old, new) in &report.renamed {
        ui.line(format_args!("  tensor    {old} -> {new}"))?;
    }
    for section in &report.rebuilt {
        ui.line(format_args!("  rebuilt   {section}"))?;
    }
    let written = number::bytes(report.written);
    let how = if args.output.is_some() { "the rest copied by the system" } else { "journal included" };
    ui.line(format_args!("  took      {}, {written} written, {how}", number::duration(report.duration)))?;
    Ok(())
}

fn object(args: &Args, report: &EditReport) -> serde_json::Value {
    let keys =
        report.keys.iter().map(|change| json!({ "key": change.key, "before": change.before, "after": change.after }));
    let renamed = report.renamed.iter().map(|(old, new)| json!({ "before": old, "after": new }));
    json!({
        "input": args.file.display().to_string(),
        "output": target(args).display().to_string(),
        "in_place": args.in_place,
        "keys": keys.collect::<Vec<_>>(),
        "tensors": renamed.collect::<Vec<_>>(),
        "rebuilt": report.rebuilt,
        "bytes": report.bytes,
        "written_bytes": report.written,
        "warnings": report.warnings,
        "seconds": report.duration.as_secs_f64(),
    })
}
