//! What a user sees: text on stdout, notes on stderr, JSON instead of text.

pub mod memory;
pub mod number;
pub mod progress;
pub mod table;

use crate::args::Global;
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

/// The two streams, and how much of them is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    json: bool,
    quiet: bool,
}

impl Ui {
    pub const fn new(global: &Global) -> Self {
        Self { json: global.json, quiet: global.quiet }
    }

    /// Whether stdout carries one object and nothing else.
    pub const fn json(&self) -> bool {
        self.json
    }

    /// Whether only results and errors are wanted.
    pub const fn quiet(&self) -> bool {
        self.quiet
    }

    /// Prints the one object of `--json`.
    pub fn object(&self, object: &impl Serialize) -> io::Result<()> {
        let mut out = BufWriter::new(io::stdout().lock());
        serde_json::to_writer_pretty(&mut out, object)?;
        writeln!(out)?;
        out.flush()
    }

    /// Prints an object on a line of its own, where a command gives several.
    pub fn object_line(&self, object: &impl Serialize) -> io::Result<()> {
        self.line(serde_json::to_string(object)?)
    }

    /// Prints text on stdout, as it is.
    pub fn text(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Prints a line on stdout.
    pub fn line(&self, line: impl Display) -> io::Result<()> {
        self.text(&format!("{line}\n"))
    }

    /// A line on stderr about the run.
    pub fn note(&self, line: impl Display) {
        if !self.quiet {
            eprint_line(&line);
        }
    }

    /// Something the user should know although the command goes on.
    pub fn warn(&self, line: impl Display) {
        self.note(format_args!("warning: {line}"));
    }

    /// The one line of a failure.
    pub fn error(&self, message: &str) {
        let red = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let (on, off) = if red { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        eprint_line(&format_args!("{on}error:{off} {}", printable(message)));
    }
}

/// The message on one line and without control characters, which a path may hold.
fn printable(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    for c in message.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

fn eprint_line(line: &dyn Display) {
    // Nobody is left to tell when stderr is closed; `eprintln!` would panic.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Columns of the terminal on stdout, `None` when it is none: then nothing is shortened.
pub fn columns() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let env = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    env.or_else(|| terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\nb \u{1b}[31m, é"), "a\\nb \\u{1b}[31m, é");
    }
}
