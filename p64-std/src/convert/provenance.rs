//! `p64.provenance`: what export needs beside the source's keys (spec §17.2).

use crate::write::Pairs;
use p64_core::container::{METADATA_NAME, PROVENANCE_NAME, TensorInfo};
use p64_core::metadata::{Metadata, Value};

/// Profile of a conversion that keeps every byte.
pub(crate) const PRESERVING: &str = "gguf-preserving";

/// How the profiles end whose payloads were replaced.
const QUANTIZED: &str = "-quantized";

/// Length of a SHA-256 in hexadecimal digits.
pub(super) const DIGEST_LEN: usize = 64;

/// The profile of a container whose source is described by `source`. `is_changed` says whether a payload was replaced.
pub(super) fn profile(source: &Pairs, is_raw: bool, is_changed: bool) -> String {
    let area = source.to_area();
    let metadata = Metadata::parse(&area, 0).unwrap_or(Metadata::EMPTY);
    let format = metadata.str("p64.source.format").ok().flatten().unwrap_or_default();
    let given = metadata.str("p64.profile").ok().flatten();
    let profile = match given {
        // A container that was made from this source before.
        Some(profile) if !is_changed || profile.ends_with(QUANTIZED) => profile,
        _ if format.starts_with("safetensors") => match (is_changed, is_raw) {
            (true, _) => "safetensors-quantized",
            (false, true) => "safetensors-raw",
            (false, false) => "safetensors-complete",
        },
        _ if is_changed => "gguf-quantized",
        _ => PRESERVING,
    };
    profile.to_owned()
}

/// Whether the container's tensors are the source's, one for one, so that their order in the source means something.
pub(super) fn keeps_order(profile: &str) -> bool {
    profile.starts_with("gguf-") || profile == "safetensors-raw"
}

/// Whether the source's files are told in arrays.
pub(super) fn is_split(source: &Pairs) -> bool {
    has(source, "p64.source.split.sizes")
}

/// `p64.source.format`, empty when `source` has none.
pub(super) fn format(source: &Pairs) -> String {
    let area = source.to_area();
    let metadata = Metadata::parse(&area, 0).unwrap_or(Metadata::EMPTY);
    metadata.str("p64.source.format").ok().flatten().unwrap_or_default().to_owned()
}

fn has(pairs: &Pairs, key: &str) -> bool {
    let area = pairs.to_area();
    Metadata::parse(&area, 0).is_ok_and(|metadata| metadata.get(key).is_some())
}

/// The keys that do not depend on the source's bytes and order, in any order.
pub(super) fn known(source: &Pairs, profile: &str) -> Pairs {
    let area = source.to_area();
    let metadata = Metadata::parse(&area, 0).unwrap_or(Metadata::EMPTY);
    let mut pairs = Pairs::new();
    pairs.str("p64.profile", profile).str("p64.writer", concat!("p64 ", env!("CARGO_PKG_VERSION")));
    let replaced = ["p64.profile", "p64.writer", "p64.source.tensor_order"];
    for (key, value) in metadata.iter().filter(|(key, _)| !replaced.contains(key)) {
        pairs.value(key, value);
    }
    pairs
}

/// All keys, in the order of spec §17.2. `sizes` and `digests` have an element for each file of the source; none when
/// `known` has those keys from an earlier conversion.
pub(super) fn pairs(known: &Pairs, sizes: &[u64], digests: &[String], order: Option<&[u32]>) -> Pairs {
    let mut all = known.clone();
    match (sizes, digests) {
        _ if has(known, "p64.source.sha256") || is_split(known) => {}
        ([], _) => {}
        ([size], [digest]) => {
            all.u64("p64.source.size", *size).str("p64.source.sha256", digest);
        }
        (sizes, digests) => {
            all.u64_array("p64.source.split.sizes", sizes).str_array("p64.source.split.sha256", digests);
        }
    }
    if let Some(order) = order {
        all.u32_array("p64.source.tensor_order", order);
    }
    let area = all.to_area();
    let metadata = Metadata::parse(&area, 0).unwrap_or(Metadata::EMPTY);
    let mut sorted: Vec<_> = metadata.iter().collect();
    sorted.sort_by_key(|(key, _)| rank(key));
    let mut pairs = Pairs::new();
    for (key, value) in sorted {
        pairs.value(key, value);
    }
    pairs
}

/// Place of a key in the table of spec §17.2; those of one place keep their order.
fn rank(key: &str) -> usize {
    const KEYS: [&str; 12] = [
        "p64.profile",
        "p64.source.format",
        "p64.source.size",
        "p64.source.sha256",
        "p64.source.tensor_order",
        "p64.source.split.sizes",
        "p64.source.split.sha256",
        "p64.source.split.tensors",
        "p64.source.split.metadata",
        "p64.source.",
        "p64.alias.",
        "split.",
    ];
    let place = KEYS.iter().position(|known| *known == key);
    let place = place.or_else(|| KEYS.iter().position(|known| known.ends_with('.') && key.starts_with(known)));
    place.unwrap_or(KEYS.len())
}

/// What the provenance of a container says of its source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Provenance<'a> {
    /// Whether payloads were replaced (spec §13.2).
    pub is_quantized: bool,
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
            Some(other) if other.starts_with("gguf") => return Err("p64.source.format"),
            Some(_) => None,
        };
        let order = metadata.array("p64.source.tensor_order").map_err(|_| "p64.source.tensor_order")?;
        let order = order.map(|order| order.iter().map(narrow).collect::<Option<Vec<u32>>>());
        let order = order.map(|order| order.ok_or("p64.source.tensor_order")).transpose()?;
        let profile = metadata.str("p64.profile").map_err(|_| "p64.profile")?;
        let size = metadata.get("p64.source.size").map(|v| v.as_u64().ok_or("p64.source.size")).transpose()?;
        let digest = metadata.str("p64.source.sha256").map_err(|_| "p64.source.sha256")?;
        let parts = match (size, digest) {
            // Of a container whose payloads were replaced, the source's lengths and digests say nothing (spec §13.2).
            _ if profile.is_some_and(|profile| profile != PRESERVING) => Vec::new(),
            (Some(size), Some(digest)) => vec![PartProvenance { size, digest, tensors: None, pairs: None }],
            _ => Self::read_split(metadata).ok_or("p64.source.split.*")?,
        };
        Ok(Self { is_quantized: profile.is_some_and(|profile| profile.ends_with(QUANTIZED)), version, order, parts })
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

/// The places of the tensors that come from the source, in the default order (spec §17.2).
pub(crate) fn default_order<'a>(own: impl Iterator<Item = (u32, TensorInfo<'a>)>) -> Vec<u32> {
    let mut keys: Vec<_> = own.map(|(place, info)| (info.source_offset(), !info.extent().is_empty(), place)).collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, _, place)| place).collect()
}

/// Whether a tensor was added by the converter.
pub(crate) fn is_added(name: &str) -> bool {
    name == METADATA_NAME || name == PROVENANCE_NAME
}

/// As [`default_order`], of descriptions that stand in file order with those from the source first.
pub(super) fn is_default_order(in_file_order: &[(u64, u64)], order: &[u32]) -> bool {
    let mut keys: Vec<_> = (0u32..).zip(in_file_order).map(|(i, &(offset, size))| (offset, size != 0, i)).collect();
    keys.sort_unstable();
    keys.iter().map(|(_, _, index)| index).eq(order)
}
