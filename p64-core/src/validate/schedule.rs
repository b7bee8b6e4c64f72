//! Spec §7.4: the layer schedule against the tensor table it summarises.
#![forbid(unsafe_code)]

use super::policy::{Checked, Report};
use crate::error::{Code, Error, Place, Result, Section};
use crate::extent::Extent;
use crate::layout::header::OffsetWidth;
use crate::layout::schedule::RawLayerScheduleEntry;
use crate::layout::tensor::RawTensorEntry;
use crate::num;
use zerocopy::IntoBytes;

/// What a schedule record should say of a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Unit {
    pub begin: u64,
    pub end: u64,
    pub count: u32,
    pub roles_mask: u16,
}

/// Sums up the entries that belong to `layer`.
pub(crate) fn layer_unit(layer: u32, entries: &[RawTensorEntry], width: OffsetWidth) -> Unit {
    let mut unit = Unit::default();
    entries.iter().filter(|entry| entry.manifold_idx.get() == layer).for_each(|entry| unit.add(entry, width));
    unit
}

impl Unit {
    /// Takes in an entry of the layer.
    pub(crate) fn add(&mut self, entry: &RawTensorEntry, width: OffsetWidth) {
        let blob = entry.extent(width);
        self.begin = if self.count == 0 { blob.start() } else { self.begin.min(blob.start()) };
        self.end = self.end.max(blob.end());
        self.count = self.count.saturating_add(1);
        self.roles_mask |= 1u16.checked_shl(u32::from(entry.role().id())).unwrap_or(0);
    }
}

/// A table whose layers never go back, walked once from the first layer to the last.
pub(crate) struct Grouped<'e> {
    rest: &'e [RawTensorEntry],
    n_layer: u32,
    width: OffsetWidth,
}

impl<'e> Grouped<'e> {
    /// `None` when an entry stands behind one of a later layer. Entries of the group `n_layer` may stand anywhere.
    pub(crate) fn new(entries: &'e [RawTensorEntry], n_layer: u32, width: OffsetWidth) -> Option<Self> {
        let layers = || entries.iter().map(|entry| entry.manifold_idx.get()).filter(|&layer| layer < n_layer);
        layers().zip(layers().skip(1)).all(|(a, b)| a <= b).then_some(Self { rest: entries, n_layer, width })
    }

    /// The unit of `layer`, which is later than that of the call before.
    pub(crate) fn next(&mut self, layer: u32) -> Unit {
        let n_layer = self.n_layer;
        let run = |entries: &[RawTensorEntry], own: &dyn Fn(u32) -> bool| {
            entries.iter().map(|e| e.manifold_idx.get()).take_while(|&at| own(at) || at >= n_layer).count()
        };
        let earlier = run(self.rest, &|at| at < layer);
        let rest = self.rest.get(earlier..).unwrap_or_default();
        let (own, after) = rest.split_at_checked(run(rest, &|at| at == layer)).unwrap_or((rest, &[]));
        self.rest = after;
        layer_unit(layer, own, self.width)
    }
}

/// Most steps spent on a table whose layers are not grouped; grouped tables (all layer-major ones) take one pass.
const MAX_STEPS: u64 = 1 << 26;

/// Answers with the records, or with `None` when they are all zero and the policy lets that pass.
pub(super) fn check<'a>(
    records: &'a [RawLayerScheduleEntry],
    entries: &[RawTensorEntry],
    width: OffsetWidth,
    extent: Extent,
    report: &mut Report<'_>,
) -> Checked<Option<&'a [RawLayerScheduleEntry]>> {
    let result = check_content(records, entries, width);
    if result.is_err() && records.iter().all(|record| record.as_bytes().iter().all(|&byte| byte == 0)) {
        report.deviation(all_zero(extent, num::wide(records.len())))?;
        return Ok(None);
    }
    result.map_err(|error| report.refuse(error))?;
    for (layer, record) in (0u32..).zip(records) {
        check_reserved(layer, record, width, extent, report)?;
    }
    Ok(Some(records))
}

pub(crate) fn all_zero(extent: Extent, records: u64) -> Error {
    Error::new(Code::ScheduleAllZero, Place::Section(Section::Schedule)).at(extent.start()).values(records, 0)
}

pub(crate) fn check_reserved(
    layer: u32,
    record: &RawLayerScheduleEntry,
    width: OffsetWidth,
    extent: Extent,
    report: &mut Report<'_>,
) -> Checked<()> {
    let skip = if width == OffsetWidth::Bits64 { 24u8 } else { 16 };
    let start = extent.start().saturating_add(u64::from(layer).saturating_mul(64)).saturating_add(u64::from(skip));
    match super::first_nonzero(record.as_bytes().get(usize::from(skip)..).unwrap_or_default(), start) {
        Some((at, byte)) => {
            report.deviation(Error::new(Code::ScheduleReserved, Place::Layer(layer)).at(at).values(0, byte))
        }
        None => Ok(()),
    }
}

/// Whether a table whose layers are not grouped takes too many steps to check.
pub(crate) fn check_scattered(records: u64, entries: u64) -> Result<()> {
    let steps = records.saturating_mul(entries);
    if steps <= MAX_STEPS {
        return Ok(());
    }
    Err(Error::new(Code::ScheduleScattered, Place::Section(Section::Schedule)).values(MAX_STEPS, steps))
}

fn check_content(records: &[RawLayerScheduleEntry], entries: &[RawTensorEntry], width: OffsetWidth) -> Result<()> {
    let mut grouped = Grouped::new(entries, num::count(records.len()), width);
    if grouped.is_none() {
        check_scattered(num::wide(records.len()), num::wide(entries.len()))?;
    }
    for (layer, record) in (0u32..).zip(records) {
        let unit = grouped.as_mut().map_or_else(|| layer_unit(layer, entries, width), |grouped| grouped.next(layer));
        compare(layer, record, width, unit)?;
    }
    Ok(())
}

pub(crate) fn compare(layer: u32, record: &RawLayerScheduleEntry, width: OffsetWidth, unit: Unit) -> Result<()> {
    let checks = [
        (Code::ScheduleLayer, u64::from(layer), u64::from(record.layer.get())),
        (Code::ScheduleBegin, unit.begin, record.begin(width)),
        (Code::ScheduleEnd, unit.end, record.end(width)),
        (Code::ScheduleCount, u64::from(unit.count), u64::from(record.tensor_count.get())),
        (Code::ScheduleRoles, u64::from(unit.roles_mask), u64::from(record.roles_mask.get())),
    ];
    match checks.into_iter().find(|(_, expected, found)| expected != found) {
        Some((code, expected, found)) => Err(Error::new(code, Place::Layer(layer)).values(expected, found)),
        None => Ok(()),
    }
}
