//! Spec §4, §14.5 to §14.7: where the sections lie, and that they tile the file's front without overlap.
#![forbid(unsafe_code)]

use super::policy::{Checked, Report};
use crate::error::{Code, Error, Place, Section};
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
fn place(section: Section, start: u32, count: u64, size: u64, limit: u64, report: &mut Report<'_>) -> Checked<Extent> {
    let extent = Extent::of_records(u64::from(start), count, size);
    extent.filter(|extent| extent.end() <= limit).ok_or_else(|| {
        let end = extent.map_or(u64::MAX, |extent| extent.end());
        report.refuse(error(Code::SectionBounds, section).at(u64::from(start)).values(limit, end))
    })
}

/// Where the hyperparameters lie in a file of `len` bytes.
pub(crate) fn locate_hparams(header: &RawHeader, len: u64, report: &mut Report<'_>) -> Checked<Extent> {
    place(Section::HParams, header.hparams_offset.get(), 1, num::wide(RECORD), len, report)
}

pub(super) fn check(file: &[u8], header: &RawHeader, report: &mut Report<'_>) -> Checked<Sections> {
    let len = num::wide(file.len());
    let hparams = locate_hparams(header, len, report)?;
    let record = hparams.of(file).and_then(|bytes| RawHParams::ref_from_bytes(bytes).ok());
    let sections = locate(header, record.map_or(0, |h| h.n_layer.get()), len, report)?;
    // Every byte before the checksum table that no section covers must be zero.
    for (section, gap) in sections.gaps() {
        if let Some(nonzero) = super::first_nonzero(gap.of(file).unwrap_or_default(), gap.start()) {
            report.deviation(gap_not_zero(section, nonzero))?;
        }
    }
    Ok(sections)
}

pub(crate) fn gap_not_zero(section: Section, (at, byte): (u64, u64)) -> Error {
    error(Code::GapNotZero, section).at(at).values(0, byte)
}

/// Places all sections of a file of `len` bytes by its header and its number of layers, and checks their order.
#[inline(never)]
pub(crate) fn locate(header: &RawHeader, n_layer: u32, len: u64, report: &mut Report<'_>) -> Checked<Sections> {
    let record = num::wide(RECORD);
    let tensor_count = u64::from(header.tensor_count.get());

    let hparams = locate_hparams(header, len, report)?;
    if n_layer > MAX_LAYERS {
        return Err(
            report.refuse(error(Code::LayerLimit, Section::HParams).values(u64::from(MAX_LAYERS), u64::from(n_layer)))
        );
    }
    let n_layer = u64::from(n_layer);

    let checksum_start = header.checksum_offset.get();
    let entries = tensor_count.saturating_add(1);
    let checksums = place(Section::Checksums, checksum_start, entries, 4, len, report)?;
    let limit = checksums.start();
    let tensors = place(Section::TensorTable, header.tensor_table_offset.get(), tensor_count, record, limit, report)?;
    let manifold_start = header.manifold_table_offset.get();
    let manifold = place(Section::Manifold, manifold_start, n_layer.saturating_add(1), record, limit, report)?;
    let strings = between(Section::Strings, header.string_table_offset.get(), manifold_start, report)?;
    let tokenizer = between(Section::Tokenizer, header.tokenizer_offset.get(), checksum_start, report)?;

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
            return Err(
                report.refuse(error(Code::SectionOrder, section).at(extent.start()).values(end, extent.start()))
            );
        }
        end = extent.end();
    }

    let schedule = if header.flags().contains(Flags::LAYER_SCHEDULE) {
        let extent = place(Section::Schedule, header.role_table_offset.get(), n_layer, record, limit, report)?;
        let others = in_order.map(|(_, other)| other);
        let clash = others.iter().find(|other| other.overlaps(&extent));
        let header_end = Some(record).filter(|&end| extent.start() < end);
        if let Some(end) = clash.map(Extent::end).or(header_end) {
            let finding = error(Code::SectionOrder, Section::Schedule).at(extent.start());
            return Err(report.refuse(finding.values(end, extent.start())));
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
                return Err(report.refuse(finding));
            }
            report.deviation(finding)?;
        }
    }
    let floor = align_up(checksums.end(), u64::from(header.page_size.get()));
    let overflow = error(Code::SectionBounds, Section::Checksums).values(len, u64::MAX);
    let blob_floor = floor.ok_or_else(|| report.refuse(overflow))?;
    Ok(Sections { hparams, schedule, tensors, strings, manifold, tokenizer, checksums, blob_floor })
}

fn between(section: Section, start: u32, end: u32, report: &mut Report<'_>) -> Checked<Extent> {
    let (start, end) = (u64::from(start), u64::from(end));
    Extent::between(start, end)
        .ok_or_else(|| report.refuse(error(Code::SectionOrder, section).at(start).values(end, start)))
}

impl Sections {
    /// The ranges before the checksum table that no section covers, each with the section behind it; most are empty.
    pub(crate) fn gaps(&self) -> [(Section, Extent); 7] {
        let in_order = [
            (Section::HParams, self.hparams),
            (Section::TensorTable, self.tensors),
            (Section::Strings, self.strings),
            (Section::Manifold, self.manifold),
            (Section::Tokenizer, self.tokenizer),
            (Section::Checksums, self.checksums),
        ];
        let key = |extent: &Extent| (extent.start(), extent.end());
        // The schedule may stand anywhere between the others, which stand in this order.
        let schedule = self.schedule.unwrap_or_default();
        let before = in_order.iter().take_while(|(_, extent)| key(extent) < key(&schedule)).count();
        let mut sections = in_order.into_iter();
        let mut end = num::wide(RECORD);
        core::array::from_fn(|at| {
            let here = if at == before { None } else { sections.next() };
            let (section, extent) = here.unwrap_or((Section::Schedule, schedule));
            let gap = Extent::between(end, extent.start()).unwrap_or_default();
            end = end.max(extent.end());
            (section, gap)
        })
    }
}

pub(super) fn check_tokenizer<'a>(
    file: &'a [u8],
    header: &RawHeader,
    sections: &Sections,
    report: &mut Report<'_>,
) -> Checked<Option<Tokenizer<'a>>> {
    if sections.tokenizer.is_empty() {
        check_absent_tokenizer(header, sections, report)?;
        return Ok(None);
    }
    let bytes = sections.tokenizer.of(file).unwrap_or_default();
    let tokenizer = Tokenizer::check(bytes, sections.tokenizer.start(), report);
    tokenizer.map(Some).map_err(|error| report.refuse(error))
}

/// Only files that are no complete models may lack the section.
pub(crate) fn check_absent_tokenizer(header: &RawHeader, sections: &Sections, report: &mut Report<'_>) -> Checked<()> {
    if header.flags().contains(Flags::RAW_TRANSCODE) {
        return Ok(());
    }
    report.deviation(error(Code::TokenizerMissing, Section::Tokenizer).at(sections.tokenizer.start()))
}
