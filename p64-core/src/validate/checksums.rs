//! Spec §11, §14.8 and §14.13: the integrity table.
#![forbid(unsafe_code)]

use super::policy::{Checked, Report};
use super::sections::Sections;
use crate::crc32c::Checksum;
use crate::error::{Code, Error, Place, Result, Section};
use crate::extent::Extent;
use crate::layout::header::OffsetWidth;
use crate::layout::tensor::RawTensorEntry;
use crate::num;
use zerocopy::little_endian::U32;

pub(super) fn check_metadata(
    file: &[u8],
    sections: &Sections,
    table: &[U32],
    checksum: Checksum,
    report: &mut Report<'_>,
) -> Checked<()> {
    let covered = Extent::between(0, sections.checksums.start()).and_then(|extent| extent.of(file)).unwrap_or_default();
    let expected = table.first().map_or(0, |crc| crc.get());
    compare_metadata(expected, checksum.of(covered), sections, report)
}

pub(crate) fn compare_metadata(expected: u32, found: u32, sections: &Sections, report: &mut Report<'_>) -> Checked<()> {
    if found == expected {
        return Ok(());
    }
    let error = Error::new(Code::MetadataChecksum, Place::Section(Section::Checksums)).at(sections.checksums.start());
    Err(report.refuse(error.values(u64::from(expected), u64::from(found))))
}

pub(super) fn check_blobs(
    file: &[u8],
    entries: &[RawTensorEntry],
    width: OffsetWidth,
    table: &[U32],
    checksum: Checksum,
) -> Result<()> {
    (0..num::count(entries.len())).zip(entries).try_for_each(|(index, entry)| {
        let bytes = entry.extent(width).of(file).unwrap_or_default();
        check_blob(bytes, index, table, checksum)
    })
}

/// Compares the CRC-32C of tensor `index`'s bytes with the table.
pub(crate) fn check_blob(bytes: &[u8], index: u32, table: &[U32], checksum: Checksum) -> Result<()> {
    let expected = table.get(num::index(index).saturating_add(1)).map_or(0, |crc| crc.get());
    compare_blob(index, expected, checksum.of(bytes))
}

pub(crate) fn compare_blob(index: u32, expected: u32, found: u32) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::new(Code::TensorChecksum, Place::Tensor(index)).values(u64::from(expected), u64::from(found)))
}
