//! Spec §4, §14.5 to §14.7: where the sections lie, and that they tile the file's front without overlap.
#![forbid(unsafe_code)]

use super::policy::{Checked, Report};
use crate::error::{Code, Error, Place, Section};
use crate::extent::{Extent, align_up, is_aligned};
use crate::layout::flags::Flags;
use crate::layout::header::RawHeader;
use crate::layout::hparams::RawHParams;
use crate::layout::{RECORD, SECTION_ALIGN};
use crate::limits::{MAX_FILE_V4, MAX_LAYERS};
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
    let mut sections = Sections::default();
    sections.locate(header, record.map_or(0, |h| h.n_layer.get()), len, report)?;
    // Every byte before the checksum table that no section covers must be zero.
    for (section, gap) in (0..).map_while(|index| sections.gap(index)) {
        if let Some(nonzero) = super::first_nonzero(gap.of(file).unwrap_or_default(), gap.start()) {
            report.deviation(gap_not_zero(section, nonzero))?;
        }
    }
    Ok(sections)
}

pub(crate) fn gap_not_zero(section: Section, (at, byte): (u64, u64)) -> Error {
    error(Code::GapNotZero, section).at(at).values(0, byte)
}

impl Sections {
    /// Places all sections of a file of `len` bytes by its header and its number of layers, and checks their order.
    #[inline(never)]
    pub(crate) fn locate(
        &mut self,
        header: &RawHeader,
        n_layer: u32,
        len: u64,
        report: &mut Report<'_>,
    ) -> Checked<()> {
        let record = num::wide(RECORD);
        self.hparams = locate_hparams(header, len, report)?;
        if n_layer > MAX_LAYERS {
            let limit = error(Code::LayerLimit, Section::HParams).values(u64::from(MAX_LAYERS), u64::from(n_layer));
            return Err(report.refuse(limit));
        }
        let n_layer = u64::from(n_layer);
        let tensor_count = u64::from(header.tensor_count.get());
        let checksum_start = header.checksum_offset.get();
        // The blobs alone may lie past 4 GiB.
        let front = len.min(MAX_FILE_V4);
        self.checksums = place(Section::Checksums, checksum_start, tensor_count.saturating_add(1), 4, front, report)?;
        let limit = self.checksums.start();
        let table = header.tensor_table_offset.get();
        self.tensors = place(Section::TensorTable, table, tensor_count, record, limit, report)?;
        let manifold = header.manifold_table_offset.get();
        self.manifold = place(Section::Manifold, manifold, n_layer.saturating_add(1), record, limit, report)?;
        self.strings = between(Section::Strings, header.string_table_offset.get(), manifold, report)?;
        self.tokenizer = between(Section::Tokenizer, header.tokenizer_offset.get(), checksum_start, report)?;

        // The required order; the schedule may stand anywhere and is looked at apart.
        self.schedule = None;
        let mut end = record;
        for (section, extent) in (0..).map_while(|index| self.in_order(index)) {
            check_order(section, extent, end, report)?;
            end = extent.end();
        }
        if header.flags().contains(Flags::LAYER_SCHEDULE) {
            let extent = place(Section::Schedule, header.role_table_offset.get(), n_layer, record, limit, report)?;
            let mut others = (0..).map_while(|index| self.in_order(index));
            let clash = others.find(|(_, other)| other.overlaps(&extent));
            let clash = clash.map(|(_, other)| other.end()).or(Some(record).filter(|end| extent.start() < *end));
            if let Some(end) = clash {
                let finding = error(Code::SectionOrder, Section::Schedule).at(extent.start());
                return Err(report.refuse(finding.values(end, extent.start())));
            }
            self.schedule = Some(extent);
        }
        for index in 3..6 {
            let Some((section, extent)) = self.in_order(index).filter(|(_, e)| !is_aligned(e.start(), SECTION_ALIGN))
            else {
                continue;
            };
            let finding = error(Code::SectionAlignment, section).at(extent.start());
            let finding = finding.values(SECTION_ALIGN, extent.start());
            // Readers that map the records depend on the manifold's alignment.
            if section == Section::Manifold {
                return Err(report.refuse(finding));
            }
            report.deviation(finding)?;
        }
        let Some(floor) = align_up(self.checksums.end(), u64::from(header.page_size.get())) else {
            return Err(report.refuse(error(Code::SectionBounds, Section::Checksums).values(len, u64::MAX)));
        };
        self.blob_floor = floor;
        Ok(())
    }

    /// The sections that stand in a fixed order, which is all but the schedule.
    #[inline(never)]
    fn in_order(&self, index: u32) -> Option<(Section, Extent)> {
        Some(match index {
            0 => (Section::HParams, self.hparams),
            1 => (Section::TensorTable, self.tensors),
            2 => (Section::Strings, self.strings),
            3 => (Section::Manifold, self.manifold),
            4 => (Section::Tokenizer, self.tokenizer),
            5 => (Section::Checksums, self.checksums),
            _ => return None,
        })
    }

    /// The ranges before the checksum table that no section covers, each with the section behind it; most are empty.
    #[inline(never)]
    pub(crate) fn gap(&self, index: u32) -> Option<(Section, Extent)> {
        // The schedule may stand anywhere between the others; without one its gap is the first, and empty.
        let schedule = self.schedule.unwrap_or_default();
        let mut end = num::wide(RECORD);
        let mut others = 0;
        let mut schedule_is_next = true;
        for at in 0.. {
            let other = self.in_order(others);
            let key = |extent: &Extent| (extent.start(), extent.end());
            let (section, extent) = match other {
                Some(other) if !schedule_is_next || key(&other.1) < key(&schedule) => {
                    others = others.saturating_add(1);
                    other
                }
                _ if schedule_is_next => {
                    schedule_is_next = false;
                    (Section::Schedule, schedule)
                }
                _ => return None,
            };
            if at == index {
                return Some((section, Extent::between(end, extent.start()).unwrap_or_default()));
            }
            end = end.max(extent.end());
        }
        None
    }
}

fn check_order(section: Section, extent: Extent, end: u64, report: &mut Report<'_>) -> Checked<()> {
    if extent.start() >= end {
        return Ok(());
    }
    Err(report.refuse(error(Code::SectionOrder, section).at(extent.start()).values(end, extent.start())))
}

#[inline(never)]
fn between(section: Section, start: u32, end: u32, report: &mut Report<'_>) -> Checked<Extent> {
    let (start, end) = (u64::from(start), u64::from(end));
    Extent::between(start, end)
        .ok_or_else(|| report.refuse(error(Code::SectionOrder, section).at(start).values(end, start)))
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
