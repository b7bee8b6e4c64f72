//! `p64.provenance`: what export needs beside the source's keys (spec §17.2).

use crate::gguf::GgufSet;
use crate::write::Pairs;
use p64_core::container::{Container, METADATA_NAME, PROVENANCE_NAME};
use p64_core::layout::tensor::RawTensorEntry;
use p64_core::metadata::{Metadata, Value};

/// Profile of a conversion that keeps every byte.
pub(crate) const PRESERVING: &str = "gguf-preserving";

/// Length of a SHA-256 in hexadecimal digits.
pub(super) const DIGEST_LEN: usize = 64;

/// The keys of a conversion. `digests` has one SHA-256 per file of the source; `order` is the place in the container of
/// each tensor of the source's tables, and `is_default` says whether the exporter would find that order by itself.
pub(super) fn pairs(set: &GgufSet, digests: &[String], order: &[u32], is_default: bool) -> Pairs {
    let mut pairs = Pairs::new();
    let version = set.parts().first().map_or(0, |part| part.gguf().version());
    pairs.str("p64.profile", PRESERVING).str("p64.source.format", &format!("gguf v{version}"));
    match (set.parts(), digests) {
        ([only], [digest]) => {
            pairs.u64("p64.source.size", only.gguf().file_len()).str("p64.source.sha256", digest);
            if !is_default {
                pairs.u32_array("p64.source.tensor_order", order);
            }
        }
        (parts, digests) => {
            pairs.u32_array("p64.source.tensor_order", order);
            let sizes: Vec<u64> = parts.iter().map(|part| part.gguf().file_len()).collect();
            let tensors = parts.iter().map(|part| u32::try_from(part.gguf().tensors().len()).unwrap_or(u32::MAX));
            pairs.u64_array("p64.source.split.sizes", &sizes).str_array("p64.source.split.sha256", digests);
            pairs.u32_array("p64.source.split.tensors", &tensors.collect::<Vec<_>>());
            let mut areas = Vec::new();
            for part in parts.iter().skip(1) {
                let metadata = part.gguf().metadata();
                areas.extend_from_slice(&crate::write::area(u64::from(metadata.len()), metadata.pair_bytes()));
            }
            pairs.u8_array("p64.source.split.metadata", &areas);
        }
    }
    pairs.str("p64.writer", concat!("p64 ", env!("CARGO_PKG_VERSION")));
    pairs
}

/// What the provenance of a container says of its source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Provenance<'a> {
    /// The producer profile.
    pub profile: Option<&'a str>,
    /// Version of the GGUF.
    pub version: Option<u32>,
    /// Place in the container of each tensor of the source, tables one after the other.
    pub order: Option<Vec<u32>>,
    /// The files of the source, one unless it was split; empty when nothing is said of them.
    pub parts: Vec<PartProvenance<'a>>,
}

/// One file of the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartProvenance<'a> {
    pub size: u64,
    pub digest: &'a str,
    /// Tensors of the file; `None` for all.
    pub tensors: Option<u32>,
    /// Number and bytes of the keys; `None` for those of `p64.metadata`.
    pub pairs: Option<(u64, &'a [u8])>,
}

impl<'a> Provenance<'a> {
    /// Reads the keys; `Err` names the one that makes no sense.
    pub fn read(metadata: &Metadata<'a>) -> Result<Self, &'static str> {
        let format = metadata.str("p64.source.format").map_err(|_| "p64.source.format")?;
        let version = match format {
            None => None,
            Some("gguf v2") => Some(2),
            Some("gguf v3") => Some(3),
            Some(_) => return Err("p64.source.format"),
        };
        let order = metadata.array("p64.source.tensor_order").map_err(|_| "p64.source.tensor_order")?;
        let order = order.map(|order| order.iter().map(narrow).collect::<Option<Vec<u32>>>());
        let order = order.map(|order| order.ok_or("p64.source.tensor_order")).transpose()?;
        let profile = metadata.str("p64.profile").map_err(|_| "p64.profile")?;
        let size = metadata.get("p64.source.size").map(|v| v.as_u64().ok_or("p64.source.size")).transpose()?;
        let digest = metadata.str("p64.source.sha256").map_err(|_| "p64.source.sha256")?;
        let parts = match (size, digest) {
            (Some(size), Some(digest)) => vec![PartProvenance { size, digest, tensors: None, pairs: None }],
            _ => Self::read_split(metadata).ok_or("p64.source.split.*")?,
        };
        Ok(Self { profile, version, order, parts })
    }

    fn read_split(metadata: &Metadata<'a>) -> Option<Vec<PartProvenance<'a>>> {
        let array = |key: &str| metadata.array(key).ok().flatten();
        let Some(sizes) = array("p64.source.split.sizes") else { return Some(Vec::new()) };
        let digests = array("p64.source.split.sha256")?;
        let counts = array("p64.source.split.tensors")?;
        let mut areas = array("p64.source.split.metadata")?.bytes();
        if digests.len() != sizes.len() || counts.len() != sizes.len() {
            return None;
        }
        let mut parts = Vec::new();
        for (size, (digest, count)) in sizes.iter().zip(digests.iter().zip(counts.iter())) {
            let pairs = if parts.is_empty() {
                None
            } else {
                let (count, rest) = areas.split_first_chunk()?;
                let count = u64::from_le_bytes(*count);
                let (_, used) = Metadata::parse_pairs(rest, count, 0).ok()?;
                let (pairs, rest) = rest.split_at_checked(used)?;
                areas = rest;
                Some((count, pairs))
            };
            parts.push(PartProvenance {
                size: size.as_u64()?,
                digest: digest.as_str()?,
                tensors: Some(narrow(count)?),
                pairs,
            });
        }
        areas.is_empty().then_some(parts)
    }
}

fn narrow(value: Value<'_>) -> Option<u32> {
    value.as_u64().and_then(|value| u32::try_from(value).ok())
}

/// The container's tensors that come from the source, in the default order (spec §17.2).
pub(crate) fn default_order(container: &Container<'_>) -> Vec<u32> {
    let own = container.tensors().filter(|info| !is_added(info.name()));
    let mut keys: Vec<_> = own.map(|info| (info.source_offset(), !info.extent().is_empty(), info.index())).collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, _, index)| index).collect()
}

/// Whether a tensor was added by the converter.
pub(crate) fn is_added(name: &str) -> bool {
    name == METADATA_NAME || name == PROVENANCE_NAME
}

/// As [`default_order`], of descriptions that stand in file order with those from the source first.
pub(super) fn is_default_order(in_file_order: &[(u64, u64)], order: &[u32]) -> bool {
    let mut keys: Vec<_> = (0u32..).zip(in_file_order).map(|(i, &(offset, size))| (offset, size != 0, i)).collect();
    debug_assert!(in_file_order.iter().all(|(offset, _)| *offset != RawTensorEntry::NO_SOURCE));
    keys.sort_unstable();
    keys.iter().map(|(_, _, index)| index).eq(order)
}
