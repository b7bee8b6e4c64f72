//! The layer schedule against the tensor table, an entry at a time. The twin of `validate/schedule.rs`.
#![forbid(unsafe_code)]

use super::ReadAt;
use super::validator::Facts;
use super::window::Window;
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::layout::schedule::RawLayerScheduleEntry;
use crate::layout::tensor::RawTensorEntry;
use crate::validate::Report;
use crate::validate::schedule::{Unit, all_zero, check_reserved, check_scattered, compare};
use zerocopy::IntoBytes;

/// How far the check has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Schedule {
    /// Whether the table goes layer by layer: entries up to `index` do; the last one of a layer was of `last`.
    Group { index: u32, last: u32 },
    /// The record of `layer` is being compared: entries up to `cursor` are summed up in `unit`.
    Compare { grouped: bool, layer: u32, cursor: u32, unit: Unit },
    /// A record differs, which `error` says unless all records from `layer` on are zero too.
    Zero { error: Error, layer: u32 },
    /// The reserved bytes of the records from `layer` on.
    Reserved { layer: u32 },
    /// `true` when the schedule holds, `false` when it is all zero and the policy lets that pass.
    Done(bool),
}

impl Schedule {
    pub(super) const START: Self = Self::Group { index: 0, last: 0 };

    pub(super) fn step<R: ReadAt>(
        self,
        facts: &Facts,
        extent: Extent,
        window: &mut Window<'_, R>,
        report: &mut Report<'_>,
    ) -> Result<Self> {
        let (tensors, layers) = (facts.header.tensor_count.get(), facts.hparams.n_layer.get());
        let record = |window: &mut Window<'_, R>, layer: u32| -> Result<RawLayerScheduleEntry> {
            window.record(extent.start().saturating_add(u64::from(layer).saturating_mul(64)))
        };
        Ok(match self {
            Self::Group { index, .. } if index >= tensors => Self::compare(true, 0),
            Self::Group { index, last } => {
                let at = facts.next_entry(window, index)?.manifold_idx.get();
                if at < layers && at < last {
                    match check_scattered(u64::from(layers), u64::from(tensors)) {
                        Ok(()) => Self::compare(false, 0),
                        Err(error) => Self::Zero { error, layer: 0 },
                    }
                } else {
                    Self::Group { index: index.saturating_add(1), last: if at < layers { at } else { last } }
                }
            }
            Self::Compare { layer, .. } if layer >= layers => Self::Reserved { layer: 0 },
            Self::Compare { grouped, layer, cursor, mut unit } => {
                let entry = if cursor < tensors { Some(facts.next_entry(window, cursor)?) } else { None };
                let later =
                    |entry: &RawTensorEntry| (layer.saturating_add(1)..layers).contains(&entry.manifold_idx.get());
                match entry.filter(|entry| !(grouped && later(entry))) {
                    Some(entry) => {
                        if entry.manifold_idx.get() == layer {
                            unit.add(&entry);
                        }
                        Self::Compare { grouped, layer, cursor: cursor.saturating_add(1), unit }
                    }
                    None => match compare(layer, &record(window, layer)?, unit) {
                        Ok(()) => {
                            let cursor = if grouped { cursor } else { 0 };
                            Self::Compare { grouped, layer: layer.saturating_add(1), cursor, unit: Unit::default() }
                        }
                        Err(error) => Self::Zero { error, layer: 0 },
                    },
                }
            }
            Self::Zero { error: _, layer } if layer >= layers => {
                report.deviation(all_zero(extent, u64::from(layers)))?;
                Self::Done(false)
            }
            Self::Zero { error, layer } => {
                if record(window, layer)?.as_bytes().iter().any(|byte| *byte != 0) {
                    return Err(error);
                }
                Self::Zero { error, layer: layer.saturating_add(1) }
            }
            Self::Reserved { layer } if layer >= layers => Self::Done(true),
            Self::Reserved { layer } => {
                check_reserved(layer, &record(window, layer)?, extent, report)?;
                Self::Reserved { layer: layer.saturating_add(1) }
            }
            Self::Done(holds) => Self::Done(holds),
        })
    }

    fn compare(grouped: bool, layer: u32) -> Self {
        Self::Compare { grouped, layer, cursor: 0, unit: Unit::default() }
    }
}
