//! One file of an export.

use super::stand_in::StandIn;
use super::stored::StoredTensor;
use super::stream::Hashed;
use crate::error::{Error, Result};
use crate::gguf::read_alignment;
use crate::write::zeros;
use p64_core::DType;
use p64_core::extent::align_up;
use p64_core::metadata::Metadata;
use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// A tensor on its way into a GGUF.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub stored: StoredTensor<'a>,
    /// How its payload is written there.
    pub stand_in: StandIn,
    /// Bytes of that.
    pub size: u64,
}

impl<'a> Outgoing<'a> {
    /// # Errors
    /// A ternary payload that is damaged.
    pub fn new(stored: StoredTensor<'a>) -> Result<Self> {
        let info = stored.info;
        let head = if info.dtype() == DType::Ternary { stored.tensor()?.bytes() } else { &[] };
        let stand_in = StandIn::of(info.dtype(), &info.shape(), head);
        let size = match stand_in {
            StandIn::Same(_) => info.extent().len(),
            // Refused with a reason where it is planned.
            other => other.dtype().byte_len(&info.shape()).ok().flatten().unwrap_or(u64::MAX),
        };
        Ok(Self { stored, stand_in, size })
    }
}

/// A GGUF of which every offset is known.
pub(super) struct Part<'a> {
    pub path: PathBuf,
    /// SHA-256 that the source had.
    pub digest: Option<&'a str>,
    /// Header, keys, tensor table.
    head: Vec<u8>,
    /// The payloads with their file offsets, in the order of the data.
    payloads: Vec<(Outgoing<'a>, u64)>,
    tensor_count: u64,
    file_len: u64,
}

/// What was written.
pub(super) struct Written {
    pub bytes: u64,
    pub sha256: String,
}

impl<'a> Part<'a> {
    /// Plans a file of the given keys and tensors (in the order of its table). `known` is the source's length and digest.
    ///
    /// # Errors
    /// Why the file cannot be, as a sentence.
    pub fn new(
        path: PathBuf,
        version: u32,
        key_count: u64,
        pairs: &Cow<'a, [u8]>,
        tensors: &[Outgoing<'a>],
        known: Option<(u64, &'a str)>,
    ) -> std::result::Result<Self, String> {
        let (metadata, _) = Metadata::parse_pairs(pairs, key_count, 0).map_err(|error| error.to_string())?;
        let alignment = u64::from(read_alignment(&metadata).map_err(|error| error.to_string())?);
        let overflow = || "the file would not fit 64 bits".to_owned();

        // Payloads stand without gaps in the order of their source offsets (acceptance rule G16), so that order is all
        // that is needed of those offsets; a container that was edited since is laid out afresh.
        let mut data: Vec<usize> = (0..tensors.len()).collect();
        data.sort_by_key(|&at| tensors.get(at).map(|tensor| (tensor.stored.info.source_offset(), tensor.size != 0)));
        let mut offsets = vec![0u64; tensors.len()];
        let (mut next, mut end) = (0u64, None);
        for &at in &data {
            let (Some(tensor), Some(slot)) = (tensors.get(at), offsets.get_mut(at)) else { continue };
            *slot = next;
            let own_end = next.checked_add(tensor.size).ok_or_else(overflow)?;
            if tensor.size != 0 {
                end = Some(own_end);
            }
            next = align_up(own_end, alignment).ok_or_else(overflow)?;
        }

        let head = head(version, key_count, pairs, tensors, &offsets);
        let info_end = head.len() as u64;
        let data_offset = align_up(info_end, alignment).ok_or_else(overflow)?;
        let payload_end = end.map_or(Some(info_end), |end| data_offset.checked_add(end)).ok_or_else(overflow)?;
        let padded = align_up(payload_end, alignment).ok_or_else(overflow)?;
        let file_len = known.map_or(padded, |(size, _)| size);
        if file_len < payload_end || file_len > padded.saturating_add(alignment) {
            return Err(format!("the source is said to have {file_len} bytes, its content needs {payload_end}"));
        }
        let payloads = data
            .iter()
            .filter_map(|&at| Some((*tensors.get(at)?, data_offset.saturating_add(*offsets.get(at)?))))
            .filter(|(tensor, _)| tensor.size != 0)
            .collect();
        let tensor_count = tensors.len() as u64;
        Ok(Self { path, digest: known.map(|(_, digest)| digest), head, payloads, tensor_count, file_len })
    }

    /// Tensors of the file, those without bytes too.
    pub const fn tensor_count(&self) -> u64 {
        self.tensor_count
    }

    /// The tensors that have bytes, in the order of the data.
    pub fn tensors(&self) -> impl Iterator<Item = &Outgoing<'a>> {
        self.payloads.iter().map(|(tensor, _)| tensor)
    }

    /// Bytes of all payloads.
    pub fn payload_len(&self) -> u64 {
        self.payloads.iter().map(|(tensor, _)| tensor.size).sum()
    }

    /// Writes the file and sums up its digest. `progress` is told the payload bytes of each piece.
    pub fn write(&self, file: &mut impl Write, progress: &mut dyn FnMut(u64)) -> Result<Written> {
        let failed = |error| Error::io(&self.path, "write it", error);
        let mut out = Hashed::new(BufWriter::with_capacity(1 << 18, file));
        out.write_all(&self.head).map_err(failed)?;
        for (Outgoing { stored, stand_in, .. }, offset) in &self.payloads {
            let tensor = stored.tensor()?;
            let gap = offset.saturating_sub(out.bytes());
            zeros(&mut out, gap).map_err(failed)?;
            let about = (stored.path(), stored.info.name());
            stand_in.write(tensor.bytes(), &stored.info.shape(), about, &mut |piece| -> Result<()> {
                out.write_all(piece).map_err(failed)?;
                progress(piece.len() as u64);
                Ok(())
            })?;
        }
        let tail = self.file_len.saturating_sub(out.bytes());
        zeros(&mut out, tail).map_err(failed)?;
        let (bytes, sha256) = out.finish().map_err(failed)?;
        Ok(Written { bytes, sha256 })
    }
}

fn head(version: u32, key_count: u64, pairs: &[u8], tensors: &[Outgoing<'_>], offsets: &[u64]) -> Vec<u8> {
    let mut out = Vec::from(*b"GGUF");
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&(tensors.len() as u64).to_le_bytes());
    out.extend_from_slice(&key_count.to_le_bytes());
    out.extend_from_slice(pairs);
    for (Outgoing { stored, stand_in, .. }, offset) in tensors.iter().zip(offsets) {
        let (info, shape) = (stored.info, stored.info.shape());
        out.extend_from_slice(&(info.name().len() as u64).to_le_bytes());
        out.extend_from_slice(info.name().as_bytes());
        out.extend_from_slice(&u32::try_from(shape.rank()).unwrap_or(0).to_le_bytes());
        for dim in shape.dims() {
            out.extend_from_slice(&u64::from(*dim).to_le_bytes());
        }
        out.extend_from_slice(&u32::from(stand_in.dtype().id()).to_le_bytes());
        out.extend_from_slice(&offset.to_le_bytes());
    }
    out
}
