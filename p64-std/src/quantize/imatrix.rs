//! Importance matrices: how much each column of a weight matrix counts, measured by llama.cpp's `llama-imatrix`.
//!
//! ```text
//! GGUF      general.type "imatrix"; for each matrix two tensors of F32:
//!           <name>.in_sum2   columns x matrices   sums of squared activations
//!           <name>.counts    1 x matrices         activations that were added up
//! legacy    i32 entries; each: i32 length and name, i32 calls, i32 values, values x f32 (sums times calls over counts);
//!           what follows them is not needed
//! ```
//!
//! An expert tensor has one column of sums for each expert ("matrices" above).

use super::error::QuantizeError;
use crate::error::{Error, Result};
use crate::files;
use crate::gguf::GgufFile;
use crate::sniff::Kind;
use p64_core::{DType, Shape};
use std::collections::HashMap;
use std::path::Path;

/// The mean squared activations of the columns of a model's matrices.
#[derive(Clone, Debug, Default)]
pub struct Imatrix {
    entries: HashMap<String, Vec<f32>>,
}

/// The importances of one tensor.
#[derive(Clone, Copy, Debug)]
pub struct Importance<'a> {
    columns: usize,
    rows: usize,
    values: &'a [f32],
}

impl<'a> Importance<'a> {
    /// The importances that go with a row, counted over all experts: one for each column.
    #[must_use]
    pub fn of_row(&self, row: u64) -> &'a [f32] {
        let expert = usize::try_from(row).unwrap_or(usize::MAX).checked_div(self.rows).unwrap_or(0);
        self.values.chunks_exact(self.columns.max(1)).nth(expert).unwrap_or_default()
    }

    /// Rows that share importances; a run of rows for [`super::encode_rows`] must not reach past a multiple of them.
    #[must_use]
    pub const fn rows_per_expert(&self) -> usize {
        self.rows
    }
}

/// Bytes of the largest file that is read, far above any: the matrix of the largest public mixture of experts has some
/// 10^9.
const MAX_FILE: u64 = 1 << 32;

impl Imatrix {
    /// Reads a file of either form; its first bytes tell which.
    ///
    /// # Errors
    /// [`Error::Refused`] for a file that is no importance matrix, with what is wrong with it; what the system answers.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, len) = files::open(path)?;
        let kind = files::kind(path)?;
        if len > MAX_FILE || (kind.is_model() && kind != Kind::Gguf) {
            return Err(Error::refused(path, "this is no importance matrix: it is a model, or larger than 4 GiB"));
        }
        if kind == Kind::Gguf {
            return Self::from_gguf(&GgufFile::open(path)?);
        }
        let mut bytes = Vec::new();
        files::read_on(&file, path, &mut bytes, len)?;
        Self::from_legacy(&bytes).map_err(|reason| Error::refused(path, reason))
    }

    fn from_gguf(file: &GgufFile) -> Result<Self> {
        let refuse = |reason: String| Error::refused(file.path(), reason);
        let gguf = file.gguf();
        let kind = gguf.metadata().str("general.type").ok().flatten().unwrap_or("model");
        if kind != "imatrix" {
            return Err(refuse(format!("`general.type` is `{kind}`, an importance matrix has `imatrix`")));
        }
        let mut entries = HashMap::new();
        for tensor in gguf.tensors() {
            let Some(name) = tensor.name.strip_suffix(".in_sum2") else { continue };
            let floats = |tensor: &crate::gguf::GgufTensor<'_>| -> Result<Vec<f32>> {
                if tensor.dtype != DType::F32 {
                    return Err(refuse(format!("`{}` is {}, importances are F32", tensor.name, tensor.dtype)));
                }
                let extent = file.extent(tensor);
                let len = usize::try_from(extent.len()).map_err(|_| refuse(format!("`{name}` is too large")))?;
                let mut bytes = vec![0; len];
                file.read_at(extent.start(), &mut bytes)?;
                Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
            };
            let counts_name = format!("{name}.counts");
            let counts = gguf.find(&counts_name);
            let counts =
                counts.ok_or_else(|| refuse(format!("`{counts_name}` is missing beside `{}`", tensor.name)))?;
            let (mut sums, counts) = (floats(tensor)?, floats(counts)?);
            check(&counts_name, &counts).map_err(refuse)?;
            let matrices = counts.len();
            let columns = sums.len().checked_div(matrices).unwrap_or(0);
            if columns == 0 || columns.checked_mul(matrices) != Some(sums.len()) {
                let (sums, counts) = (sums.len(), counts.len());
                return Err(refuse(format!("`{name}` has {sums} sums for {counts} counts: they do not divide")));
            }
            for (sums, count) in sums.chunks_exact_mut(columns).zip(counts) {
                for sum in sums {
                    // An expert that no token came to: its columns count the same.
                    *sum = if count > 0.0 { *sum / count } else { 1.0 };
                }
            }
            check(name, &sums).map_err(refuse)?;
            entries.insert(name.to_owned(), sums);
        }
        if entries.is_empty() {
            return Err(refuse("it has no tensor `<name>.in_sum2`: nothing was measured".to_owned()));
        }
        Ok(Self { entries })
    }

    fn from_legacy(bytes: &[u8]) -> std::result::Result<Self, String> {
        let mut rest = bytes;
        let what = "this is no importance matrix: neither a GGUF nor llama.cpp's older form";
        let count = take_len(&mut rest).filter(|count| *count > 0 && *count <= rest.len() / MIN_ENTRY);
        let count = count.ok_or_else(|| what.to_owned())?;
        let mut entries = HashMap::new();
        for index in 0..count {
            let short = || {
                format!(
                    "entry {index} of {count} has a negative length or ends after the file's end: fetch the file again"
                )
            };
            let name_len = take_len(&mut rest).ok_or_else(short)?;
            let name = rest.split_off(..name_len).ok_or_else(short)?;
            let name = std::str::from_utf8(name).map_err(|_| format!("the name of entry {index} is not UTF-8"))?;
            let calls = take_len(&mut rest).ok_or_else(short)?;
            let len = take_len(&mut rest).ok_or_else(short)?;
            let values = len.checked_mul(4).and_then(|bytes| rest.split_off(..bytes)).ok_or_else(short)?;
            if len == 0 {
                return Err(format!("`{name}` has no values"));
            }
            let divisor = small(calls.max(1));
            let values: Vec<f32> =
                values.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes) / divisor).collect();
            check(name, &values)?;
            if entries.insert(name.to_owned(), values).is_some() {
                return Err(format!("`{name}` is there twice"));
            }
        }
        Ok(Self { entries })
    }

    /// The importances of a tensor, one for each column, those of experts one after another; `None` when it was not
    /// measured.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        self.entries.get(name).map(Vec::as_slice)
    }

    /// The importances of a tensor of this shape.
    ///
    /// # Errors
    /// [`QuantizeError::Columns`] when there are more or fewer of them than the tensor has columns (times experts).
    pub fn for_tensor(&self, name: &str, shape: &Shape) -> std::result::Result<Option<Importance<'_>>, QuantizeError> {
        let Some(values) = self.get(name) else { return Ok(None) };
        let dim = |at: usize| usize::try_from(shape.dims().get(at).copied().unwrap_or(1)).unwrap_or(usize::MAX);
        let expected = dim(0).saturating_mul(dim(2)).saturating_mul(dim(3));
        if values.len() != expected {
            return Err(QuantizeError::Columns { expected, found: values.len() });
        }
        Ok(Some(Importance { columns: dim(0), rows: dim(1), values }))
    }

    /// The names of what was measured, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Number of matrices measured.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Smallest entry of the older form: three numbers, an empty name, one value.
const MIN_ENTRY: usize = 16;

/// A number that must not be negative.
fn take_len(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    usize::try_from(i32::from_le_bytes(*number)).ok()
}

fn check(name: &str, values: &[f32]) -> std::result::Result<(), String> {
    match values.iter().enumerate().find(|(_, value)| !(value.is_finite() && **value >= 0.0)) {
        None => Ok(()),
        Some((column, value)) => {
            Err(format!("`{name}` has {value} at column {column}: it must be finite and not negative"))
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of calls are small")]
fn small(number: usize) -> f32 {
    number as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn entry(name: &str, calls: i32, values: &[f32]) -> Vec<u8> {
        let len = |n: usize| i32::try_from(n).expect("small").to_le_bytes();
        let mut bytes = len(name.len()).to_vec();
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&calls.to_le_bytes());
        bytes.extend_from_slice(&len(values.len()));
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    #[test]
    fn the_older_form_is_read_and_its_ends_are_seen() {
        let mut bytes = 2i32.to_le_bytes().to_vec();
        bytes.extend(entry("a.weight", 4, &[8.0, 2.0]));
        bytes.extend(entry("b.weight", 0, &[1.0, 2.0, 3.0, 4.0]));
        let whole = bytes.len();
        bytes.extend_from_slice(&[7, 0, 0, 0, 0, 0, 0, 0]);
        let imatrix = Imatrix::from_legacy(&bytes).expect("well-formed");
        assert_eq!((imatrix.get("a.weight"), imatrix.len()), (Some(&[2.0, 0.5][..]), 2));
        let experts = imatrix.for_tensor("b.weight", &Shape::new(&[2, 3, 2]).expect("rank 3")).expect("fits");
        let experts = experts.expect("measured");
        assert_eq!([0, 2, 3, 5].map(|row| experts.of_row(row)[0]), [1.0, 1.0, 3.0, 3.0]);
        let error = imatrix.for_tensor("a.weight", &Shape::new(&[3, 3]).expect("rank 2")).expect_err("3 columns");
        assert_eq!(error, QuantizeError::Columns { expected: 3, found: 2 });
        for end in 0..whole {
            Imatrix::from_legacy(&bytes[..end]).expect_err("cut short");
        }
    }

    #[test]
    fn what_is_no_importance_is_refused_with_its_place() {
        for (values, part) in
            [(&[f32::NAN][..], "NaN at column 0"), (&[1.0, -1.0], "-1 at column 1"), (&[], "no values")]
        {
            let mut bytes = 1i32.to_le_bytes().to_vec();
            bytes.extend(entry("a", 1, values));
            bytes.resize(bytes.len().max(40), 0);
            let error = Imatrix::from_legacy(&bytes).expect_err("refused");
            assert!(error.contains(part), "{error}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("m.dat");
        fs::write(&path, b"\xff\xff\xff\x7fnothing of the kind").expect("written");
        let error = Imatrix::open(&path).expect_err("refused").to_string();
        assert!(error.contains("no importance matrix"), "{error}");
    }
}
