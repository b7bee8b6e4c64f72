//! Export to NumPy's archive of arrays: an uncompressed ZIP with an `.npy` file for each tensor.

use super::decoded::Decoded;
use super::stream::copy;
use super::tensors::{Outgoing, TensorExport, TensorFile, TensorOptions, outgoing, path_of, scalars, select};
use crate::atomic_file::AtomicFile;
use crate::convert::{Phase, Progress};
use crate::error::{Error, Result};
use crate::files;
use crate::safetensors::ElementType;
use crate::source::{OpenSource, SourceTensor};
use p64_core::DType;
use p64_core::metadata::Metadata;
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

/// Where an array's bytes begin in the archive, in bytes: what vector instructions like.
const ALIGNMENT: u16 = 64;

/// Writes tensors of a model of any format as arrays that `numpy.load` reads, under the names of the source, the contiguous
/// dimension last. BF16, which NumPy does not have, and quantised tensors become F32 (or what the options say).
///
/// # Errors
/// What opening answers; [`Error::Usage`] for a pattern that fits no tensor; [`Error::Refused`] for a name that would
/// lead out of a folder when the archive is unpacked; [`Error::SameFile`]; and what writing answers.
pub fn export_npz(
    input: &Path,
    output: &Path,
    options: &TensorOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<TensorExport> {
    let start = Instant::now();
    let source = OpenSource::open(input)?;
    if let Some(own) = source.paths().into_iter().find(|own| files::is_same_file(own, output)) {
        return Err(Error::SameFile { path: own.to_owned() });
    }
    let path = path_of(&source);
    let mut model = source.model()?;
    let area = model.provenance.to_area();
    let provenance = Metadata::parse(&area, 0).map_err(|error| Error::core(path, error))?;
    let to = options.dequantize.filter(|to| *to != DType::BF16).unwrap_or(DType::F32);
    let options = TensorOptions { dequantize: Some(to), ..options.clone() };
    let is_quantised = |tensor: &&SourceTensor<'_>| ElementType::from_ggml(tensor.payload.dtype()).is_none();
    let quantised: HashSet<String> =
        model.tensors.iter().filter(is_quantised).map(|tensor| tensor.name.clone()).collect();
    let selected = select(path, &mut model, &options)?;
    let any_quantised = selected.iter().any(|tensor| quantised.contains(&tensor.name));
    let mut tensors = Vec::new();
    let mut halves = 0u64;
    for tensor in selected {
        if tensor.payload.dtype() != DType::BF16 {
            tensors.push(tensor);
            continue;
        }
        halves = halves.saturating_add(1);
        let name = tensor.name.clone();
        let reason = format!("tensor {name:?} has too many elements");
        let payload = Decoded::new(path, tensor, DType::F32).ok_or_else(|| Error::refused(path, reason))?;
        tensors.push(SourceTensor::made(name, payload));
    }
    let mut notes = std::mem::take(&mut model.notes);
    if halves > 0 {
        notes.push(format!("NumPy has no BF16: {halves} tensors became F32, with the same values"));
    }
    if any_quantised {
        notes.push(format!("values of quantised tensors are written as {to}"));
    }
    let tensors = outgoing(path, tensors, &scalars(&provenance))?;
    if let Some(tensor) = tensors.iter().find(|tensor| !is_safe(&tensor.name)) {
        let reason =
            format!("tensor {:?}: as a file of an archive that name would lead out of its folder", tensor.name);
        return Err(Error::refused(path, reason));
    }
    let mut file = AtomicFile::create(output)?;
    write(&tensors, file.file(), output, progress)?;
    let bytes = files::metadata(file.file(), output)?.len();
    file.commit()?;
    let files = vec![TensorFile { path: output.to_owned(), bytes, sha256: None }];
    Ok(TensorExport { files, tensors: tensors.len() as u64, identical: None, notes, duration: start.elapsed() })
}

/// Whether a name, unpacked as a file, stays in its folder.
fn is_safe(name: &str) -> bool {
    !name.contains(['\\', ':']) && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn write(
    tensors: &[Outgoing<'_>],
    file: &mut std::fs::File,
    path: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let failed = |error: zip::result::ZipError| Error::io(path, "write it", error.into());
    let total = tensors.iter().map(|tensor| tensor.payload.len()).fold(0, u64::saturating_add);
    let mut done = 0u64;
    let mut buffer = Vec::new();
    let mut zip = ZipWriter::new(std::io::BufWriter::new(file));
    for tensor in tensors {
        let head = head(tensor);
        let len = tensor.payload.len().saturating_add(head.len() as u64);
        // Times and permissions stay what they are by default, so that the same tensors give the same archive.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .with_alignment(ALIGNMENT)
            .large_file(len >= u64::from(u32::MAX));
        zip.start_file(format!("{}.npy", tensor.name), options).map_err(failed)?;
        zip.write_all(&head).map_err(|error| Error::io(path, "write it", error))?;
        copy(&*tensor.payload, &mut zip, path, &mut buffer, &mut |bytes| {
            done = done.saturating_add(bytes);
            progress(Progress { phase: Phase::Write, done, total });
        })?;
    }
    let mut out = zip.finish().map_err(failed)?;
    out.flush().map_err(|error| Error::io(path, "write it", error))
}

/// The front of an `.npy` file, version 1.0: magic, length, and a Python dictionary, filled up to a multiple of 64 bytes.
fn head(tensor: &Outgoing<'_>) -> Vec<u8> {
    let descr = match tensor.dtype {
        ElementType::F64 => "<f8",
        ElementType::F16 => "<f2",
        ElementType::I64 => "<i8",
        ElementType::I32 => "<i4",
        ElementType::I16 => "<i2",
        ElementType::I8 => "|i1",
        // F32, and nothing else is left.
        _ => "<f4",
    };
    let dims: Vec<String> = tensor.shape.iter().map(|dim| format!("{dim},")).collect();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", dims.join(" "));
    const FRONT: usize = 10;
    while !text.len().saturating_add(FRONT).saturating_add(1).is_multiple_of(usize::from(ALIGNMENT)) {
        text.push(' ');
    }
    text.push('\n');
    let mut head = b"\x93NUMPY\x01\x00".to_vec();
    head.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    head.extend_from_slice(text.as_bytes());
    head
}
