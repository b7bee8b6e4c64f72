//! Spec §4, §14.5 to §14.7: where the sections lie, and that they tile the file's front without overlap.
#![forbid(unsafe_code)]

use super::policy::Report;
use crate::error::{Code, Error, Place, Result, Section};
use crate::extent::{Extent, align_up, is_aligned};
use crate::layout::flags::Flags;
use crate::layout::header::RawHeader;
use crate::layout::hparams::RawHParams;
use crate::layout::{RECORD, SECTION_ALIGN};
use crate::limits::MAX_LAYERS;
use crate::num;
use crate::tokenizer::Tokenizer;
use zerocopy::FromBytes;

/// The extents of all sections, in the order of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sections {
    /// The hyperparameters, 64 bytes.
    pub hparams: Extent,
    /// The layer schedule, `n_layer` records, when flag bit 6 is set.
    pub schedule: Option<Extent>,
    /// The tensor entries.
    pub tensors: Extent,
    /// The string table, with its padding.
    pub strings: Extent,
    /// The manifold records, `n_layer + 1`.
    pub manifold: Extent,
    /// The Q42T section with its padding; empty when there is none.
    pub tokenizer: Extent,
    /// The checksum table.
    pub checksums: Extent,
    /// No blob begins below this offset.
    pub blob_floor: u64,
}

fn error(code: Code, section: Section) -> Error {
    Error::new(code, Place::Section(section))
}

/// `count` records at `start`, all before `limit`.
fn place(section: Section, start: u32, count: u64, size: u64, limit: u64) -> Result<Extent> {
    let extent = Extent::of_records(u64::from(start), count, size);
    extent.filter(|extent| extent.end() <= limit).ok_or_else(|| {
        let end = extent.map_or(u64::MAX, |extent| extent.end());
        error(Code::SectionBounds, section).at(u64::from(start)).values(limit, end)
    })
}

pub(super) fn check(file: &[u8], header: &RawHeader, report: &mut Report<'_>) -> Result<Sections> {
    let len = num::wide(file.len());
    let record = num::wide(RECORD);
    let tensor_count = u64::from(header.tensor_count.get());

    let hparams = place(Section::HParams, header.hparams_offset.get(), 1, record, len)?;
    let n_layer =
        hparams.of(file).and_then(|bytes| RawHParams::ref_from_bytes(bytes).ok()).map_or(0, |h| h.n_layer.get());
    if n_layer > MAX_LAYERS {
        return Err(error(Code::LayerLimit, Section::HParams).values(u64::from(MAX_LAYERS), u64::from(n_layer)));
    }
    let n_layer = u64::from(n_layer);

    let checksum_start = header.checksum_offset.get();
    let entries = tensor_count.saturating_add(1);
    let checksums = place(Section::Checksums, checksum_start, entries, 4, len)?;
    let limit = checksums.start();
    let tensors = place(Section::TensorTable, header.tensor_table_offset.get(), tensor_count, record, limit)?;
    let manifold_start = header.manifold_table_offset.get();
    let manifold = place(Section::Manifold, manifold_start, n_layer.saturating_add(1), record, limit)?;
    let strings = between(Section::Strings, header.string_table_offset.get(), manifold_start)?;
    let tokenizer = between(Section::Tokenizer, header.tokenizer_offset.get(), checksum_start)?;

    // The required order; the schedule may stand anywhere and is looked at apart.
    let mut end = record;
    let in_order = [
        (Section::HParams, hparams),
        (Section::TensorTable, tensors),
        (Section::Strings, strings),
        (Section::Manifold, manifold),
        (Section::Tokenizer, tokenizer),
        (Section::Checksums, checksums),
    ];
    for (section, extent) in in_order {
        if extent.start() < end {
            return Err(error(Code::SectionOrder, section).at(extent.start()).values(end, extent.start()));
        }
        end = extent.end();
    }

    let schedule = if header.flags().contains(Flags::LAYER_SCHEDULE) {
        let extent = place(Section::Schedule, header.role_table_offset.get(), n_layer, record, limit)?;
        let others = in_order.map(|(_, other)| other);
        let clash = others.iter().find(|other| other.overlaps(&extent));
        let header_end = Some(record).filter(|&end| extent.start() < end);
        if let Some(end) = clash.map(Extent::end).or(header_end) {
            let finding = error(Code::SectionOrder, Section::Schedule).at(extent.start());
            return Err(finding.values(end, extent.start()));
        }
        Some(extent)
    } else {
        None
    };

    for (section, extent, required) in [
        (Section::Manifold, manifold, true),
        (Section::Tokenizer, tokenizer, false),
        (Section::Checksums, checksums, false),
    ] {
        if !is_aligned(extent.start(), SECTION_ALIGN) {
            let finding =
                error(Code::SectionAlignment, section).at(extent.start()).values(SECTION_ALIGN, extent.start());
            if required {
                return Err(finding);
            }
            report.deviation(finding)?;
        }
    }
    check_gaps(file, in_order, schedule, report)?;

    let floor = align_up(checksums.end(), u64::from(header.page_size.get()));
    let blob_floor = floor.ok_or_else(|| error(Code::SectionBounds, Section::Checksums).values(len, u64::MAX))?;
    Ok(Sections { hparams, schedule, tensors, strings, manifold, tokenizer, checksums, blob_floor })
}

fn between(section: Section, start: u32, end: u32) -> Result<Extent> {
    let (start, end) = (u64::from(start), u64::from(end));
    Extent::between(start, end).ok_or_else(|| error(Code::SectionOrder, section).at(start).values(end, start))
}

/// Every byte before the checksum table that no section covers must be zero.
fn check_gaps(
    file: &[u8],
    in_order: [(Section, Extent); 6],
    schedule: Option<Extent>,
    report: &mut Report<'_>,
) -> Result<()> {
    let mut all = [(Section::Schedule, Extent::default()); 7];
    for (slot, section) in all.iter_mut().zip(in_order) {
        *slot = section;
    }
    if let (Some(last), Some(extent)) = (all.last_mut(), schedule) {
        *last = (Section::Schedule, extent);
    }
    all.sort_unstable_by_key(|(_, extent)| (extent.start(), extent.end()));
    let mut end = num::wide(RECORD);
    for (section, extent) in all {
        let gap = Extent::between(end, extent.start()).and_then(|gap| gap.of(file)).unwrap_or_default();
        if let Some((at, byte)) = super::first_nonzero(gap, end) {
            report.deviation(error(Code::GapNotZero, section).at(at).values(0, byte))?;
        }
        end = end.max(extent.end());
    }
    Ok(())
}

pub(super) fn check_tokenizer<'a>(
    file: &'a [u8],
    header: &RawHeader,
    sections: &Sections,
    report: &mut Report<'_>,
) -> Result<Option<Tokenizer<'a>>> {
    let bytes = sections.tokenizer.of(file).unwrap_or_default();
    let start = sections.tokenizer.start();
    if bytes.is_empty() {
        if !header.flags().contains(Flags::RAW_TRANSCODE) {
            report.deviation(error(Code::TokenizerMissing, Section::Tokenizer).at(start))?;
        }
        return Ok(None);
    }
    Tokenizer::check(bytes, start, report).map(Some)
}
