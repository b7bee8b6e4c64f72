//! `p64 run`: a prompt goes in, text comes out.

use crate::command::session::{self, ComputeArgs};
use crate::command::text::read_text;
use crate::failure::{Failure, Result};
use crate::output::{Ui, number};
use p64_std::chat::{ChatTemplate, Message};
use p64_std::model::LoadedModel;
use p64_std::sample::{Sampler, SamplerParams};
use p64_std::session::{GenerateOptions, Generation, Session, SessionOptions, StopReason};
use serde_json::json;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  p64 run model.p64 -p \"Once upon a time\"
  p64 run model.gguf -p \"The capital of France is\" -n 16 --temp 0
  p64 run model.p64 --chat -p \"Name three rivers.\" --system \"Answer briefly.\"
  p64 run model.p64 -f prompt.txt --json | jq -r .text

The text goes to stdout as it is made, statistics to stderr. BOS is added as the model asks.";

/// Let a model write: continue a prompt, or answer in its own chat form
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The model, .p64 or GGUF
    model: PathBuf,
    /// The prompt, or - for stdin
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, required_unless_present = "file")]
    prompt: Option<String>,
    /// Read the prompt from a file
    #[arg(short, long, value_name = "PATH", conflicts_with = "prompt")]
    file: Option<PathBuf>,
    /// Most tokens to generate
    #[arg(short = 'n', long, value_name = "N", default_value_t = 256)]
    tokens: usize,
    /// Positions of prompt and text together; by default the model's own, at most 4096
    #[arg(short, long, value_name = "POSITIONS")]
    context: Option<usize>,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Most prompt tokens computed at once
    #[arg(long, value_name = "N", default_value_t = SessionOptions::default().batch)]
    batch: usize,
    /// The prompt is a user's message: bring it into the form of the model's chat template
    #[arg(long)]
    chat: bool,
    /// The system message of the chat
    #[arg(long, value_name = "TEXT", requires = "chat")]
    system: Option<String>,
    /// Read the names of special tokens in the prompt as those tokens
    #[arg(long)]
    special: bool,
    /// Print token ids instead of text
    #[arg(long)]
    ids: bool,
    /// Print the text when it is complete, not as it is made
    #[arg(long)]
    no_stream: bool,
    /// End at this text, which is not printed; may be given several times
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// Go on past the model's end-of-text token
    #[arg(long)]
    ignore_eos: bool,
    #[command(flatten, next_help_heading = "Sampling")]
    sampling: Sampling,
}

/// How tokens are chosen.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Sampling {
    /// Temperature; 0 always takes the likeliest token
    #[arg(long, value_name = "T", default_value_t = SamplerParams::default().temperature)]
    temp: f32,
    /// Choose among the K likeliest; 0 for all
    #[arg(long, value_name = "K", default_value_t = SamplerParams::default().top_k)]
    top_k: usize,
    /// Choose among the fewest that sum to this probability; 1 for all
    #[arg(long, value_name = "P", default_value_t = SamplerParams::default().top_p)]
    top_p: f32,
    /// Leave out what is less likely than this share of the likeliest; 0 for nothing
    #[arg(long, value_name = "P", default_value_t = SamplerParams::default().min_p)]
    min_p: f32,
    /// Make recent tokens less likely; 1 for not at all
    #[arg(long, value_name = "X", default_value_t = SamplerParams::default().repeat_penalty)]
    repeat_penalty: f32,
    /// How many tokens count as recent
    #[arg(long, value_name = "N", default_value_t = SamplerParams::default().repeat_last_n)]
    repeat_last_n: usize,
    /// Seed of the choice: the same seed gives the same text
    #[arg(long, value_name = "N", default_value_t = SamplerParams::default().seed)]
    seed: u64,
}

impl Sampling {
    fn sampler(self) -> Result<Sampler> {
        let Self { temp, top_k, top_p, min_p, repeat_penalty, repeat_last_n, seed } = self;
        let params = SamplerParams { temperature: temp, top_k, top_p, min_p, repeat_penalty, repeat_last_n, seed };
        Sampler::new(params).map_err(|error| Failure::Usage(error.to_string()))
    }
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let mut sampler = args.sampling.sampler()?;
    let prompt = read_text(args.prompt.as_deref(), args.file.as_deref())?.unwrap_or_default();
    let (model, load_time) = session::open(&args.model, ui)?;
    let ids = encode(args, &prompt, &model)?;
    let options = SessionOptions {
        context: args.context,
        threads: args.compute.threads,
        activations: args.compute.activations(),
        kv: args.compute.kv,
        batch: args.batch,
    };
    let mut session = Session::new(&model, &options)?;
    let trained = model.config().context();
    if session.context() > trained {
        ui.warn(format_args!("the model was made for {trained} positions; text past them may make no sense"));
    }
    let stop =
        GenerateOptions { max_tokens: args.tokens, stop: args.stop.clone(), ignore_eos: args.ignore_eos, shift: None };

    let stream = !ui.json() && !args.ids && !args.no_stream;
    let mut written: io::Result<()> = Ok(());
    let generation = session.generate(&ids, &stop, &mut sampler, &mut |text| {
        if stream {
            written = ui.text(text);
        }
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written?;
    if ui.json() {
        ui.object(&object(args, &model, &ids, &generation, load_time))?;
        return Ok(0);
    }
    if args.ids {
        let ids: Vec<String> = generation.ids.iter().map(ToString::to_string).collect();
        ui.line(ids.join(" "))?;
    } else if args.no_stream {
        ui.line(&generation.text)?;
    } else {
        ui.line("")?;
    }
    statistics(&generation, ui);
    Ok(0)
}

fn encode(args: &Args, prompt: &[u8], model: &LoadedModel) -> Result<Vec<u32>> {
    let tokenizer = model.tokenizer();
    if !args.chat {
        return Ok(tokenizer.encode(prompt, true, args.special));
    }
    let prompt = String::from_utf8_lossy(prompt);
    let mut messages: Vec<Message> = args.system.iter().map(|text| Message::new("system", text)).collect();
    messages.push(Message::new("user", &prompt));
    let encoded = ChatTemplate::of(tokenizer).and_then(|template| template.encode(&messages, tokenizer));
    encoded.map_err(|error| Failure::Input {
        path: args.model.clone(),
        reason: format!("{error}; leave --chat out to continue the prompt as plain text"),
    })
}

fn statistics(generation: &Generation, ui: &Ui) {
    let stats = &generation.stats;
    let line = |name: &str, tokens: usize, time: Duration, rate: f64, end: &str| {
        let time = number::duration(time);
        ui.note(format_args!("{name:<10} {tokens:>5} tokens in {time:>9}, {rate:>8.1} tokens/s{end}"));
    };
    ui.note("");
    line("prompt", stats.prompt_tokens, stats.prompt_time, stats.prompt_rate(), "");
    let end = format!(", {}", ended(generation.reason));
    line("generated", stats.generated_tokens, stats.generate_time, stats.generate_rate(), &end);
}

fn ended(reason: StopReason) -> &'static str {
    match reason {
        StopReason::EndOfGeneration => "ended by the model",
        StopReason::StopText => "ended at a stop text",
        StopReason::Length => "ended at -n",
        StopReason::ContextFull => "ended: the context is full (-c)",
        other => other.name(),
    }
}

fn object(
    args: &Args,
    model: &LoadedModel,
    prompt_ids: &[u32],
    generation: &Generation,
    load_time: Duration,
) -> serde_json::Value {
    let stats = &generation.stats;
    json!({
        "model": args.model.display().to_string(),
        "format": model.format().to_string().to_ascii_lowercase(),
        "description": model.description(),
        "prompt_ids": prompt_ids,
        "ids": generation.ids,
        "text": generation.text,
        "reason": generation.reason.name(),
        "stats": {
            "load_seconds": load_time.as_secs_f64(),
            "prompt_tokens": stats.prompt_tokens,
            "prompt_seconds": stats.prompt_time.as_secs_f64(),
            "prompt_tok_s": stats.prompt_rate(),
            "generated_tokens": stats.generated_tokens,
            "generate_seconds": stats.generate_time.as_secs_f64(),
            "generate_tok_s": stats.generate_rate(),
        },
    })
}
