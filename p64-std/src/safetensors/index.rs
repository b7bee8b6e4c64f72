//! The index of a sharded model: which tensor lies in which file.

use super::error::{Error as FormatError, Place, Problem};
use super::header::MAX_HEADER;
use crate::error::{Error, Result};
use crate::files;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::path::Path;

/// A `model.safetensors.index.json`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Index {
    /// Tensor and file, sorted by tensor.
    pub map: Vec<(String, String)>,
    /// `metadata` as it stands there, an object; `None` where there is none.
    pub metadata: Option<String>,
}

impl Index {
    /// Reads an index of at most 100 MB. The files that it names are not looked at.
    ///
    /// # Errors
    /// [`Error::Safetensors`] with the broken rule of `docs/acceptance.md` §4, and what the system answers.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, len) = files::open(path)?;
        let refuse = |problem| Error::safetensors(path, FormatError::new(problem, Place::Index));
        if len > MAX_HEADER {
            return Err(refuse(Problem::IndexTooLarge { found: len }));
        }
        let mut text = Vec::new();
        files::read_on(&file, path, &mut text, len)?;
        Self::parse(&text).map_err(|error| Error::safetensors(path, error))
    }

    /// Reads the text of an index.
    ///
    /// # Errors
    /// The first broken rule: text that is no such JSON, a tensor that stands twice, a file name that leads elsewhere.
    pub fn parse(text: &[u8]) -> std::result::Result<Self, FormatError> {
        let refuse = |problem| Err(FormatError::new(problem, Place::Index));
        let text = match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => return refuse(Problem::NotUtf8 { at: error.valid_up_to() as u64 }),
        };
        let read = serde_json::from_str::<Text<'_>>(text);
        let Text { metadata, weight_map: WeightMap(mut map) } = match read {
            Ok(read) => read,
            Err(error) => return refuse(Problem::json(&error)),
        };
        map.sort_unstable();
        if let Some([(name, _), _]) = map.array_windows().find(|[a, b]| a.0 == b.0) {
            return refuse(Problem::DuplicateKey(name.clone()));
        }
        if let Some((_, file)) = map.iter().find(|(_, file)| !is_plain(file)) {
            return refuse(Problem::ShardName(file.clone()));
        }
        let metadata = metadata.map(|value| value.get().to_owned()).filter(|text| text.starts_with('{'));
        Ok(Self { map, metadata })
    }

    /// The file that is to have a tensor.
    #[must_use]
    pub fn shard_of(&self, tensor: &str) -> Option<&str> {
        let found = self.map.binary_search_by(|(name, _)| name.as_str().cmp(tensor)).ok()?;
        self.map.get(found).map(|(_, file)| file.as_str())
    }

    /// The files, each once, in the order of their names.
    #[must_use]
    pub fn shards(&self) -> Vec<&str> {
        let mut shards: Vec<&str> = self.map.iter().map(|(_, file)| file.as_str()).collect();
        shards.sort_unstable();
        shards.dedup();
        shards
    }

    /// `metadata.total_size`: payload bytes of all files, as far as it is said.
    #[must_use]
    pub fn total_size(&self) -> Option<u64> {
        #[derive(serde::Deserialize)]
        struct Size {
            total_size: Option<u64>,
        }
        serde_json::from_str::<Size>(self.metadata.as_ref()?).ok()?.total_size
    }
}

/// Whether a name leads to a file of the folder that it is looked up in and nowhere else.
pub(crate) fn is_plain(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', ':', '\0'])
}

#[derive(serde::Deserialize)]
struct Text<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    weight_map: WeightMap,
}

/// The pairs of a `weight_map`, also those of a key that stands twice.
struct WeightMap(Vec<(String, String)>);

impl<'de> serde::Deserialize<'de> for WeightMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = WeightMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of file names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<WeightMap, A::Error> {
                let mut pairs = Vec::new();
                while let Some((name, file)) = map.next_entry::<Cow<'de, str>, Cow<'de, str>>()? {
                    pairs.push((name.into_owned(), file.into_owned()));
                }
                Ok(WeightMap(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}
