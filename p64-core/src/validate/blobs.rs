//! Spec §7.4, §12, §14.12: where the payloads lie, and that nothing but zero lies between and behind them.
#![forbid(unsafe_code)]

use super::policy::Report;
use super::sections::Sections;
use crate::error::{Code, Error, Place, Result, Section};
use crate::extent::{Extent, align_up, is_aligned};
use crate::layout::flags::Flags;
use crate::layout::header::RawHeader;
use crate::layout::tensor::RawTensorEntry;
use crate::layout::{PACK_ALIGN, SECTION_ALIGN};
use crate::num;

pub(super) fn check(
    file: &[u8],
    entries: &[RawTensorEntry],
    header: &RawHeader,
    sections: &Sections,
    report: &mut Report<'_>,
) -> Result<()> {
    let len = num::wide(file.len());
    let page = u64::from(header.page_size.get());
    let packed = header.flags().contains(Flags::LAYER_PACK);
    let mut end = sections.checksums.end();
    let mut group = None;
    for (index, entry) in (0u32..).zip(entries) {
        let error = |code| Error::new(code, Place::Tensor(index));
        let extent = Extent::new(u64::from(entry.blob_offset.get()), u64::from(entry.blob_size.get()))
            .ok_or_else(|| error(Code::BlobBounds).values(len, u64::MAX))?;
        let manifold_idx = entry.manifold_idx.get();
        let alignment = if packed && group == Some(manifold_idx) { PACK_ALIGN.min(page) } else { page };
        if !is_aligned(extent.start(), alignment) {
            return Err(error(Code::BlobAlignment).values(alignment, extent.start()));
        }
        if extent.start() < sections.blob_floor {
            return Err(error(Code::BlobFloor).values(sections.blob_floor, extent.start()));
        }
        if extent.start() < end {
            return Err(error(Code::BlobOrder).values(end, extent.start()));
        }
        if extent.end() > len {
            return Err(error(Code::BlobBounds).values(len, extent.end()));
        }
        let gap = Extent::between(end, extent.start()).and_then(|gap| gap.of(file)).unwrap_or_default();
        if let Some((at, byte)) = super::first_nonzero(gap, end) {
            report.deviation(error(Code::BlobPadding).at(at).values(0, byte))?;
        }
        end = extent.end();
        group = Some(manifold_idx);
    }

    let place = Place::Section(Section::Blobs);
    let tail = Extent::between(end, len).and_then(|tail| tail.of(file)).unwrap_or_default();
    if let Some((at, byte)) = super::first_nonzero(tail, end) {
        report.deviation(Error::new(Code::TailPadding, place).at(at).values(0, byte))?;
    }
    if align_up(end, SECTION_ALIGN) != Some(len) {
        let expected = align_up(end, SECTION_ALIGN).unwrap_or(end);
        report.deviation(Error::new(Code::FileLength, place).at(end).values(expected, len))?;
    }
    Ok(())
}
