//! `p64 completions`: the script that completes arguments in a shell.

use crate::args::Cli;
use crate::failure::Result;
use crate::output::Ui;
use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  p64 completions bash > ~/.local/share/bash-completion/completions/p64
  p64 completions zsh > ~/.zfunc/_p64
  p64 completions fish > ~/.config/fish/completions/p64.fish";

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "p64", &mut script);
    let script = String::from_utf8_lossy(&script);
    if ui.json() {
        ui.object(&json!({ "shell": args.shell.to_string(), "script": script }))?;
    } else {
        ui.text(&script)?;
    }
    Ok(0)
}
