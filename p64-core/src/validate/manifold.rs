//! Spec §9: the manifold records.
#![forbid(unsafe_code)]

use super::policy::{Checked, Report};
use crate::error::{Code, Error, Place, Section};
use crate::layout::RECORD;
use crate::layout::manifold::RawManifold;
use crate::num;
use zerocopy::IntoBytes;

/// Checks `records`, the first of which stands at file offset `start`.
#[inline(never)]
pub(crate) fn check(records: &[RawManifold], start: u64, report: &mut Report<'_>) -> Checked<()> {
    let place = Place::Section(Section::Manifold);
    for (record, index) in records.iter().zip(0u64..) {
        let start = start.saturating_add(index.saturating_mul(num::wide(RECORD)));
        for (value, dimension) in record.values.iter().zip(0u64..) {
            if !value.get().is_finite() {
                let bits = value.as_bytes().first_chunk().copied().map_or(0, u32::from_le_bytes);
                let at = start.saturating_add(dimension.saturating_mul(4));
                return Err(report.refuse(Error::new(Code::ManifoldNotFinite, place).at(at).values(0, u64::from(bits))));
            }
        }
        if let Some((at, byte)) = super::first_nonzero(&record.reserved, start.saturating_add(40)) {
            report.deviation(Error::new(Code::ManifoldReserved, place).at(at).values(0, byte))?;
        }
    }
    Ok(())
}
