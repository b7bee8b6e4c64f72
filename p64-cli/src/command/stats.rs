//! `p64 stats`: what the values of a model are like.

use crate::failure::{Failure, Result};
use crate::glob::{self, Glob};
use crate::html;
use crate::output::{Ui, number, progress::Progress};
use crate::stats::{self, Report};
use p64_std::atomic_file::AtomicFile;
use p64_std::source::OpenSource;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  p64 stats model.p64                              every tensor in a line
  p64 stats model.gguf --tensors '*ffn_down*'      some of them
  p64 stats --html report.html model.p64           a page with plots; any browser, no network
  p64 stats --json model.p64 | jq '.tensors[] | select(.outliers > 0)'
  p64 stats --finite -q model.p64                  end with 1 if a value is NaN or infinite

An outlier stands more than 6 standard deviations from its tensor's mean.";

/// Count over the values of a model: range, spread, zeros, outliers, NaN, histograms
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The model, of any format that is read
    file: PathBuf,
    /// Only tensors with names of this form (* any run of characters, ? any one); may be given several times
    #[arg(long, value_name = "GLOB")]
    tensors: Vec<Glob>,
    /// Write a self-contained page with plots
    #[arg(long, value_name = "OUT.html")]
    html: Option<PathBuf>,
    /// End with 1 if a value is NaN or infinite
    #[arg(long)]
    finite: bool,
    /// Threads; 0 is one per core
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let source = OpenSource::open(&args.file)?;
    let page = args.html.as_deref().map(|path| begin(path, &source)).transpose()?;
    let report = count(args, &source, ui)?;
    if let Some(mut page) = page {
        let text = html::page(&report);
        let written = page.file().write_all(text.as_bytes());
        written.map_err(|source| p64_std::Error::io(page.target(), "write it", source))?;
        page.commit()?;
    }
    let bad = report.not_finite();
    if ui.json() {
        ui.object(&stats::object(&report))?;
    } else if let Some(path) = &args.html {
        if !ui.quiet() {
            ui.line(format_args!("{}: {}", path.display(), stats::headline(&report)))?;
        }
    } else {
        ui.text(&stats::render(&report))?;
    }
    for tensor in report.tensors.iter().filter(|tensor| tensor.not_finite() > 0) {
        ui.warn(stats::not_finite(tensor));
    }
    if bad > 0 && args.finite {
        if ui.json() {
            return Ok(1);
        }
        let values = number::plural(bad, "value");
        let reason = format!("{values} NaN or infinite; the weights are damaged, convert or fetch them again");
        return Err(Failure::Input { path: args.file.clone(), reason });
    }
    Ok(0)
}

/// The page's file, which must not take the place of one of the model's.
fn begin(page: &Path, model: &OpenSource) -> Result<AtomicFile> {
    if model.has_file(page) {
        return Err(p64_std::Error::SameFile { path: page.to_owned() }.into());
    }
    Ok(AtomicFile::create(page)?)
}

fn count(args: &Args, source: &OpenSource, ui: &Ui) -> Result<Report> {
    let bar = Mutex::new(Progress::new(ui, "counting"));
    let advance = |done, total| {
        // A thread that finds the bar in use need not wait: the next one will show more.
        if let Ok(bar) = bar.try_lock() {
            bar.set(done, total);
        }
    };
    let began = Instant::now();
    let all = source.tensors();
    let (mut chosen, mut places) = (Vec::new(), Vec::new());
    for (index, tensor) in all.into_iter().enumerate() {
        if glob::any(&args.tensors, &tensor.name) {
            chosen.push(tensor);
            places.push(index);
        }
    }
    if chosen.is_empty() && !args.tensors.is_empty() {
        return Err(Failure::Usage(format!(
            "{}: no tensor has such a name; `p64 inspect --tensors` lists them",
            args.file.display()
        )));
    }
    let counted = p64_std::stats::count(&args.file, &chosen, args.threads, &advance)?;
    let took = began.elapsed();
    Report::new(&args.file, source, &chosen, &places, counted, took)
}
