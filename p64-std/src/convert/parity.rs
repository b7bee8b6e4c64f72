//! Source parity (spec §13.1): a container against the GGUF it was made from.

use super::source::for_each_piece;
use super::{Phase, Progress};
use crate::error::Result;
use crate::gguf::{GgufFile, GgufSet, GgufTensor};
use crate::map::{MapOptions, MappedSet};
use p64_core::container::METADATA_NAME;
use p64_core::hash::fnv1a64;
use p64_core::validate::Integrity;
use std::path::Path;

/// What was compared, and what differs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ParityReport {
    /// Tensors of the source.
    pub tensors: u64,
    /// Payload bytes compared.
    pub bytes: u64,
    /// What differs, a sentence each; empty when the two have parity.
    pub differences: Vec<String>,
}

impl ParityReport {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Compares every tensor of the GGUF (of all files of a split one) with the container: number, names, types, shapes,
/// source offsets, name hashes, lengths and bytes; and the source's keys with `p64.metadata`.
///
/// # Errors
/// What opening either file answers; differences are no error but the report's content.
pub fn check_parity(gguf: &Path, p64: &Path, progress: &mut dyn FnMut(Progress)) -> Result<ParityReport> {
    let set = GgufSet::open(gguf)?;
    let options = MapOptions { integrity: Integrity::Lazy, ..MapOptions::default() };
    let (container, _) = MappedSet::open(p64, &options)?;

    let mut report = ParityReport::default();
    let stored = container.tensors().count() as u64;
    let found = set.tensors().count() as u64;
    if stored != found {
        report.differences.push(format!("the container has {stored} tensors, the source {found}"));
    }
    let same_keys = container.metadata()?.is_some_and(|stored| {
        stored.len() == set.metadata().len() && stored.pair_bytes() == set.metadata().pair_bytes()
    });
    if !same_keys {
        report.differences.push(format!("{METADATA_NAME} is not the source's key-value area"));
    }

    let total = set.tensors().map(|(_, tensor)| tensor.size).sum();
    let mut buffer = Vec::new();
    for (part, tensor) in set.tensors() {
        report.tensors = report.tensors.saturating_add(1);
        if let Some(what) = compare(&container, part, tensor, &mut buffer)? {
            report.differences.push(format!("{}: {what}", tensor.name));
        }
        report.bytes = report.bytes.saturating_add(tensor.size);
        progress(Progress { phase: Phase::Compare, done: report.bytes, total });
    }
    Ok(report)
}

fn compare(
    container: &MappedSet,
    part: &GgufFile,
    tensor: &GgufTensor<'_>,
    buffer: &mut Vec<u8>,
) -> Result<Option<String>> {
    let Some(found) = container.find(tensor.name) else { return Ok(Some("missing in the container".to_owned())) };
    let info = found.info;
    if info.dtype().stock() != tensor.dtype {
        return Ok(Some(format!("type {} in the container, {} in the source", info.dtype(), tensor.dtype)));
    }
    if info.shape() != tensor.shape {
        return Ok(Some(format!("shape {} in the container, {} in the source", info.shape(), tensor.shape)));
    }
    if info.source_offset() != tensor.offset {
        return Ok(Some(format!("source offset {:#x}, the source has {:#x}", info.source_offset(), tensor.offset)));
    }
    if info.source_name_hash() != fnv1a64(tensor.name.as_bytes()) {
        return Ok(Some("the hash is not that of the name".to_owned()));
    }
    if info.extent().len() != tensor.size {
        return Ok(Some(format!("{} bytes in the container, {} in the source", info.extent().len(), tensor.size)));
    }
    // Row after row, also where the container has rows side by side.
    let stored = crate::source::container_payload(found);
    let (mut own, mut at) = (Vec::new(), 0u64);
    let mut difference = None;
    for_each_piece(part, part.extent(tensor), buffer, |piece| -> Result<()> {
        own.resize(piece.len(), 0);
        stored.read_at(at, &mut own)?;
        if difference.is_none() && own != piece {
            let within = own.iter().zip(piece).take_while(|(a, b)| a == b).count() as u64;
            difference = Some(format!("bytes differ from {:#x} on", at.saturating_add(within)));
        }
        at = at.saturating_add(piece.len() as u64);
        Ok(())
    })?;
    Ok(difference)
}
