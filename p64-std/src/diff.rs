//! What differs between two models, of whatever formats: tensors, their values, the keys, and how the files are laid out.
//!
//! ```text
//! pair      tensors of one name; then those without a partner, by equal type, shape and bytes
//! compare   bytes where type and shape are equal; where they are not, or bytes differ, the decoded values
//! order     pairs outside the longest run that both files have in the same order have moved
//! keys      GGUF keys one by one, of arrays how many elements differ and which is the first
//! facts     format, version, flags, page size and the like
//! ```
//!
//! Payloads are read piece by piece; memory does not grow with them.

mod bytes;
mod facts;
mod keys;
mod numbers;
mod pairs;

pub use facts::Fact;
pub use keys::{ArrayDiff, KeyDiff};
pub use numbers::Numbers;

use crate::error::{Error, Result};
use crate::hf;
use crate::pool;
use crate::safetensors::SafetensorsSet;
use crate::source::{OpenSource, SourceTensor};
use crate::stats::Progress;
use p64_core::metadata::Metadata;
use p64_core::{DType, Role, Shape};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A model to compare.
#[derive(Debug)]
pub struct Side<'s> {
    path: &'s Path,
    source: &'s OpenSource,
    tensors: Vec<SourceTensor<'s>>,
    /// Keys that no file holds in this form.
    made_keys: Option<Vec<u8>>,
}

impl<'s> Side<'s> {
    /// A model as its files have it, opened at `path`.
    #[must_use]
    pub fn new(path: &'s Path, source: &'s OpenSource) -> Self {
        Self { path, source, tensors: source.tensors(), made_keys: None }
    }

    /// Two models as they can be compared. A Hugging Face folder beside a GGUF or a container is taken as the complete model
    /// that a conversion makes of it: GGUF's names, order of rows and keys.
    ///
    /// # Errors
    /// As [`hf::source_model`].
    pub fn pair(a: (&'s Path, &'s OpenSource), b: (&'s Path, &'s OpenSource)) -> Result<[Self; 2]> {
        let is_raw = |source| matches!(source, &OpenSource::Safetensors(_));
        let one = |(path, source): (&'s Path, &'s OpenSource), other| match source {
            OpenSource::Safetensors(set) if !is_raw(other) => Self::complete(path, source, set),
            _ => Ok(Self::new(path, source)),
        };
        Ok([one(a, b.1)?, one(b, a.1)?])
    }

    fn complete(path: &'s Path, source: &'s OpenSource, set: &'s SafetensorsSet) -> Result<Self> {
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
        if !hf::is_complete_folder(folder) {
            return Ok(Self::new(path, source));
        }
        let model = hf::source_model(set, folder)?;
        Ok(Self { path, source, tensors: model.tensors, made_keys: model.metadata.map(|pairs| pairs.to_area()) })
    }

    fn keys(&self) -> Result<Option<Metadata<'_>>> {
        match &self.made_keys {
            Some(area) => Metadata::parse(area, 0).map(Some).map_err(|error| Error::core(self.path, error)),
            None => self.source.metadata(),
        }
    }
}

/// What is compared.
#[derive(Clone, Copy)]
pub struct Options<'o> {
    /// Whether a tensor of this name is compared.
    pub select: &'o (dyn Fn(&str) -> bool + Sync),
    /// Whether the values of tensors that differ are compared, too; otherwise only types, shapes and bytes are.
    pub values: bool,
    /// Threads; 0 for one per core.
    pub threads: usize,
}

/// What differs, and what does not.
#[derive(Clone, Debug)]
pub struct Difference<'s> {
    /// Every tensor of either model: those of the first in its order, then what only the second has.
    pub tensors: Vec<TensorDiff>,
    /// The keys that differ, in the order of the first model, then what only the second has.
    pub keys: Vec<KeyDiff<'s>>,
    /// Number of keys of each, `None` for a file that carries none.
    pub key_counts: [Option<u32>; 2],
    /// What differs in how the files are made up.
    pub facts: Vec<Fact>,
}

/// One tensor, or a pair of them.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorDiff {
    /// The first model's; `None` for a tensor that was added.
    pub a: Option<Tensor>,
    /// The second model's; `None` for a tensor that was removed.
    pub b: Option<Tensor>,
    /// Whether the bytes are equal; of pairs of one type and shape only.
    pub same_bytes: Option<bool>,
    /// Offset in the payload of the first byte that differs; of pairs of one type and shape only.
    pub first_difference: Option<u64>,
    /// The values compared, where they were and both types can be decoded.
    pub numbers: Option<Numbers>,
    /// Whether the pair stands in another order.
    pub moved: bool,
}

/// What a table says of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tensor {
    /// Place in the model's table, from 0.
    pub index: usize,
    /// The name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Shape in GGML order.
    pub shape: Shape,
    /// Payload bytes.
    pub bytes: u64,
    /// Layer and role, which containers say of each tensor.
    pub placement: Option<(u32, Role)>,
}

/// A way in which a tensor differs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Change {
    Added,
    Removed,
    Renamed,
    Retyped,
    Reshaped,
    /// Type and shape are equal, the bytes are not.
    Rewritten,
    /// It belongs to another layer or role.
    Placed,
    /// It stands in another order.
    Moved,
}

impl Change {
    /// The name people read.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Renamed => "renamed",
            Self::Retyped => "retyped",
            Self::Reshaped => "reshaped",
            Self::Rewritten => "rewritten",
            Self::Placed => "placed",
            Self::Moved => "moved",
        }
    }

    /// Whether the model is another one by this: all but the order, the layer and the role of its tensors.
    #[must_use]
    pub const fn is_of_model(self) -> bool {
        !matches!(self, Self::Placed | Self::Moved)
    }
}

impl TensorDiff {
    /// All ways in which it differs; none for equal tensors.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        let (a, b) = match (&self.a, &self.b) {
            (Some(a), Some(b)) => (a, b),
            (None, _) => return vec![Change::Added],
            (_, None) => return vec![Change::Removed],
        };
        let placed = a.placement.zip(b.placement).is_some_and(|(a, b)| a != b);
        [
            (a.name != b.name, Change::Renamed),
            (a.dtype != b.dtype, Change::Retyped),
            (a.shape != b.shape, Change::Reshaped),
            (self.same_bytes == Some(false), Change::Rewritten),
            (placed, Change::Placed),
            (self.moved, Change::Moved),
        ]
        .into_iter()
        .filter_map(|(is, change)| is.then_some(change))
        .collect()
    }

    /// Whether the models differ by it.
    #[must_use]
    pub fn is_different(&self) -> bool {
        self.changes().into_iter().any(Change::is_of_model)
    }
}

impl Difference<'_> {
    /// Whether both are one model: the same tensors with the same names, types, shapes and bytes, and the same keys. Order,
    /// layers and what files are made up of do not count.
    #[must_use]
    pub fn is_same_model(&self) -> bool {
        self.keys.is_empty() && !self.tensors.iter().any(TensorDiff::is_different)
    }
}

/// Compares two models. `progress` is told of the payload bytes of both.
///
/// # Errors
/// [`Error::Refused`] for a payload that is not what its type and shape say,
/// [`Error::Usage`] for too many threads, what reading answers (a failed checksum among it).
pub fn compare<'s>(
    a: &'s Side<'_>,
    b: &'s Side<'_>,
    options: &Options<'_>,
    progress: Progress<'_>,
) -> Result<Difference<'s>> {
    let of = |side: &'s Side<'_>| tensors(side, options.select);
    let (tensors_a, tensors_b) = (of(a), of(b));
    let bytes = |tensors: &[Chosen<'_>]| tensors.iter().map(|(tensor, _)| tensor.bytes).sum::<u64>();
    let total = bytes(&tensors_a).saturating_add(bytes(&tensors_b));
    let done = AtomicU64::new(0);
    let advance = |bytes: u64| progress(done.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes), total);

    let compared: Result<Vec<TensorDiff>> = pool::with_threads(options.threads, || {
        let pairs = pairs::pair(&tensors_a, &tensors_b)?;
        let compared: Vec<Result<TensorDiff>> = pairs
            .par_iter()
            .map(|pair| {
                let (left, right) = (pair.a.and_then(|i| tensors_a.get(i)), pair.b.and_then(|i| tensors_b.get(i)));
                let diff = one(a, left, b, right, options.values)?;
                advance([left, right].into_iter().flatten().map(|(tensor, _)| tensor.bytes).sum());
                Ok(TensorDiff { moved: pair.moved, ..diff })
            })
            .collect();
        // Of several errors the first of the table is reported, whatever thread met it.
        compared.into_iter().collect()
    })?;
    let (keys, key_counts) = keys::compare(a.keys()?.as_ref(), b.keys()?.as_ref());
    Ok(Difference { tensors: compared?, keys, key_counts, facts: facts::compare(a.source, b.source) })
}

type Chosen<'s> = (Tensor, &'s SourceTensor<'s>);

fn tensors<'s>(side: &'s Side<'_>, select: &dyn Fn(&str) -> bool) -> Vec<Chosen<'s>> {
    let placements = facts::placements(side.source);
    let described = side.tensors.iter().enumerate().map(|(index, source)| {
        let payload = &source.payload;
        let tensor = Tensor {
            index,
            name: source.name.clone(),
            dtype: payload.dtype(),
            shape: payload.shape(),
            bytes: payload.len(),
            placement: placements.get(index).copied(),
        };
        (tensor, source)
    });
    described.filter(|(tensor, _)| select(&tensor.name)).collect()
}

fn one(
    a: &Side<'_>,
    left: Option<&Chosen<'_>>,
    b: &Side<'_>,
    right: Option<&Chosen<'_>>,
    values: bool,
) -> Result<TensorDiff> {
    let mut diff = TensorDiff {
        a: left.map(|(tensor, _)| tensor.clone()),
        b: right.map(|(tensor, _)| tensor.clone()),
        same_bytes: None,
        first_difference: None,
        numbers: None,
        moved: false,
    };
    let (Some((left, from_a)), Some((right, from_b))) = (left, right) else { return Ok(diff) };
    let (payload_a, payload_b) = (from_a.payload.as_ref(), from_b.payload.as_ref());
    if (left.dtype, left.shape, left.bytes) == (right.dtype, right.shape, right.bytes) {
        diff.first_difference = bytes::first_difference(payload_a, payload_b)?;
        diff.same_bytes = Some(diff.first_difference.is_none());
    }
    if values && diff.same_bytes != Some(true) {
        let compared = numbers::compare(payload_a, payload_b);
        diff.numbers = compared.map_err(|(second, error)| {
            let (side, tensor) = if second { (b, right) } else { (a, left) };
            error.of(side.path, &tensor.name)
        })?;
    }
    Ok(diff)
}
