//! Everything of a container before its checksum table (spec §4), as bytes.

use super::error::PlanError;
use super::plan::{Draft, Model, TensorDescription};
use p64_core::extent::{Extent, align_up};
use p64_core::layout::flags::Flags;
use p64_core::layout::header::{MAGIC, RawHeader};
use p64_core::layout::manifold::RawManifold;
use p64_core::layout::schedule::RawLayerScheduleEntry;
use p64_core::layout::tensor::RawTensorEntry;
use p64_core::layout::{RECORD, SECTION_ALIGN};
use p64_core::limits::MAX_FILE_V4;
use std::ops::Range;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

const RECORD_LEN: u64 = RECORD as u64;

/// Where the sections stand, in the canonical order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    schedule: Extent,
    tensors: Extent,
    strings: Extent,
    manifold: Extent,
    tokenizer: Extent,
    pub checksums: Extent,
}

impl Layout {
    pub fn new(model: &Model, flags: Flags) -> Result<Self, PlanError> {
        let layout = Self::place(model, flags).ok_or(PlanError::TooLarge { bytes: u64::MAX })?;
        // Blobs alone may lie past 4 GiB, whatever the version.
        let bytes = layout.checksums.end();
        if bytes > MAX_FILE_V4 { Err(PlanError::TooLarge { bytes }) } else { Ok(layout) }
    }

    fn place(model: &Model, flags: Flags) -> Option<Self> {
        let n_layer = u64::from(model.hparams.n_layer.get());
        let count = model.tensors.len() as u64;
        let records = if flags.contains(Flags::LAYER_SCHEDULE) { n_layer } else { 0 };
        let names =
            model.tensors.iter().try_fold(1u64, |sum, t| sum.checked_add(t.name.len() as u64)?.checked_add(1))?;

        let schedule = Extent::of_records(RECORD_LEN.checked_mul(2)?, records, RECORD_LEN)?;
        let tensors = Extent::of_records(schedule.end(), count, RECORD_LEN)?;
        let strings = Extent::between(tensors.end(), align_up(tensors.end().checked_add(names)?, SECTION_ALIGN)?)?;
        let manifold = Extent::of_records(strings.end(), n_layer.checked_add(1)?, RECORD_LEN)?;
        let tokenizer_len = model.tokenizer.as_ref().map_or(0, Vec::len) as u64;
        let tokenizer = Extent::new(manifold.end(), align_up(tokenizer_len, SECTION_ALIGN)?)?;
        let checksums = Extent::of_records(tokenizer.end(), count.checked_add(1)?, 4)?;
        Some(Self { schedule, tensors, strings, manifold, tokenizer, checksums })
    }
}

/// The bytes before the checksum table.
pub(super) fn build(draft: &Draft<'_>) -> Result<Vec<u8>, PlanError> {
    let Draft { model, layout, tensors, .. } = draft;
    let n_layer = model.hparams.n_layer.get();
    let mut out = Vec::new();
    out.extend_from_slice(header(draft)?.as_bytes());
    out.extend_from_slice(model.hparams.as_bytes());
    if !layout.schedule.is_empty() {
        for record in schedule(tensors, n_layer)? {
            out.extend_from_slice(record.as_bytes());
        }
    }
    let mut name_offset = 1u64;
    for (tensor, range) in tensors {
        out.extend_from_slice(entry(tensor, range, name_offset, n_layer)?.as_bytes());
        name_offset = name_offset.saturating_add(tensor.name.len() as u64).saturating_add(1);
    }
    out.push(0);
    for (tensor, _) in tensors {
        out.extend_from_slice(tensor.name.as_bytes());
        out.push(0);
    }
    pad_to(&mut out, layout.manifold.start());
    for layer in 0..=n_layer {
        out.extend_from_slice(RawManifold::project(layer, n_layer).as_bytes());
    }
    out.extend_from_slice(model.tokenizer.as_deref().unwrap_or_default());
    pad_to(&mut out, layout.checksums.start());
    Ok(out)
}

fn pad_to(out: &mut Vec<u8>, end: u64) {
    // The layout was summed up from the lengths that were just written.
    debug_assert!(out.len() as u64 <= end);
    out.resize(usize::try_from(end).unwrap_or(out.len()), 0);
}

/// The layout has been bounded below 4 GiB; this is the belt to those braces.
fn narrow(value: u64) -> Result<u32, PlanError> {
    u32::try_from(value).map_err(|_| PlanError::TooLarge { bytes: value })
}

/// A number's low word, then its high one.
fn halves(value: u64) -> [U32; 2] {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    [U32::from_bytes([a, b, c, d]), U32::from_bytes([e, f, g, h])]
}

fn header(draft: &Draft<'_>) -> Result<RawHeader, PlanError> {
    let layout = &draft.layout;
    let role_table = if layout.schedule.is_empty() { 0 } else { layout.schedule.start() };
    Ok(RawHeader {
        magic: MAGIC,
        version: draft.version.into(),
        flags: draft.flags.0.into(),
        role_table_offset: narrow(role_table)?.into(),
        tensor_table_offset: narrow(layout.tensors.start())?.into(),
        tokenizer_offset: narrow(layout.tokenizer.start())?.into(),
        hparams_offset: narrow(RECORD_LEN)?.into(),
        string_table_offset: narrow(layout.strings.start())?.into(),
        checksum_offset: narrow(layout.checksums.start())?.into(),
        manifold_table_offset: narrow(layout.manifold.start())?.into(),
        tensor_count: narrow(draft.tensors.len() as u64)?.into(),
        page_size: draft.options.page_size.into(),
        reserved: [0; 20],
    })
}

fn entry(
    tensor: &TensorDescription,
    range: &Range<u64>,
    name_offset: u64,
    n_layer: u32,
) -> Result<RawTensorEntry, PlanError> {
    let rank = u32::try_from(tensor.shape.rank()).unwrap_or(0);
    // A file of version 4 ends below 4 GiB, and its high words are the zeros that it reserves.
    let [blob_offset, blob_offset_hi] = halves(range.start);
    let [blob_size, blob_size_hi] = halves(tensor.size);
    Ok(RawTensorEntry {
        name_offset: narrow(name_offset)?.into(),
        role_id: tensor.role.id().into(),
        dtype: tensor.dtype.id().into(),
        manifold_idx: tensor.manifold_idx(n_layer).into(),
        rank: rank.into(),
        dimensions: tensor.shape.raw().map(Into::into),
        blob_offset,
        blob_size,
        source_offset: tensor.source_offset.into(),
        source_name_hash: tensor.source_name_hash.into(),
        blob_offset_hi,
        blob_size_hi,
    })
}

/// One record per layer. In layer-major order, which a schedule requires, a layer's blobs stand together.
fn schedule(
    tensors: &[(&TensorDescription, Range<u64>)],
    n_layer: u32,
) -> Result<Vec<RawLayerScheduleEntry>, PlanError> {
    let mut rest = tensors;
    (0..n_layer)
        .map(|layer| {
            let count = rest.iter().take_while(|(tensor, _)| tensor.layer == Some(layer)).count();
            let (own, after) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = after;
            let begin = own.first().map_or(0, |(_, range)| range.start);
            let end = own.last().map_or(0, |(_, range)| range.end);
            let mask = own.iter().fold(0u16, |mask, (tensor, _)| mask | role_bit(tensor.role.id()));
            let [blob_begin, blob_begin_hi] = halves(begin);
            let [blob_end, blob_end_hi] = halves(end);
            let count = u16::try_from(count).map_err(|_| PlanError::TooManyTensors(count))?;
            Ok(RawLayerScheduleEntry {
                layer: layer.into(),
                blob_begin,
                blob_end,
                tensor_count: count.into(),
                roles_mask: mask.into(),
                blob_begin_hi,
                blob_end_hi,
                reserved: [0; 40],
            })
        })
        .collect()
}

fn role_bit(role: u16) -> u16 {
    1u16.checked_shl(u32::from(role)).unwrap_or(0)
}
