//! What was fetched, at its place in a file that is otherwise a hole.

use crate::error::{Error, Result};
use crate::files;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// The file; it goes with this value.
#[derive(Debug)]
pub(super) struct Local {
    path: PathBuf,
    file: File,
    folder: Arc<TempDir>,
}

impl Local {
    /// A file of `len` bytes without any on the disk, in a folder of its own or in that of another.
    pub fn create(len: u64, label: &Path, beside: Option<&Self>) -> Result<Self> {
        let folder = match beside {
            Some(other) => Arc::clone(&other.folder),
            None => {
                let folder = tempfile::Builder::new().prefix("p64-remote-").tempdir();
                Arc::new(folder.map_err(|error| Error::io(&std::env::temp_dir(), "write into this folder", error))?)
            }
        };
        let path = folder.path().join(super::file_name(label));
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|error| Error::io(&path, "create it", error))?;
        file.set_len(len).map_err(|error| Error::io(&path, "give it the length of the remote file", error))?;
        Ok(Self { path, file, folder })
    }

    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        files::write_at(&self.file, &self.path, at, bytes)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}
