//! The lines of a conversation: from a terminal with editing and history, or from stdin as they come.

use crate::failure::{Failure, Result};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Behavior, Config, Context, Editor, Helper};
use std::cell::Cell;
use std::io::{self, BufRead, IsTerminal};

/// Most bytes of a line from a pipe; a device would give them without end.
const MAX_LINE: u64 = 1 << 20;

/// Where lines come from.
pub enum Lines {
    /// A person.
    Terminal(Box<Editor<Watch, DefaultHistory>>),
    /// A program.
    Pipe,
}

impl Lines {
    /// Stdin, whatever it is.
    pub fn open() -> Result<Self> {
        if !io::stdin().is_terminal() {
            return Ok(Self::Pipe);
        }
        // The terminal itself, so that stdout stays free for results.
        let config = Config::builder().behavior(Behavior::PreferTerm).auto_add_history(true).build();
        let mut editor = Editor::with_config(config).map_err(|error| unreadable(&error))?;
        editor.set_helper(Some(Watch::default()));
        Ok(Self::Terminal(Box::new(editor)))
    }

    /// Whether a person types them.
    pub const fn interactive(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// The next line; `None` when there are no more: the end of stdin, Ctrl-D, or Ctrl-C where nothing was typed.
    pub fn next(&mut self) -> Result<Option<String>> {
        match self {
            Self::Terminal(editor) => loop {
                match editor.readline("> ") {
                    Ok(line) => return Ok(Some(line)),
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(ReadlineError::Interrupted) if editor.helper().is_none_or(|watch| watch.empty.get()) => {
                        return Ok(None);
                    }
                    // Only the line is given up.
                    Err(ReadlineError::Interrupted) => {}
                    Err(error) => return Err(unreadable(&error)),
                }
            },
            Self::Pipe => piped(),
        }
    }
}

fn piped() -> Result<Option<String>> {
    use io::Read;
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(MAX_LINE).read_until(b'\n', &mut bytes);
    if read.map_err(|error| p64_std::Error::io("stdin".as_ref(), "read it", error))? == 0 {
        return Ok(None);
    }
    let ended = bytes.pop_if(|byte| *byte == b'\n').is_some();
    if !ended && bytes.len() as u64 == MAX_LINE {
        return Err(Failure::Usage(format!("stdin: a line of more than {MAX_LINE} bytes")));
    }
    bytes.pop_if(|byte| *byte == b'\r');
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn unreadable(error: &ReadlineError) -> Failure {
    Failure::Usage(format!("cannot read from the terminal: {error}"))
}

/// Sees each state of the line, because the editor does not say what was typed before Ctrl-C.
pub struct Watch {
    empty: Cell<bool>,
}

impl Default for Watch {
    fn default() -> Self {
        Self { empty: Cell::new(true) }
    }
}

impl Hinter for Watch {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.empty.set(line.is_empty());
        None
    }
}

impl Completer for Watch {
    type Candidate = String;
}

impl Highlighter for Watch {}
impl Validator for Watch {}
impl Helper for Watch {}
