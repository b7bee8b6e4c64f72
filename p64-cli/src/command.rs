//! The commands, one file each: arguments, one call, output.

pub mod bench;
pub mod completions;
pub mod convert;
pub mod demo;
pub mod diff;
pub mod edit;
pub mod export;
#[cfg(feature = "remote")]
pub mod fetch;
pub mod inspect;
pub mod merge;
pub mod perplexity;
pub mod run;
mod session;
pub mod split;
pub mod stats;
mod text;
pub mod tokenize;
pub mod verify;

use crate::args::Command;
use crate::failure::Result;
use crate::output::Ui;

/// Runs a command; the number is its exit code.
pub fn run(command: Command, ui: &Ui) -> Result<u8> {
    match command {
        Command::Convert(args) => convert::run(&args, ui),
        Command::Verify(args) => verify::run(&args, ui),
        Command::Inspect(args) => inspect::run(&args, ui),
        Command::Export(args) => export::run(&args, ui),
        Command::Split(args) => split::run(&args, ui),
        Command::Merge(args) => merge::run(&args, ui),
        Command::Diff(args) => diff::run(&args, ui),
        Command::Stats(args) => stats::run(&args, ui),
        #[cfg(feature = "remote")]
        Command::Fetch(args) => fetch::run(&args, ui),
        Command::Edit(args) => edit::run(&args, ui),
        Command::Tokenize(args) => tokenize::run(&args, ui),
        Command::Run(args) => run::run(&args, ui),
        Command::Bench(args) => bench::run(&args, ui),
        Command::Perplexity(args) => perplexity::run(&args, ui),
        Command::Demo(args) => demo::run(&args, ui),
        Command::Completions(args) => completions::run(&args, ui),
    }
}
