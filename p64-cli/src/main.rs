//! The `p64` command: arguments, one call into the libraries, output (`docs/cli.md`).
//!
//! Results go to stdout, everything about the run (progress, warnings, statistics, errors) to stderr. Exit codes: 0 done,
//! 1 the input is at fault, 2 the request or the system is.
#![forbid(unsafe_code)]

mod args;
mod command;
mod diff;
mod failure;
mod glob;
mod html;
mod input;
mod inspect;
mod output;
mod stats;

use args::Cli;
use clap::Parser;
use failure::Failure;
use output::Ui;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let ui = Ui::new(&cli.global);
    match command::run(cli.command, &ui) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => ExitCode::from(failure.report(&ui)),
    }
}

/// Help, the version, or a request that does not parse; then nothing is known of `--json` but its presence.
fn refuse(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
        let ui = Ui::new(&args::Global { json: true, quiet: true });
        Failure::Usage(one_line(&error.to_string())).report_object(&ui);
    }
    // The stream is gone when this fails, so there is nobody to tell.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}

/// What clap says, up to its first empty line: behind that stand usage and tips, before it the names of what is missing.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let line = lines.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_what_is_missing() {
        let error = Cli::try_parse_from(["p64", "run", "--json"]).expect_err("no model, no prompt");
        assert_eq!(
            one_line(&error.to_string()),
            "the following required arguments were not provided: --prompt <TEXT> <MODEL>"
        );
    }
}
