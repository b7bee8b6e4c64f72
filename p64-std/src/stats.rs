//! What the values of a model are like: range, spread, zeros, outliers, histograms, and what is no number.
//!
//! Each tensor is decoded twice, piece by piece: first for its moments, then, these known, for its histogram and outliers.
//! Memory is a few pieces a thread, however large a tensor is. The pieces are joined in the order of the elements, so the
//! figures do not depend on the number of threads.

mod histogram;
mod layout;
mod moments;
mod part;
mod pieces;

pub use histogram::{BINS, Histogram, OUTLIER_SIGMAS};
pub use layout::{FileLayout, Region, What, file_layouts};
pub use moments::Moments;
pub use part::{Group, Part, Place};
pub use pieces::can_decode;
pub(crate) use pieces::{Decoder, PIECE, PieceError, Scratch, Values};

use crate::error::{Error, Result};
use crate::pool;
use crate::source::{Payload, SourceTensor};
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Elements that a thread takes at once.
const SHARE: u64 = PIECE as u64 * 64;

type Pieced<T> = std::result::Result<T, pieces::PieceError>;

/// Told how many bytes of how many are through, from any thread.
pub type Progress<'p> = &'p (dyn Fn(u64, u64) + Sync);

/// The figures of one tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorStats {
    /// Range, mean, spread, and how many values are zero or no number.
    pub moments: Moments,
    /// How the values are spread; empty when none is a finite number.
    pub histogram: Histogram,
}

/// Counts over `tensors` of the file at `path`, which are read whole, on `threads` threads (0 for one per core). The answers
/// are in the tensors' order, `None` for a type that this build does not decode.
///
/// # Errors
/// [`Error::Refused`] for a payload that is not what its type and shape say, [`Error::Usage`] for too many threads, what
/// reading answers (a failed checksum of a container among it).
pub fn count(
    path: &Path,
    tensors: &[SourceTensor<'_>],
    threads: usize,
    progress: Progress<'_>,
) -> Result<Vec<Option<TensorStats>>> {
    let total = tensors.iter().map(|tensor| tensor.payload.len()).fold(0, u64::saturating_add);
    let done = AtomicU64::new(0);
    let advance = |bytes: u64| progress(done.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes), total);
    let counted: Vec<Result<Option<TensorStats>>> = pool::with_threads(threads, || {
        let one = |tensor: &SourceTensor<'_>| {
            let counted = count_one(tensor.payload.as_ref()).map_err(|error| error.of(path, &tensor.name));
            advance(tensor.payload.len());
            counted
        };
        tensors.par_iter().map(one).collect()
    })?;
    // Of several that fail, the first of the table is reported, whatever thread found it.
    counted.into_iter().collect()
}

fn count_one(payload: &dyn Payload) -> Pieced<Option<TensorStats>> {
    let Some(decoder) = Decoder::new(payload)? else { return Ok(None) };
    let moments = shares(&decoder, |values, moments: &mut Moments| match values {
        Values::Single(values) => moments.add(values),
        Values::Double(values) => moments.add(values),
    })?;
    let moments = moments.into_iter().fold(Moments::default(), Moments::join);
    let empty = Histogram::around(&moments);
    let histograms = shares(&decoder, |values, histogram: &mut Option<Histogram>| {
        let histogram = histogram.get_or_insert_with(|| empty.clone());
        match values {
            Values::Single(values) => histogram.add(values),
            Values::Double(values) => histogram.add(values),
        }
    })?;
    let histogram = histograms.into_iter().flatten().fold(empty.clone(), Histogram::join);
    Ok(Some(TensorStats { moments, histogram }))
}

/// Runs over all values, in shares that threads take; each share has a sum of its own.
fn shares<S: Default + Send>(decoder: &Decoder<'_>, add: impl Fn(Values<'_>, &mut S) + Sync) -> Pieced<Vec<S>> {
    let elements = decoder.elements();
    let one = |scratch: &mut Scratch, share: u64| {
        let start = share.saturating_mul(SHARE);
        let end = start.saturating_add(SHARE).min(elements);
        let mut sum = S::default();
        decoder.each(start..end, scratch, &mut |values| add(values, &mut sum))?;
        Ok(sum)
    };
    let count = elements.div_ceil(SHARE);
    if count <= 1 {
        return (0..count).map(|share| one(&mut Scratch::default(), share)).collect();
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    (0..count).into_par_iter().map_init(Scratch::default, |scratch, share| one(scratch, share as u64)).collect()
}

impl TensorStats {
    /// Values that stand farther from the mean than [`OUTLIER_SIGMAS`] standard deviations.
    #[must_use]
    pub const fn outliers(&self) -> u64 {
        self.histogram.below.saturating_add(self.histogram.above)
    }
}

impl pieces::PieceError {
    /// The error of a tensor of a file.
    pub(crate) fn of(self, path: &Path, name: &str) -> Error {
        match self {
            Self::Read(error) => error,
            Self::Decode(error) => Error::refused(path, format!("tensor {name}: {error}")),
            Self::Length { expected, found } => {
                Error::refused(path, format!("tensor {name}: {found} bytes, its type and shape need {expected}"))
            }
        }
    }
}
