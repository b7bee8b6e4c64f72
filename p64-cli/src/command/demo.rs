//! `p64 demo`: the whole way of a model, in seconds: convert, verify, inspect, run, export.

use crate::command::inspect;
use crate::failure::{Failure, Result};
use crate::output::{Ui, number};
use p64_core::validate::Policy;
use p64_std::Error;
use p64_std::convert::{ConvertOptions, convert_gguf};
use p64_std::export::export_gguf;
use p64_std::map::{MapOptions, MappedContainer};
use p64_std::model::LoadedModel;
use p64_std::sample::{Sampler, SamplerParams};
use p64_std::session::{GenerateOptions, Session, SessionOptions};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The bundled model: stories of a grammar, trained by `scripts/tiny`.
const MODEL: &[u8] = include_bytes!("../../../tests/data/tiny/tiny-stories-q8_0.gguf");
const NAME: &str = "tiny-stories-q8_0";
const PROMPT: &str = "Once upon a time";

const EXAMPLES: &str = "\
Examples:
  p64 demo                         with the bundled small model, in a temporary folder
  p64 demo --out demo              keep the files in the folder demo
  p64 demo model.gguf -p \"Hello\"   with a model of yours";

/// Show the whole way of a model in a few seconds
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A GGUF to take instead of the bundled model
    #[arg(value_name = "GGUF")]
    model: Option<PathBuf>,
    /// Keep the files in this folder, which is made if need be
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How the text begins
    #[arg(short, long, value_name = "TEXT", default_value = PROMPT)]
    prompt: String,
    /// Most tokens to generate
    #[arg(short = 'n', long, value_name = "N", default_value_t = 200)]
    tokens: usize,
    /// Seed of the text
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// Where the files of the demonstration stand.
struct Files {
    source: PathBuf,
    container: PathBuf,
    exported: PathBuf,
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let began = Instant::now();
    let (folder, _temporary) = folder(args)?;
    let files = files(args, &folder)?;
    let say = |step: &str, text: String| -> Result<()> {
        if !ui.json() {
            ui.line(format_args!("{step:<9} {text}"))?;
        }
        Ok(())
    };

    let report = convert_gguf(&files.source, &files.container, &ConvertOptions::default(), &mut |_| ())?;
    let (from, to) = (number::bytes(report.source_bytes), number::bytes(report.bytes));
    say("source", format!("{}, {from}", name(&files.source)))?;
    let took = number::duration(report.duration);
    say(
        "convert",
        format!("{}, {to}, {} in {took}", name(&files.container), number::plural(report.tensors, "tensor")),
    )?;

    let strict = MapOptions { policy: Policy::Strict, ..MapOptions::default() };
    let verify_began = Instant::now();
    let (mapped, _) = MappedContainer::open(&files.container, &strict)?;
    let tensors = u64::from(mapped.container().tensor_count());
    drop(mapped);
    let took = number::duration(verify_began.elapsed());
    say("verify", format!("OK, every checksum of {}, strict, in {took}", number::plural(tensors, "tensor")))?;
    let described = inspect::describe(&files.container, false)?;
    let space = &described.space;
    say(
        "inspect",
        format!(
            "{} payload, {} front, {} padding in {}",
            number::bytes(space.payload),
            number::bytes(space.front),
            number::bytes(space.page_padding + space.other_padding),
            number::plural(described.sections.len() as u64, "section"),
        ),
    )?;

    let model = LoadedModel::open(&files.container, &MapOptions::default())?;
    say("run", format!("{}\n", model.description()))?;
    if !ui.json() {
        ui.text(&format!("  {}", indent(&args.prompt)))?;
    }
    let generation = generate(args, &model, ui)?;
    let rate = generation.stats.generate_rate();
    if !ui.json() {
        ui.line(format_args!("\n\n{:<9} {} tokens, {rate:.0} tokens/s\n", "", generation.ids.len()))?;
    }
    drop(model);

    let exported = export_gguf(&files.container, &files.exported, &mut |_| ())?;
    let sha256 = exported.files.first().map(|file| file.sha256.clone()).unwrap_or_default();
    let verdict = if exported.identical == Some(true) { "identical to the source" } else { "NOT the source" };
    say("export", format!("{}, {verdict}", name(&files.exported)))?;
    say("", format!("source   sha-256 {}", report.source_sha256.join(" ")))?;
    say("", format!("exported sha-256 {sha256}"))?;
    if ui.json() {
        ui.object(&json!({
            "source_sha256": report.source_sha256,
            "exported_sha256": sha256,
            "identical": exported.identical,
            "bytes": report.bytes,
            "tensors": tensors,
            "prompt": args.prompt,
            "ids": generation.ids,
            "text": generation.text,
            "generate_tok_s": rate,
            "folder": args.out.as_ref().map(|out| out.display().to_string()),
            "seconds": began.elapsed().as_secs_f64(),
        }))?;
    } else if let Some(out) = &args.out {
        ui.line(format_args!(
            "\nAll of it took {}; the files are in {}.",
            number::duration(began.elapsed()),
            out.display()
        ))?;
    } else {
        ui.line(format_args!(
            "\nAll of it took {}. Keep the files with --out DIR.",
            number::duration(began.elapsed())
        ))?;
    }
    if exported.identical == Some(false) {
        let reason = "the exported file is not the source".to_owned();
        return Err(Failure::Input { path: files.source, reason });
    }
    Ok(0)
}

/// The folder for the files; a temporary one is removed when the second value goes.
fn folder(args: &Args) -> Result<(PathBuf, Option<tempfile::TempDir>)> {
    if let Some(out) = &args.out {
        std::fs::create_dir_all(out).map_err(|error| Error::io(out, "make it", error))?;
        return Ok((out.clone(), None));
    }
    let temporary = tempfile::Builder::new().prefix("p64-demo-").tempdir();
    let temporary = temporary.map_err(|error| Error::io(&std::env::temp_dir(), "make a folder in it", error))?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}

fn files(args: &Args, folder: &Path) -> Result<Files> {
    let stem = args.model.as_deref().and_then(Path::file_stem).map_or(NAME.into(), |stem| stem.to_string_lossy());
    let source = match &args.model {
        Some(model) => model.clone(),
        None => {
            let path = folder.join(format!("{NAME}.gguf"));
            std::fs::write(&path, MODEL).map_err(|error| Error::io(&path, "write it", error))?;
            path
        }
    };
    let container = folder.join(format!("{stem}.p64"));
    let exported = folder.join(format!("{stem}.exported.gguf"));
    Ok(Files { source, container, exported })
}

fn generate(args: &Args, model: &LoadedModel, ui: &Ui) -> Result<p64_std::session::Generation> {
    let params = SamplerParams { temperature: 0.5, seed: args.seed, ..SamplerParams::default() };
    let mut sampler = Sampler::new(params).map_err(|error| Failure::Usage(error.to_string()))?;
    let context = model.config().context().min(2048);
    let mut session = Session::new(model, &SessionOptions { context: Some(context), ..SessionOptions::default() })?;
    let options = GenerateOptions { max_tokens: args.tokens, ..GenerateOptions::default() };
    let ids = model.tokenizer().encode(args.prompt.as_bytes(), true, false);
    let mut written = Ok(());
    let generation = session.generate(&ids, &options, &mut sampler, &mut |text| {
        if !ui.json() {
            written = ui.text(&indent(text));
        }
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written?;
    Ok(generation)
}

/// Later lines begin where the first does.
fn indent(text: &str) -> String {
    text.replace('\n', "\n  ")
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().display().to_string()
}
