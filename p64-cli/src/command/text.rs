//! Text that a command works on: an argument, stdin, or a file.

use crate::failure::{Failure, Result};
use p64_std::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of a text; a device would give them without end.
const MAX_TEXT: u64 = 64 << 20;

/// The bytes of `argument` (`-` is stdin) or of `file`; `None` when neither is given.
pub fn read_text(argument: Option<&str>, file: Option<&Path>) -> Result<Option<Vec<u8>>> {
    match (argument, file) {
        (Some("-"), _) => stdin().map(Some),
        (Some(text), _) => Ok(Some(text.as_bytes().to_vec())),
        (None, Some(path)) if path == Path::new("-") => stdin().map(Some),
        (None, Some(path)) => {
            let file = File::open(path).map_err(|error| Error::io(path, "open it", error))?;
            read_all(file, path).map(Some)
        }
        (None, None) => Ok(None),
    }
}

fn stdin() -> Result<Vec<u8>> {
    read_all(io::stdin().lock(), Path::new("stdin"))
}

fn read_all(from: impl Read, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = from.take(MAX_TEXT + 1).read_to_end(&mut bytes);
    read.map_err(|error| Error::io(path, "read it", error))?;
    if bytes.len() as u64 > MAX_TEXT {
        return Err(Failure::Usage(format!("{}: a text of more than {MAX_TEXT} bytes", path.display())));
    }
    Ok(bytes)
}
