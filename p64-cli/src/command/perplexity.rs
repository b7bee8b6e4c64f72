//! `p64 perplexity`: how well a model predicts a text, as llama-perplexity computes it.

use crate::command::session::{self, ComputeArgs};
use crate::command::text::read_text;
use crate::failure::{Failure, Result};
use crate::output::Ui;
use crate::output::number;
use crate::output::progress::Progress;
use p64_std::model::LoadedModel;
use p64_std::perplexity::{self, Estimate};
use p64_std::session::{Session, SessionOptions};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  p64 perplexity model.p64 -f text.txt
  p64 perplexity model.gguf -f text.txt -c 256 --chunks 20
  p64 perplexity --json model.p64 -f text.txt --activations f32 | jq .perplexity

The text is cut into windows. Of each, the first half is read and the tokens of the second are
predicted. The perplexity is e to the mean negative log probability of all of them: lower is
better, and only figures of the same text and window can be compared. It is what llama.cpp's
llama-perplexity gives without options.";

/// Measure how well a model predicts a text
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The model, .p64 or GGUF
    model: PathBuf,
    /// The text, or - for stdin; of at least two windows
    #[arg(short, long, value_name = "PATH")]
    file: PathBuf,
    /// Tokens of a window
    #[arg(short, long, value_name = "TOKENS", default_value_t = perplexity::DEFAULT_WINDOW)]
    context: usize,
    /// Most windows to evaluate; by default all that the text fills
    #[arg(long, value_name = "N")]
    chunks: Option<usize>,
    #[command(flatten)]
    compute: ComputeArgs,
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    if args.chunks == Some(0) {
        return Err(Failure::Usage("there is nothing to measure: --chunks must be at least 1".to_owned()));
    }
    let text = read_text(None, Some(&args.file))?.unwrap_or_default();
    let (model, _) = session::open(&args.model, ui)?;
    let tokens = perplexity::tokens(model.tokenizer(), &text)?;
    let options = SessionOptions {
        context: Some(args.context),
        threads: args.compute.threads,
        activations: args.compute.activations(),
        kv: args.compute.kv,
        ..SessionOptions::default()
    };
    let mut session = Session::new(&model, &options)?;
    let trained = model.config().context();
    if args.context > trained {
        ui.warn(format_args!("the model was made for {trained} positions; windows are longer"));
    }
    let began = Instant::now();
    let mut running = Vec::new();
    let progress = Progress::of(ui, "evaluating", |windows| number::plural(windows, "window"));
    let found = perplexity::evaluate(&mut session, &tokens, args.context, args.chunks, &mut |estimate| {
        running.push(estimate.perplexity());
        progress.set(estimate.windows as u64, estimate.of as u64);
        ControlFlow::Continue(())
    })?;
    drop(progress);
    let time = began.elapsed();
    if ui.json() {
        ui.object(&object(args, &model, tokens.len(), &found, &running, time))?;
    } else {
        let list = running.iter().zip(1..).map(|(value, window)| format!("[{window}] {value:.4}")).collect::<Vec<_>>();
        ui.note(list.join("  "));
        ui.line(format_args!("perplexity {:.4} ± {:.4}", found.perplexity(), found.error()))?;
        let passed = found.windows * args.context;
        let rate = number::per_second(passed as u64, time);
        let (windows, predicted) =
            (number::plural(found.windows as u64, "window"), number::grouped(found.predicted as u64));
        let (of, context, time) = (number::grouped(tokens.len() as u64), args.context, number::duration(time));
        ui.note(format_args!(
            "{windows} of {context} tokens, {predicted} of a text of {of} predicted, in {time}, {rate:.1} tokens/s"
        ));
    }
    Ok(0)
}

fn object(
    args: &Args,
    model: &LoadedModel,
    tokens: usize,
    found: &Estimate,
    running: &[f64],
    time: Duration,
) -> serde_json::Value {
    json!({
        "model": args.model.display().to_string(),
        "format": model.format().to_string().to_ascii_lowercase(),
        "description": model.description(),
        "perplexity": found.perplexity(),
        "error": found.error(),
        "mean_nll": found.mean(),
        "context": args.context,
        "windows": found.windows,
        "text_tokens": tokens,
        "predicted_tokens": found.predicted,
        "running": running,
        "seconds": time.as_secs_f64(),
    })
}
