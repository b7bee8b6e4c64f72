//! Spec §7.4, §12, §14.12: where the payloads lie, and that nothing but zero lies between and behind them.
#![forbid(unsafe_code)]

use super::policy::{Checked, Report};
use super::sections::Sections;
use crate::error::{Code, Error, Place, Section};
use crate::extent::{Extent, align_up, is_aligned};
use crate::layout::flags::Flags;
use crate::layout::header::{OffsetWidth, RawHeader};
use crate::layout::tensor::RawTensorEntry;
use crate::layout::{PACK_ALIGN, SECTION_ALIGN};
use crate::num;

pub(super) fn check(
    file: &[u8],
    entries: &[RawTensorEntry],
    header: &RawHeader,
    sections: &Sections,
    report: &mut Report<'_>,
) -> Checked<()> {
    let nonzero = |gap: Extent| super::first_nonzero(gap.of(file).unwrap_or_default(), gap.start());
    let mut blobs = Blobs::new(header, sections, num::wide(file.len()));
    for (index, entry) in (0u32..).zip(entries) {
        let gap = blobs.accept(index, entry, report)?;
        if let Some(nonzero) = nonzero(gap) {
            report.deviation(padding(index, nonzero))?;
        }
    }
    if let Some(nonzero) = nonzero(blobs.tail()) {
        report.deviation(tail_padding(nonzero))?;
    }
    blobs.check_length(report)
}

/// The blobs seen so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blobs {
    len: u64,
    page: u64,
    packed: bool,
    width: OffsetWidth,
    floor: u64,
    /// Where the last one ended.
    end: u64,
    /// The layer of the last one.
    group: Option<u32>,
}

impl Blobs {
    /// None yet, of a file of `len` bytes.
    pub(crate) fn new(header: &RawHeader, sections: &Sections, len: u64) -> Self {
        Self {
            len,
            page: u64::from(header.page_size.get()),
            packed: header.flags().contains(Flags::LAYER_PACK),
            width: header.offset_width(),
            floor: sections.blob_floor,
            end: sections.checksums.end(),
            group: None,
        }
    }

    /// Checks where the next one lies, and answers with the gap before it, which must be zero.
    #[inline(never)]
    pub(crate) fn accept(&mut self, index: u32, entry: &RawTensorEntry, report: &mut Report<'_>) -> Checked<Extent> {
        let error = |code| Error::new(code, Place::Tensor(index));
        let extent = entry.extent(self.width);
        let manifold_idx = entry.manifold_idx.get();
        let within = self.packed && self.group == Some(manifold_idx);
        let alignment = if within { PACK_ALIGN.min(self.page) } else { self.page };
        if !is_aligned(extent.start(), alignment) {
            return Err(report.refuse(error(Code::BlobAlignment).values(alignment, extent.start())));
        }
        if extent.start() < self.floor {
            return Err(report.refuse(error(Code::BlobFloor).values(self.floor, extent.start())));
        }
        let Some(gap) = Extent::between(self.end, extent.start()) else {
            return Err(report.refuse(error(Code::BlobOrder).values(self.end, extent.start())));
        };
        if extent.end() > self.len {
            return Err(report.refuse(error(Code::BlobBounds).values(self.len, extent.end())));
        }
        self.end = extent.end();
        self.group = Some(manifold_idx);
        Ok(gap)
    }

    /// What lies behind the last one, which must be zero.
    pub(crate) fn tail(&self) -> Extent {
        Extent::between(self.end, self.len).unwrap_or_default()
    }

    /// The file ends where its content does, rounded up.
    pub(crate) fn check_length(&self, report: &mut Report<'_>) -> Checked<()> {
        let expected = align_up(self.end, SECTION_ALIGN);
        if expected == Some(self.len) {
            return Ok(());
        }
        let error = Error::new(Code::FileLength, PLACE).at(self.end);
        report.deviation(error.values(expected.unwrap_or(self.end), self.len))
    }
}

const PLACE: Place = Place::Section(Section::Blobs);

pub(crate) fn padding(index: u32, (at, byte): (u64, u64)) -> Error {
    Error::new(Code::BlobPadding, Place::Tensor(index)).at(at).values(0, byte)
}

pub(crate) fn tail_padding((at, byte): (u64, u64)) -> Error {
    Error::new(Code::TailPadding, PLACE).at(at).values(0, byte)
}
