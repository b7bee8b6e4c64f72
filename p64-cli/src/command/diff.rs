//! `p64 diff`: what differs between two models.

use crate::diff;
use crate::failure::{Failure, Result};
use crate::glob::{self, Glob};
use crate::output::{Ui, progress::Progress};
use p64_std::diff::{Options, Side, compare};
use p64_std::source::OpenSource;
use std::path::PathBuf;
use std::sync::Mutex;

const EXAMPLES: &str = "\
Examples:
  p64 diff model.gguf model.p64                    one model in two formats
  p64 diff model-f16.gguf model-q4_k_m.gguf        what quantising has cost, tensor by tensor
  p64 diff --summary a.p64 b.p64                   how many tensors of each kind of change
  p64 diff --exit-code -q a.p64 b.p64 && echo same
  p64 diff --json a.p64 b.p64 | jq .same_model

Errors are those of the second model against the first: rmse, the same relative to the first tensor's root mean
square, the largest difference, and the cosine between the two. Two models are the same when names, types, shapes,
bytes and keys are; in which format and order they are stored does not count.";

/// Compare two models: tensors, values, keys, tokenizer, layout
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The first model, of any format that is read
    a: PathBuf,
    /// The second
    b: PathBuf,
    /// Only tensors with names of this form (* any run of characters, ? any one); may be given several times
    #[arg(long, value_name = "GLOB")]
    tensors: Vec<Glob>,
    /// Count the changes instead of listing tensors
    #[arg(long)]
    summary: bool,
    /// Compare types, shapes and bytes only, not what the bytes decode to
    #[arg(long)]
    no_values: bool,
    /// End with 1 if the models are not the same
    #[arg(long)]
    exit_code: bool,
    /// Threads; 0 is one per core
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let sources = [OpenSource::open(&args.a)?, OpenSource::open(&args.b)?];
    let [a, b] = &sources;
    let sides = Side::pair((&args.a, a), (&args.b, b))?;
    let difference = {
        let bar = Mutex::new(Progress::new(ui, "comparing"));
        let select = |name: &str| glob::any(&args.tensors, name);
        let options = Options { select: &select, values: !args.no_values, threads: args.threads };
        compare(&sides[0], &sides[1], &options, &|done, total| {
            // A thread that finds the bar in use need not wait: the next one will show more.
            if let Ok(bar) = bar.try_lock() {
                bar.set(done, total);
            }
        })?
    };
    if difference.tensors.is_empty() && !args.tensors.is_empty() {
        return Err(Failure::Usage(
            "no tensor of either model has such a name; `p64 inspect --tensors` lists them".into(),
        ));
    }
    if ui.json() {
        ui.object(&diff::object(&args.a, &args.b, &difference))?;
    } else if !ui.quiet() {
        ui.text(&diff::render(&args.a, &args.b, &difference, args.summary, !args.tensors.is_empty()))?;
    }
    Ok(u8::from(args.exit_code && !difference.is_same_model()))
}
