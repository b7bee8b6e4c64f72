//! `p64 run`: a prompt goes in, text comes out.

use crate::command::session::{self, ComputeArgs};
use crate::command::text::read_text;
use crate::failure::{Failure, Result};
use crate::output::Ui;
use p64_std::chat::{ChatError, ChatTemplate, Message};
use p64_std::model::LoadedModel;
use p64_std::sample::Sampler;
use p64_std::session::{GenerateOptions, Generation, Session, SessionOptions};
use serde_json::json;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

mod conversation;
mod interrupt;
mod lines;
mod report;
mod sampling;

use sampling::Sampling;

/// Most tokens of one text unless told otherwise. A conversation's answers end where the context does.
const DEFAULT_TOKENS: usize = 256;

const EXAMPLES: &str = "\
Examples:
  p64 run model.p64 -p \"Once upon a time\"
  p64 run model.gguf -p \"The capital of France is\" -n 16 --temp 0
  p64 run model.p64 --chat -p \"Name three rivers.\" --system \"Answer briefly.\"
  p64 run model.p64 --chat                       a conversation, /help tells how
  p64 run model.p64 -f prompt.txt --json | jq -r .text

The text goes to stdout as it is made, statistics to stderr. BOS is added as the model asks.
With --chat and no prompt each line of stdin is a message; Ctrl-C stops an answer.";

/// Let a model write: continue a prompt, answer in its own chat form, or hold a conversation
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The model, .p64 or GGUF
    model: PathBuf,
    /// The prompt, or - for stdin
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, required_unless_present_any = ["file", "chat"])]
    prompt: Option<String>,
    /// Read the prompt from a file
    #[arg(short, long, value_name = "PATH", conflicts_with = "prompt")]
    file: Option<PathBuf>,
    /// Most tokens to generate; 256 by default, in a conversation what the context has room for
    #[arg(short = 'n', long, value_name = "N")]
    tokens: Option<usize>,
    /// Positions of prompt and text together; by default the model's own, at most 4096
    #[arg(short, long, value_name = "POSITIONS")]
    context: Option<usize>,
    /// When the context is full, forget the older half of what --keep does not keep, and go on
    #[arg(long)]
    context_shift: bool,
    /// Tokens at the beginning that a shift keeps besides BOS; in a chat by default the system message
    #[arg(long, value_name = "N", requires = "context_shift")]
    keep: Option<usize>,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Most prompt tokens computed at once
    #[arg(long, value_name = "N", default_value_t = SessionOptions::default().batch)]
    batch: usize,
    /// The prompt is a user's message: bring it into the form of the model's chat template. Without a prompt, talk
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

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let mut sampler = args.sampling.sampler()?;
    let prompt = read_text(args.prompt.as_deref(), args.file.as_deref())?;
    let (model, load_time) = session::open(&args.model, ui)?;
    args.sampling.check(&model)?;
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
    let Some(prompt) = prompt else { return conversation::hold(args, session, sampler, ui) };
    let ids = encode(args, &prompt, &model)?;
    let options = args.generate_options(&model, DEFAULT_TOKENS, 0);
    let generation = generate(args, &mut session, &ids, &options, &mut sampler, ui)?;
    if ui.json() {
        ui.object(&object(args, &model, &ids, &generation, load_time))?;
    } else {
        finish(args, &generation, ui)?;
        report::statistics(&generation, ui);
    }
    Ok(0)
}

impl Args {
    /// What ends a generation. A shift keeps BOS and what `--keep` says, or else `keep` tokens.
    fn generate_options(&self, model: &LoadedModel, tokens: usize, keep: usize) -> GenerateOptions {
        let bos = usize::from(model.tokenizer().vocabulary().add_bos());
        let keep = self.keep.map_or(keep.max(bos), |keep| keep.saturating_add(bos));
        GenerateOptions {
            max_tokens: self.tokens.unwrap_or(tokens),
            stop: self.stop.clone(),
            ignore_eos: self.ignore_eos,
            shift: self.context_shift.then_some(keep),
        }
    }

    /// A template that cannot be used, with what to do instead.
    fn chat_failure(&self, error: &ChatError) -> Failure {
        let reason = format!("{error}; leave --chat out to continue a prompt (-p) as plain text");
        Failure::Input { path: self.model.clone(), reason }
    }
}

/// Generates, and shows the text as it is made where that is wanted.
fn generate(
    args: &Args,
    session: &mut Session<&LoadedModel>,
    prompt: &[u32],
    options: &GenerateOptions,
    sampler: &mut Sampler,
    ui: &Ui,
) -> Result<Generation> {
    let stream = !ui.json() && !args.ids && !args.no_stream;
    let mut written: io::Result<()> = Ok(());
    let generation = session.generate(prompt, options, sampler, &mut |text| {
        if stream {
            written = ui.text(text);
        }
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written?;
    Ok(generation)
}

/// Shows what was not shown while it was made, and ends the line.
fn finish(args: &Args, generation: &Generation, ui: &Ui) -> Result<()> {
    if args.ids {
        let ids: Vec<String> = generation.ids.iter().map(ToString::to_string).collect();
        ui.line(ids.join(" "))?;
    } else {
        ui.line(if args.no_stream { &generation.text } else { "" })?;
    }
    Ok(())
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
    encoded.map_err(|error| args.chat_failure(&error))
}

fn object(
    args: &Args,
    model: &LoadedModel,
    prompt_ids: &[u32],
    generation: &Generation,
    load_time: Duration,
) -> serde_json::Value {
    let mut stats = report::object(&generation.stats);
    if let Some(stats) = stats.as_object_mut() {
        stats.insert("load_seconds".to_owned(), load_time.as_secs_f64().into());
    }
    json!({
        "model": args.model.display().to_string(),
        "format": model.format().to_string().to_ascii_lowercase(),
        "description": model.description(),
        "prompt_ids": prompt_ids,
        "ids": generation.ids,
        "text": generation.text,
        "reason": generation.reason.name(),
        "stats": stats,
    })
}
