//! One safetensors file, or all files of a sharded model.

use super::error::{Error as FormatError, Problem};
use super::file::SafetensorsFile;
use super::header::TensorInfo;
use super::index::Index;
use super::stored::StoredTensor;
use crate::error::{Error, Result};
use crate::files;
use crate::sniff::Kind;
use std::path::{Path, PathBuf};

/// Name of the index of a sharded model.
pub(crate) const INDEX_NAME: &str = "model.safetensors.index.json";
/// Name of the one file of a model that is not sharded.
pub(crate) const FILE_NAME: &str = "model.safetensors";
const INDEX_SUFFIX: &str = ".safetensors.index.json";
const FILE_SUFFIX: &str = ".safetensors";

/// A model in safetensors, with every header read and checked.
#[derive(Debug)]
pub struct SafetensorsSet {
    files: Vec<SafetensorsFile>,
    index: Option<(PathBuf, Index)>,
}

impl SafetensorsSet {
    /// Opens a safetensors file, an index with all its files, or a folder that holds either.
    ///
    /// # Errors
    /// [`Error::Safetensors`] with the first broken rule of `docs/acceptance.md` §4, where all missing files are named at
    /// once; [`Error::NotAFile`] for a folder without a model, [`Error::Refused`] for one with several; [`Error::NotAModel`] and
    /// [`Error::WrongFormat`] for other kinds of files; and what the system answers.
    pub fn open(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Self::open(&in_folder(path)?);
        }
        match files::kind(path)? {
            Kind::Safetensors => Ok(Self { files: vec![SafetensorsFile::open(path)?], index: None }),
            Kind::SafetensorsIndex => Self::open_index(path),
            // A text that calls itself an index may have more before its map than was looked at.
            Kind::Text if is_named(path, INDEX_SUFFIX) => Self::open_index(path),
            // So is a file that is cut short, and whose own rules say what is wrong with it.
            Kind::Empty | Kind::Unknown(_) | Kind::Text if is_named(path, FILE_SUFFIX) => {
                Ok(Self { files: vec![SafetensorsFile::open(path)?], index: None })
            }
            kind => Err(files::other_kind(path, kind, Kind::Safetensors)),
        }
    }

    fn open_index(path: &Path) -> Result<Self> {
        let index = Index::open(path)?;
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let refuse = |problem| Error::safetensors(path, FormatError::new(problem, super::Place::Index));
        let shards = index.shards();
        let is_missing = |name: &&&str| {
            let about = std::fs::metadata(folder.join(name));
            about.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        };
        let missing: Vec<String> = shards.iter().filter(is_missing).map(|name| (*name).to_owned()).collect();
        if !missing.is_empty() {
            return Err(refuse(Problem::MissingShards(missing)));
        }
        let mut files = Vec::new();
        for name in &shards {
            let file = SafetensorsFile::open(&folder.join(name))?;
            check_shard(&file, name, &index).map_err(|error| Error::safetensors(path, error))?;
            files.push(file);
        }
        for (name, shard) in &index.map {
            let file = shards.binary_search(&shard.as_str()).ok().and_then(|at| files.get(at));
            if file.is_none_or(|file| file.header().find(name).is_none()) {
                let problem = Problem::NotInShard { shard: shard.clone() };
                return Err(Error::safetensors(path, FormatError::tensor(problem, name)));
            }
        }
        Ok(Self { files, index: Some((path.to_owned(), index)) })
    }

    /// The files, one unless the model is sharded, in the order of their names.
    #[must_use]
    pub fn files(&self) -> &[SafetensorsFile] {
        &self.files
    }

    /// The paths of [`SafetensorsSet::files`], whose bytes the tensors are.
    #[must_use]
    pub fn paths(&self) -> Vec<&Path> {
        self.files.iter().map(SafetensorsFile::path).collect()
    }

    /// The index of a sharded model.
    #[must_use]
    pub fn index_path(&self) -> Option<&Path> {
        self.index.as_ref().map(|(path, _)| path.as_path())
    }

    /// Whether the files were found by an index.
    #[must_use]
    pub const fn is_sharded(&self) -> bool {
        self.index.is_some()
    }

    /// The `metadata` object of the index as it stands there.
    #[must_use]
    pub fn index_metadata(&self) -> Option<&str> {
        self.index.as_ref().and_then(|(_, index)| index.metadata.as_deref())
    }

    /// All tensors: the files in order, in each the tensors in the order of their bytes.
    pub fn tensors(&self) -> impl Iterator<Item = StoredTensor<'_>> {
        self.files.iter().flat_map(|file| file.header().tensors.iter().map(move |info| StoredTensor::new(file, info)))
    }

    /// The tensor of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<StoredTensor<'_>> {
        self.files.iter().find_map(|file| file.header().find(name).map(|info| StoredTensor::new(file, info)))
    }

    /// Whether a container can hold every tensor: its type is in GGML's registry, it has up to four dimensions of 32
    /// bits, and its name is not reserved.
    ///
    /// # Errors
    /// [`Error::Safetensors`] with the first that it cannot.
    pub fn check_storable(&self) -> Result<()> {
        self.tensors().try_for_each(|tensor| tensor.payload().map(drop))
    }

    /// Bytes of all files.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.files.iter().map(SafetensorsFile::file_len).fold(0, u64::saturating_add)
    }

    /// What a person should know although the files are well-formed.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let Some((path, index)) = &self.index else { return Vec::new() };
        let found = self.tensors().map(|tensor| tensor.info().len()).fold(0, u64::saturating_add);
        let said = index.total_size().filter(|&said| said != found);
        let note = |said| format!("{}: total_size is {said}, the files hold {found} bytes of tensors", path.display());
        said.map(note).into_iter().collect()
    }
}

/// Each tensor of a shard is the index's.
fn check_shard(file: &SafetensorsFile, name: &str, index: &Index) -> std::result::Result<(), FormatError> {
    for TensorInfo { name: tensor, .. } in &file.header().tensors {
        let shard = name.to_owned();
        match index.shard_of(tensor) {
            Some(named) if named == name => {}
            Some(named) => {
                let problem = Problem::OtherShard { named: named.to_owned(), found: shard };
                return Err(FormatError::tensor(problem, tensor));
            }
            None => return Err(FormatError::tensor(Problem::NotInIndex { shard }, tensor)),
        }
    }
    Ok(())
}

fn is_named(path: &Path, suffix: &str) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(suffix))
}

/// The file of a folder to open: the index or the one safetensors file.
fn in_folder(folder: &Path) -> Result<PathBuf> {
    let (index, single) = (folder.join(INDEX_NAME), folder.join(FILE_NAME));
    match (index.is_file(), single.is_file()) {
        (true, false) => return Ok(index),
        (false, true) => return Ok(single),
        (true, true) => {
            let reason = format!("the folder has both {INDEX_NAME} and {FILE_NAME}; name the one that is meant");
            return Err(Error::refused(folder, reason));
        }
        (false, false) => {}
    }
    let entries = std::fs::read_dir(folder).map_err(|error| Error::io(folder, "list it", error))?;
    let mut found = [Vec::new(), Vec::new()];
    for entry in entries {
        let path = entry.map_err(|error| Error::io(folder, "list it", error))?.path();
        let [indexes, files] = &mut found;
        if is_named(&path, INDEX_SUFFIX) {
            indexes.push(path);
        } else if is_named(&path, FILE_SUFFIX) {
            files.push(path);
        }
    }
    let [mut indexes, mut files] = found;
    match (indexes.len(), files.len()) {
        (1, _) => Ok(indexes.remove(0)),
        (0, 1) => Ok(files.remove(0)),
        (0, 0) => Err(Error::NotAFile { path: folder.to_owned(), what: "a folder" }),
        (0, count) => Err(Error::refused(
            folder,
            format!(
                "the folder holds {count} safetensors files and no {INDEX_NAME}; fetch that, or name one of the files"
            ),
        )),
        (count, _) => {
            Err(Error::refused(folder, format!("the folder holds {count} indexes; name the one that is meant")))
        }
    }
}
