//! A file that appears whole or not at all.
//!
//! The bytes go into a file without a name in the folder of the target (`O_TMPFILE`), which vanishes with the process
//! however it ends. When they are complete they are flushed to the device, the file gets a name, and the folder is
//! flushed. A target that exists is replaced by renaming, so that at every moment its path leads to the old file or to
//! the new one; for that it needs a hidden name for an instant, under which a SIGKILL just then leaves it complete. Where
//! the file system knows no nameless files, a hidden file stands in from the beginning, which is removed on every error but
//! may be left behind by SIGKILL.

use crate::error::{Error, Result};
use crate::files;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file under construction. Dropping it without [`AtomicFile::commit`] leaves no trace.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    folder: PathBuf,
    temporary: Temporary,
}

#[derive(Debug)]
enum Temporary {
    #[cfg(target_os = "linux")]
    Nameless(File),
    Named(NamedTempFile),
}

impl AtomicFile {
    /// Begins a file that is to stand at `target`. A symbolic link is followed, so that what it points to is replaced.
    ///
    /// # Errors
    /// [`Error::NotAFile`] when a folder or a device stands there, and what the system answers about the folder.
    pub fn create(target: &Path) -> Result<Self> {
        let target = match std::fs::metadata(target) {
            Ok(about) => {
                if let Some(what) = files::not_a_file(about.file_type()) {
                    return Err(Error::NotAFile { path: target.to_owned(), what });
                }
                target.canonicalize().map_err(|error| Error::io(target, "resolve it", error))?
            }
            Err(_) => target.to_owned(),
        };
        if target.file_name().is_none() {
            return Err(Error::NotAFile { path: target, what: "a folder" });
        }
        let folder = match target.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        match std::fs::metadata(&folder) {
            Ok(about) if about.is_dir() => {}
            Ok(_) => return Err(Error::io(&folder, "write into it", io::ErrorKind::NotADirectory.into())),
            Err(error) => return Err(Error::io(&folder, "write into this folder", error)),
        }
        let temporary = open_temporary(&folder).map_err(|error| Error::io(&target, "create it", error))?;
        Ok(Self { target, folder, temporary })
    }

    /// The file to write to, empty and at its beginning.
    pub fn file(&mut self) -> &mut File {
        match &mut self.temporary {
            #[cfg(target_os = "linux")]
            Temporary::Nameless(file) => file,
            Temporary::Named(file) => file.as_file_mut(),
        }
    }

    /// Where the file will stand.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Flushes the file to the device and puts it in its place.
    ///
    /// # Errors
    /// What the system answers; what stood at the target is then unchanged.
    pub fn commit(mut self) -> Result<()> {
        let target = self.target.clone();
        let failed = |error| Error::io(&target, "write it", error);
        self.file().sync_all().map_err(failed)?;
        match self.temporary {
            #[cfg(target_os = "linux")]
            Temporary::Nameless(file) => linux::link(&file, &self.folder, &self.target).map_err(failed)?,
            Temporary::Named(file) => {
                file.persist(&self.target).map_err(|error| failed(error.error))?;
            }
        }
        sync_folder(&self.folder).map_err(failed)
    }
}

fn open_temporary(folder: &Path) -> io::Result<Temporary> {
    #[cfg(target_os = "linux")]
    if let Some(file) = linux::open_nameless(folder) {
        return Ok(Temporary::Nameless(file));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".p64-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder).map(Temporary::Named)
}

/// As [`sync_folder`] of the folder that `path` is in.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if folder != Path::new("") => sync_folder(folder),
        _ => sync_folder(Path::new(".")),
    }
}

/// Makes the new name itself durable, where folders can be flushed.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            // Some file systems have nothing to flush for a folder and say so.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            other => other,
        }
    } else {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::{Path, PathBuf};

    /// Where the kernel shows an open file as a path that can be linked.
    fn path_of(file: &File) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }

    /// `None` where the file system or the kernel has no nameless files, or no way to name one.
    pub fn open_nameless(folder: &Path) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(openat(CWD, folder, flags, Mode::from_raw_mode(0o666)).ok()?);
        path_of(&file).exists().then_some(file)
    }

    pub fn link(file: &File, folder: &Path, target: &Path) -> io::Result<()> {
        let from = path_of(file);
        match linkat(CWD, &from, CWD, target, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        // Linking never replaces: take a free hidden name, then rename over the target. The file is complete by now.
        for attempt in 0u32..1000 {
            let hidden = folder.join(format!(".p64-{}-{attempt}.tmp", std::process::id()));
            match linkat(CWD, &from, CWD, &hidden, AtFlags::SYMLINK_FOLLOW) {
                Ok(()) => {
                    return std::fs::rename(&hidden, target).inspect_err(|_| {
                        // The rename's error is the one to report.
                        let _ = std::fs::remove_file(&hidden);
                    });
                }
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_there_before_the_commit_and_all_of_it_after() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("out");
        for content in ["first", "second, longer"] {
            let before = std::fs::read(&target).ok();
            let mut file = AtomicFile::create(&target).expect("created");
            file.file().write_all(content.as_bytes()).expect("written");
            assert_eq!(std::fs::read(&target).ok(), before);
            file.commit().expect("committed");
            assert_eq!(std::fs::read(&target).expect("there"), content.as_bytes());
            assert_eq!(entries(folder.path()), ["out"]);
        }
    }

    #[test]
    fn dropped_without_a_trace() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = AtomicFile::create(&folder.path().join("out")).expect("created");
        file.file().write_all(b"half").expect("written");
        drop(file);
        assert!(entries(folder.path()).is_empty());
    }

    /// The way of file systems without nameless files.
    #[test]
    fn the_named_fallback_leaves_no_trace_either() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("out");
        for commit in [false, true] {
            let mut builder = tempfile::Builder::new();
            let named = builder.prefix(".p64-").tempfile_in(folder.path()).expect("created");
            let mut file = AtomicFile {
                target: target.clone(),
                folder: folder.path().to_owned(),
                temporary: Temporary::Named(named),
            };
            file.file().write_all(b"x").expect("written");
            if commit {
                file.commit().expect("committed");
                assert_eq!(entries(folder.path()), ["out"]);
            } else {
                drop(file);
                assert!(entries(folder.path()).is_empty());
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_its_target_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, "old").expect("written");
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        let mut file = AtomicFile::create(&link).expect("created");
        file.file().write_all(b"new").expect("written");
        file.commit().expect("committed");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&real).expect("there"), b"new");
    }

    #[test]
    fn places_that_cannot_hold_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = AtomicFile::create(folder.path()).expect_err("a folder");
        assert!(matches!(error, Error::NotAFile { what: "a folder", .. }), "{error}");
        let missing = folder.path().join("missing");
        let error = AtomicFile::create(&missing.join("out")).expect_err("no parent");
        let text = error.to_string();
        assert!(text.contains("missing: cannot write into this folder"), "{text}");
        std::fs::write(&missing, "").expect("written");
        let error = AtomicFile::create(&missing.join("out")).expect_err("the parent is a file");
        assert_eq!(error.exit_code(), 2);
        #[cfg(unix)]
        {
            let error = AtomicFile::create(Path::new("/dev/null")).expect_err("a device");
            assert!(matches!(error, Error::NotAFile { what: "a device or pipe", .. }), "{error}");
        }
    }
}
