//! The tensors of an export to a format of plain arrays: which ones, under which names, in which types.

use super::decoded::Decoded;
use crate::error::{Error, Result};
use crate::quantize::Rule;
use crate::safetensors::{ElementType, provenance_keys as keys};
use crate::source::{OpenSource, Payload, SourceModel, SourceTensor};
use p64_core::DType;
use p64_core::metadata::Metadata;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of [`export_safetensors`](super::export_safetensors) and [`export_npz`](super::export_npz).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TensorOptions {
    /// The type that values of quantised tensors get: F32, F16 or BF16. Without it they are refused by safetensors and
    /// become F32 in an npz.
    pub dequantize: Option<DType>,
    /// Patterns of names (as of [`Rule`]); tensors that none fits are left out. Empty for all tensors.
    pub select: Vec<String>,
    /// For safetensors: names and rows of a complete model as the container has them, not as Hugging Face has them, and no
    /// `config.json`. Selected tensors have their own names in any case.
    pub own_names: bool,
}

/// What an export of tensors wrote.
#[derive(Clone, Debug)]
pub struct TensorExport {
    /// The files, those with tensors first.
    pub files: Vec<TensorFile>,
    /// Tensors of all files.
    pub tensors: u64,
    /// Whether the files have the digests of the source; `None` when the source does not say what those were, or when
    /// something else than all of it was asked for.
    pub identical: Option<bool>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// Wall-clock time.
    pub duration: Duration,
}

/// One file of an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorFile {
    /// Where it stands.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal digits, where it was summed up in passing.
    pub sha256: Option<String>,
}

/// One tensor on its way out.
pub(super) struct Outgoing<'s> {
    pub name: String,
    pub dtype: ElementType,
    /// The contiguous dimension last; empty for a scalar.
    pub shape: Vec<u64>,
    pub payload: Box<dyn Payload + 's>,
}

/// The path of a source's first file, for messages.
pub(super) fn path_of(source: &OpenSource) -> &Path {
    source.paths().first().copied().unwrap_or_else(|| Path::new(""))
}

/// The tensors that the options select, as floats and integers.
///
/// # Errors
/// [`Error::Usage`] for a pattern that is none or fits nothing, [`Error::Refused`] for a quantised tensor when the
/// options do not say what becomes of it, and for one of a type that is not decoded.
pub(super) fn select<'s>(
    path: &Path,
    model: &mut SourceModel<'s>,
    options: &TensorOptions,
) -> Result<Vec<SourceTensor<'s>>> {
    let rules =
        options.select.iter().map(|pattern| Rule::new(pattern, None)).collect::<std::result::Result<Vec<_>, _>>();
    let rules = rules.map_err(|reason| Error::Usage { reason })?;
    let mut tensors = std::mem::take(&mut model.tensors);
    if let Some(unused) = rules.iter().position(|rule| !tensors.iter().any(|tensor| rule.matches(&tensor.name))) {
        let pattern = options.select.get(unused).map_or("", String::as_str);
        let reason =
            format!("{}: no tensor has a name like {pattern}; `p64 inspect --tensors` lists them", path.display());
        return Err(Error::Usage { reason });
    }
    if !rules.is_empty() {
        tensors.retain(|tensor| rules.iter().any(|rule| rule.matches(&tensor.name)));
    }
    let mut decoded = Vec::new();
    for mut tensor in tensors {
        let from = tensor.payload.dtype();
        if ElementType::from_ggml(from).is_none() {
            let Some(to) = options.dequantize else {
                let reason = format!(
                    "tensor {:?} has type {from}, which safetensors does not have; --dequantize f16 (or bf16, f32) writes \
                     its values",
                    tensor.name
                );
                return Err(Error::refused(path, reason));
            };
            let name = tensor.name.clone();
            let reason = format!("tensor {name:?} has type {from}, which is not decoded");
            let payload = Decoded::new(path, tensor, to).ok_or_else(|| Error::refused(path, reason))?;
            tensor = SourceTensor::made(name, payload);
        }
        decoded.push(tensor);
    }
    Ok(decoded)
}

/// The tensors with their shapes turned around, `scalars` without dimensions.
///
/// # Errors
/// [`Error::Refused`] for names that are empty or stand twice.
pub(super) fn outgoing<'s>(
    path: &Path,
    tensors: Vec<SourceTensor<'s>>,
    scalars: &HashSet<String>,
) -> Result<Vec<Outgoing<'s>>> {
    let mut names = HashSet::new();
    let mut out = Vec::new();
    for SourceTensor { name, payload, .. } in tensors {
        if name.is_empty() || !names.insert(name.clone()) {
            return Err(Error::refused(path, format!("tensor {:?}: the name {name:?} is empty or taken", out.len())));
        }
        let dtype = payload.dtype();
        let dtype = ElementType::from_ggml(dtype)
            .ok_or_else(|| Error::refused(path, format!("tensor {name:?} has type {dtype}, which is not decoded")))?;
        let dims = payload.shape();
        let is_scalar = scalars.contains(&name) && dims.dims() == [1];
        let shape = if is_scalar { Vec::new() } else { dims.dims().iter().rev().copied().map(u64::from).collect() };
        out.push(Outgoing { name, dtype, shape, payload });
    }
    Ok(out)
}

/// The names of the tensors that had rank 0 in the source.
pub(super) fn scalars(provenance: &Metadata<'_>) -> HashSet<String> {
    let names = provenance.array(keys::SCALARS).ok().flatten();
    names.into_iter().flat_map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned))).collect()
}
