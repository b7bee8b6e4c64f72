//! Text that a command works on: an argument, stdin, or a file.

use crate::failure::Result;
use p64_std::Error;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of `argument` (`-` is stdin) or of `file`; `None` when neither is given.
pub fn read_text(argument: Option<&str>, file: Option<&Path>) -> Result<Option<Vec<u8>>> {
    match (argument, file) {
        (Some("-"), _) => stdin().map(Some),
        (Some(text), _) => Ok(Some(text.as_bytes().to_vec())),
        (None, Some(path)) if path == Path::new("-") => stdin().map(Some),
        (None, Some(path)) => {
            let bytes = std::fs::read(path).map_err(|error| Error::io(path, "read it", error))?;
            Ok(Some(bytes))
        }
        (None, None) => Ok(None),
    }
}

fn stdin() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Error::io(Path::new("stdin"), "read it", error))?;
    Ok(bytes)
}
