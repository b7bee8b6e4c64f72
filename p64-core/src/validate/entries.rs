//! Spec §7, §14.9 and §14.10: each tensor entry by itself, and the flags that speak of all of them.
#![forbid(unsafe_code)]

use super::policy::{Checked, Policy, Report};
use super::sections::Sections;
use crate::error::{Code, Error, Place, Section};
use crate::layout::RECORD;
use crate::layout::dtype::{DType, SizeError, TILE_ROWS};
use crate::layout::flags::Flags;
use crate::layout::header::{OffsetWidth, RawHeader};
use crate::layout::hparams::RawHParams;
use crate::layout::role::Role;
use crate::layout::shape::Shape;
use crate::layout::tensor::RawTensorEntry;
use crate::num;
use zerocopy::IntoBytes;

pub(super) fn check(
    entries: &[RawTensorEntry],
    header: &RawHeader,
    hparams: &RawHParams,
    sections: &Sections,
    report: &mut Report<'_>,
) -> Checked<()> {
    let manifold_count = u64::from(hparams.n_layer.get()).saturating_add(1);
    let mut types = Types::default();
    for (index, entry) in (0u32..).zip(entries) {
        let start = sections.tensors.start().saturating_add(u64::from(index).saturating_mul(num::wide(RECORD)));
        check_one(entry, index, start, manifold_count, header.offset_width(), report)?;
        types.add(entry);
    }
    types.check_flags(header, report)
}

/// Which of the types that a flag speaks of were seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Types {
    ternary: bool,
    q4k_soa: bool,
}

impl Types {
    pub(crate) fn add(&mut self, entry: &RawTensorEntry) {
        self.ternary |= entry.dtype() == DType::Ternary;
        self.q4k_soa |= entry.dtype() == DType::Q4KSoa;
    }

    /// The flags against what all entries together hold.
    pub(crate) fn check_flags(self, header: &RawHeader, report: &mut Report<'_>) -> Checked<()> {
        for (flag, code, content) in
            [(Flags::TERNARY, Code::FlagTernary, self.ternary), (Flags::Q4K_SOA, Code::FlagQ4kSoa, self.q4k_soa)]
        {
            let set = header.flags().contains(flag);
            if set != content {
                let finding = Error::new(code, Place::Section(Section::Header)).at(6);
                report.deviation(finding.values(u64::from(content), u64::from(set)))?;
            }
        }
        Ok(())
    }
}

/// Checks the entry that stands at file offset `start`.
#[inline(never)]
pub(crate) fn check_one(
    entry: &RawTensorEntry,
    index: u32,
    start: u64,
    manifold_count: u64,
    width: OffsetWidth,
    report: &mut Report<'_>,
) -> Checked<()> {
    let error = |code, at: u64| Error::new(code, Place::Tensor(index)).at(start.saturating_add(at));

    let dtype = entry.dtype();
    let Some(shape) = shape_of(entry) else {
        let (most, rank) = (num::wide(Shape::MAX_RANK), u64::from(entry.rank.get()));
        return Err(report.refuse(error(Code::BadRank, 12).values(most, rank)));
    };
    for (dimension, at) in entry.dimensions.iter().zip([16u64, 20, 24, 28]).skip(shape.rank()) {
        let finding = error(Code::UnusedDimension, at).values(0, u64::from(dimension.get()));
        match (dimension.get(), report.policy()) {
            (0, _) => {}
            (1, Policy::Compatible) => report.warn(finding),
            _ => return Err(report.refuse(finding)),
        }
    }
    let manifold_idx = u64::from(entry.manifold_idx.get());
    if manifold_idx >= manifold_count {
        return Err(report.refuse(error(Code::ManifoldIndex, 8).values(manifold_count, manifold_idx)));
    }
    let n_layer = manifold_count.saturating_sub(1);
    if entry.role().is_layer() != (manifold_idx < n_layer) {
        report.deviation(error(Code::ManifoldRole, 8).values(n_layer, manifold_idx))?;
    }
    if let Role::Unknown(id) = entry.role()
        && entry.role() != Role::UNKNOWN
    {
        report.warn(error(Code::UnknownRole, 4).values(0, u64::from(id)));
    }
    let blob_size = entry.len(width);
    match dtype.byte_len(&shape) {
        Ok(Some(needed)) if needed != blob_size => {
            return Err(report.refuse(error(Code::BlobSize, 36).values(needed, blob_size)));
        }
        Ok(Some(_)) => {}
        Ok(None) => report.warn(error(Code::UnknownDType, 6).values(0, u64::from(dtype.id()))),
        Err(SizeError::Overflow) => return Err(report.refuse(error(Code::ShapeOverflow, 16))),
        Err(SizeError::PartialBlock(elements)) => {
            return Err(report.refuse(error(Code::PartialBlock, 16).values(u64::from(elements), shape.row_len())));
        }
        Err(SizeError::PartialTile(rows)) => {
            return Err(report.refuse(error(Code::PartialTile, 20).values(u64::from(TILE_ROWS), u64::from(rows))));
        }
    }
    let high = entry.as_bytes().get(56..).unwrap_or_default();
    if let Some((at, byte)) = super::first_nonzero(high, 56).filter(|_| width == OffsetWidth::Bits32) {
        report.deviation(error(Code::ReservedEntry, at).values(0, byte))?;
    }
    Ok(())
}

/// The entry's shape; `None` when the rank is not 1 to 4.
pub(crate) fn shape_of(entry: &RawTensorEntry) -> Option<Shape> {
    let dims = entry.dimensions.map(|dimension| dimension.get());
    dims.get(..num::index(entry.rank.get())).and_then(Shape::new)
}
