//! The grammar of the command line. The arguments of a command stand in its own file.

use crate::command::{
    bench, completions, convert, demo, diff, edit, export, inspect, merge, perplexity, run, split, stats, tokenize,
    verify,
};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  p64 demo                                   see all of it in a few seconds
  p64 convert model.gguf model.p64           make a container
  p64 verify model.p64                       check every byte of it
  p64 run model.p64 -p \"Once upon a time\"    let it write
  p64 export model.p64 model.gguf            get the identical GGUF back

Exit codes: 0 done, 1 the input is at fault, 2 the request or the system is.";

/// Convert, verify, look into and run language models in the P64 container.
#[derive(Debug, Parser)]
#[command(name = "p64", version, styles = STYLES, max_term_width = 120, after_help = EXAMPLES, infer_subcommands = false)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Clone, Copy, Debug, Args)]
pub struct Global {
    /// Print one JSON object on stdout instead of text, also for errors
    #[arg(long, global = true)]
    pub json: bool,
    /// Print results and errors only: no progress, no statistics, no warnings
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// The commands, in the order of a model's life.
#[derive(Debug, Subcommand)]
pub enum Command {
    Convert(convert::Args),
    Verify(verify::Args),
    Inspect(inspect::Args),
    Export(export::Args),
    Split(split::Args),
    Merge(merge::Args),
    Diff(diff::Args),
    Stats(stats::Args),
    #[cfg(feature = "remote")]
    Fetch(crate::command::fetch::Args),
    Edit(edit::Args),
    Tokenize(tokenize::Args),
    Run(run::Args),
    Bench(bench::Args),
    Perplexity(perplexity::Args),
    Demo(demo::Args),
    Completions(completions::Args),
}
