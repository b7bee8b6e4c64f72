//! Split sets (spec §13.4): one model in several files, each a complete container, and the one container again.
//!
//! ```text
//! Contents    what the whole container holds, but the payloads: of a container, of a set, or of a conversion
//! Cut         where the model is cut: a number of layers to a file, or a size that no file passes
//! SetPlan     every offset of every file, and of the whole container, which gives the set its identity
//! write       all files, complete but not yet under their names; then all of them appear
//! merge       the files of a set -> the container that was split, byte for byte
//! ```

mod contents;
mod cut;
pub(crate) mod keys;
mod maker;
mod merge;
mod plan;
mod size;

pub use contents::Contents;
pub use cut::Cut;
pub use keys::MAX_FILES;
pub use merge::{MergeReport, merge};
pub use plan::{Failure, SetFiles, SetPlan};
pub use size::parse_size;

use crate::convert::{Phase, Progress};
use crate::error::{Error, Result};
use crate::files;
use crate::map::{MapOptions, MappedSet};
use crate::write::CHUNK;
use p64_core::validate::Integrity;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a split wrote.
#[derive(Clone, Debug)]
pub struct SplitReport {
    /// The files, in the order of the set.
    pub files: Vec<SplitFile>,
    /// Tensors of the model.
    pub tensors: u64,
    /// The set's identity: 64 hexadecimal digits.
    pub identity: String,
    /// What a person should know, a sentence each.
    pub notes: Vec<String>,
    /// Wall-clock time.
    pub duration: Duration,
}

/// One file of a new set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SplitFile {
    /// Where it stands.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// Tensors of the model in it.
    pub tensors: u64,
    /// First and last layer that it holds tensors of, `None` for a file of globals alone.
    pub layers: Option<(u32, u32)>,
}

/// Splits a container; given a file of a set, that set anew. `output` is the stem of the new names, which may end in
/// `.p64`, or one of those names.
///
/// # Errors
/// What opening answers; [`Error::Refused`] for a container with tensors that a writer does not write;
/// [`Error::Usage`] for a cut into more than [`MAX_FILES`] files; [`Error::SameFile`]; and what the system answers. None
/// of the new files appears before all are complete.
pub fn split(input: &Path, output: &Path, cut: &Cut, progress: &mut dyn FnMut(Progress)) -> Result<SplitReport> {
    let start = Instant::now();
    // Lazy: every blob is verified when it is taken, right before it is written.
    let options = MapOptions { integrity: Integrity::Lazy, ..MapOptions::default() };
    let (set, _) = MappedSet::open(input, &options)?;
    let contents = Contents::of(&set)?;
    let plan = SetPlan::new(&contents, cut, input)?;
    let mut notes = plan.notes(cut);
    if let [only] = set.parts()
        && only.front() != plan.whole().front()
        && set.identity().is_none()
    {
        let note = "the container is not laid out as this version writes them: merging the set gives the same content, \
                    but not the same bytes";
        notes.push(note.to_owned());
    }
    let tensors: Vec<_> = set.tensors().collect();
    let (mut done, total) = (0u64, contents.payload_len());
    let paths = plan.paths(output)?;
    if let Some(path) = paths.iter().find(|path| is_part(&set, path)) {
        return Err(Error::SameFile { path: path.clone() });
    }
    let files = plan.write(&paths, &mut |index, sink| {
        let Some(tensor) = tensors.get(index) else { return Ok(()) };
        for piece in tensor.tensor()?.bytes().chunks(CHUNK) {
            sink.write_all(piece)?;
            done = done.saturating_add(piece.len() as u64);
            progress(Progress { phase: Phase::Write, done, total });
        }
        Ok(())
    })?;
    let report = plan.finish(files, &paths, None)?;
    Ok(SplitReport { notes, duration: start.elapsed(), ..report })
}

/// Whether a path leads to one of the files of an open set.
fn is_part(set: &MappedSet, path: &Path) -> bool {
    set.parts().iter().any(|part| files::is_same_file(part.path(), path))
}
