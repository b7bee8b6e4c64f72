//! Changes to what a container says of its model: keys, the chat template, names of tensors. The weights stay as they are.
//!
//! ```text
//! request     what is to change: KEY=VALUE, a key to drop, OLD=NEW                  edit/request.rs
//! source      the container, strictly valid, without its weights                    edit/source.rs
//! keys        the new key-value area                                                edit/keys.rs
//! revision    what follows from it: hyperparameters, tokenizer section, provenance,
//!             the plan of the new container                                         edit/revision.rs
//! copy        a new file: blobs copied by the kernel, their checksums carried over   edit/copy.rs
//! in_place    the same file: front and last two blobs, through a journal            edit/in_place.rs
//! ```
//!
//! Whatever is derived from the keys is derived again, and only from what changed: a hyperparameter whose key stays keeps
//! its value, the tokenizer section is rebuilt when a key changes that it is made of. `p64.provenance` gains `p64.edited`, so
//! that nobody takes the result for the source of the conversion. What comes out passes strict validation before it stands
//! under its name; an edit that would make a model that runs one that does not is refused.

mod copy;
mod encoded;
mod in_place;
mod journal;
mod keys;
mod reader;
mod request;
mod revision;
mod source;

pub use journal::{Recovery, journal_path, recover};
pub use keys::KeyChange;
pub use request::Edits;
pub(crate) use revision::edited;
#[cfg(feature = "remote")]
pub(crate) use source::check;

use crate::atomic_file::AtomicFile;
use crate::convert::Progress;
use crate::error::{Error, Result};
use crate::files::{self, Locked};
use p64_core::validate::{Integrity, Policy};
use revision::Revision;
use source::Source;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// What an edit did.
#[derive(Clone, Debug)]
pub struct EditReport {
    /// Keys whose value is another one now, in the order of the area; dropped ones at the end.
    pub keys: Vec<KeyChange>,
    /// Tensors whose name is another one now: old, new.
    pub renamed: Vec<(String, String)>,
    /// Sections that were derived again: "hyperparameters", "tokenizer".
    pub rebuilt: Vec<&'static str>,
    /// Bytes of the container.
    pub bytes: u64,
    /// Bytes that were written, without those that a new file took over from the old one.
    pub written: u64,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// What an interrupted edit of this file had left, and what became of it.
    pub recovered: Recovery,
    /// Wall-clock time.
    pub duration: Duration,
}

impl EditReport {
    /// Whether anything is different from before.
    #[must_use]
    pub const fn is_changed(&self) -> bool {
        !self.keys.is_empty() || !self.renamed.is_empty()
    }

    fn new(revision: &Revision, recovered: Recovery, written: u64, start: Instant) -> Self {
        Self {
            keys: revision.keys.clone(),
            renamed: revision.renamed.clone(),
            rebuilt: revision.rebuilt.clone(),
            bytes: revision.plan.file_len(),
            written,
            warnings: revision.warnings.clone(),
            recovered,
            duration: start.elapsed(),
        }
    }
}

/// When the weights' checksums are verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verify {
    /// Not now: they are carried over, and every reader verifies a tensor before it uses it.
    #[default]
    OnUse,
    /// All of them, in what the edit has made.
    Now,
}

impl Verify {
    const fn integrity(self) -> Integrity {
        match self {
            Self::OnUse => Integrity::Lazy,
            Self::Now => Integrity::Full,
        }
    }
}

/// Writes the edited container to `output`, another file, which appears whole or not at all. The weights go over by
/// `copy_file_range`, so a file system that can share blocks between files shares them.
///
/// # Errors
/// [`Error::SameFile`]; [`Error::Refused`] for a file that the strict policy does not pass, a change that cannot be made or
/// that makes a broken model; [`Error::SourceChanged`]; and what the system answers. What stood at `output` is then unchanged.
pub fn edit_file(
    input: &Path,
    output: &Path,
    edits: &Edits,
    verify: Verify,
    progress: &mut dyn FnMut(Progress),
) -> Result<EditReport> {
    let start = Instant::now();
    if files::is_same_file(input, output) {
        return Err(Error::SameFile { path: input.to_owned() });
    }
    let recovered = recover(input)?;
    let (file, _) = files::open(input)?;
    let file = Locked::shared(file, input)?;
    let stamp = stamp(&file, input)?;
    let source = Source::read(&file, input)?;
    let revision = Revision::new(&source, edits, input)?;
    let mut out = AtomicFile::create(output)?;
    let written = copy::write(&revision, &source, (&file, input), (out.file(), output), progress)?;
    source::check(out.file(), output, Policy::Strict, verify.integrity()).map_err(|error| not_valid(error, input))?;
    if self::stamp(&file, input)? != stamp {
        return Err(Error::SourceChanged { path: input.to_owned() });
    }
    out.commit()?;
    Ok(EditReport::new(&revision, recovered, written, start))
}

/// Edits the file itself: its front, the two blobs of keys at its end and their checksums are written anew, however many
/// bytes of weights lie between. Ended at any moment, it leaves the old container or, after [`recover`], the new one.
///
/// A program that has the file mapped sees it change. On Unix and Windows the readers of this crate hold a shared lock on
/// what they map, and the edit is refused while one does.
///
/// # Errors
/// [`Error::Refused`] as of [`edit_file`], and when the weights would have to move; [`Error::Io`] when another edit runs or
/// a reader has the file open. The file is then unchanged. After any other answer of the system [`recover`] completes the edit.
pub fn edit_in_place(
    path: &Path,
    edits: &Edits,
    verify: Verify,
    progress: &mut dyn FnMut(Progress),
) -> Result<EditReport> {
    let start = Instant::now();
    let path = &path.canonicalize().map_err(|error| Error::io(path, "open it", error))?;
    let recovered = recover(path)?;
    let file = Locked::exclusive(path)?;
    let source = Source::read(&file, path)?;
    let revision = Revision::new(&source, edits, path)?;
    let written = if revision.is_changed() {
        in_place::write(&revision, &source, (&file, path), verify.integrity(), progress)?
    } else {
        0
    };
    Ok(EditReport::new(&revision, recovered, written, start))
}

/// What came of an edit is this crate's own fault when it is not valid, but for weights that went over as they were.
fn not_valid(error: Error, input: &Path) -> Error {
    if let Error::Core { source, .. } = &error
        && source.code == p64_core::Code::TensorChecksum
    {
        return Error::refused(input, format!("the weights are damaged, and an edit does not change that: {source}"));
    }
    Error::refused(input, format!("the edit would make a container that is not valid: {error}"))
}

/// What tells whether a file was written to.
fn stamp(file: &File, path: &Path) -> Result<(u64, Option<std::time::SystemTime>)> {
    let about = files::metadata(file, path)?;
    Ok((about.len(), about.modified().ok()))
}
