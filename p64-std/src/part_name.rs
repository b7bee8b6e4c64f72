//! Names of the files of a set: `<folder>/<stem>-00001-of-00003.<extension>`.

use std::path::{Path, PathBuf};

/// Extension of a P64.
pub(crate) const P64: &str = "p64";
/// Extension of a GGUF.
pub(crate) const GGUF: &str = "gguf";

/// A path of that form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PartName {
    folder: PathBuf,
    stem: String,
    extension: &'static str,
    /// Number of the file, from 1.
    pub number: u64,
    /// Files of the set.
    pub count: u64,
}

impl PartName {
    /// The parts of a path with that extension, `None` where it has another form.
    pub fn of(path: &Path, extension: &'static str) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_suffix(extension)?.strip_suffix('.')?;
        let (rest, count) = name.rsplit_once("-of-")?;
        let (stem, number) = rest.rsplit_once('-')?;
        let digits = |text: &str| {
            (text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<u64>().ok()).flatten()
        };
        let folder = path.parent().unwrap_or_else(|| Path::new("")).to_owned();
        let (number, count) = (digits(number)?, digits(count)?);
        Some(Self { folder, stem: stem.to_owned(), extension, number, count })
    }

    /// The first file of a set of `count` that is to stand at `path`: a stem, a stem with the extension, or the name of
    /// one of the set's files. `None` for a path without a name.
    pub fn first(path: &Path, extension: &'static str, count: u64) -> Option<Self> {
        if let Some(name) = Self::of(path, extension) {
            return Some(Self { number: 1, count, ..name });
        }
        let name = path.file_name()?.to_str()?;
        let stem = name.strip_suffix(extension).and_then(|stem| stem.strip_suffix('.')).unwrap_or(name);
        let folder = path.parent().unwrap_or_else(|| Path::new("")).to_owned();
        (!stem.is_empty()).then(|| Self { folder, stem: stem.to_owned(), extension, number: 1, count })
    }

    /// The path of another file of the set.
    pub fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{}-{number:05}-of-{:05}.{}", self.stem, self.count, self.extension))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_names() {
        let name = PartName::of(Path::new("a/b-x-00001-of-00003.gguf"), GGUF).expect("a part");
        assert_eq!((name.stem.as_str(), name.number, name.count), ("b-x", 1, 3));
        assert_eq!(name.path(3), Path::new("a/b-x-00003-of-00003.gguf"));
        for other in
            ["m.gguf", "m-1-of-3.gguf", "m-00001-of-00003.bin", "m-0000x-of-00003.gguf", "m-+0001-of-00003.gguf"]
        {
            assert_eq!(PartName::of(Path::new(other), GGUF), None, "{other}");
        }
        assert_eq!(PartName::of(Path::new("m-00001-of-00003.gguf"), P64), None);
        let large = PartName::of(Path::new("m-65535-of-65535.p64"), P64).expect("a part");
        assert_eq!((large.number, large.count), (65_535, 65_535));
        assert_eq!(large.path(10_000), Path::new("m-10000-of-65535.p64"));
    }

    #[test]
    fn names_for_a_new_set() {
        for given in ["d/m", "d/m.p64", "d/m-00002-of-00007.p64"] {
            let name = PartName::first(Path::new(given), P64, 12).expect("a name");
            assert_eq!(name.path(name.number), Path::new("d/m-00001-of-00012.p64"), "{given}");
        }
        let name = PartName::first(Path::new("m.v1"), P64, 1).expect("a name");
        assert_eq!(name.path(1), Path::new("m.v1-00001-of-00001.p64"));
        assert_eq!(PartName::first(Path::new("/"), P64, 1), None);
        assert_eq!(PartName::first(Path::new(".p64"), P64, 1), None);
    }
}
