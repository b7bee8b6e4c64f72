//! The commands, one file each: arguments, one call, output.

pub mod completions;
pub mod inspect;
pub mod verify;

use crate::args::Command;
use crate::failure::Result;
use crate::output::Ui;

/// Runs a command; the number is its exit code.
pub fn run(command: Command, ui: &Ui) -> Result<u8> {
    match command {
        Command::Verify(args) => verify::run(&args, ui),
        Command::Inspect(args) => inspect::run(&args, ui),
        Command::Completions(args) => completions::run(&args, ui),
    }
}
