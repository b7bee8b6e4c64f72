//! The layer schedule against the tensor table, an entry at a time. The twin of `validate/schedule.rs`.
#![forbid(unsafe_code)]

use super::ReadAt;
use super::validator::Facts;
use super::window::Window;
use crate::error::Error;
use crate::extent::Extent;
use crate::layout::schedule::RawLayerScheduleEntry;
use crate::validate::schedule::{Unit, all_zero, check_reserved, check_scattered, compare};
use crate::validate::{Checked, Report};
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

    #[inline(never)]
    pub(super) fn step<R: ReadAt>(
        &mut self,
        facts: &Facts,
        extent: Extent,
        window: &mut Window<'_, R>,
        report: &mut Report<'_>,
    ) -> Checked<()> {
        let width = facts.header.offset_width();
        let (tensors, layers) = (facts.header.tensor_count.get(), facts.hparams.n_layer.get());
        match self {
            Self::Group { index, .. } if *index >= tensors => *self = Self::compare(true),
            Self::Group { index, last } => {
                let at = facts.next_entry(window, *index)?.manifold_idx.get();
                if at >= layers || at >= *last {
                    *last = if at < layers { at } else { *last };
                    *index = index.saturating_add(1);
                } else {
                    *self = match check_scattered(u64::from(layers), u64::from(tensors)) {
                        Ok(()) => Self::compare(false),
                        Err(error) => Self::Zero { error, layer: 0 },
                    };
                }
            }
            Self::Compare { layer, .. } if *layer >= layers => *self = Self::Reserved { layer: 0 },
            Self::Compare { grouped, layer, cursor, unit } => {
                let entry = if *cursor < tensors { Some(facts.next_entry(window, *cursor)?) } else { None };
                let later = |at: u32| *grouped && at > *layer && at < layers;
                match entry.filter(|entry| !later(entry.manifold_idx.get())) {
                    Some(entry) => {
                        if entry.manifold_idx.get() == *layer {
                            unit.add(&entry, width);
                        }
                        *cursor = cursor.saturating_add(1);
                    }
                    None => match compare(*layer, &record(window, extent, *layer)?, width, *unit) {
                        Ok(()) => {
                            *cursor = if *grouped { *cursor } else { 0 };
                            *layer = layer.saturating_add(1);
                            *unit = Unit::default();
                        }
                        Err(error) => *self = Self::Zero { error, layer: 0 },
                    },
                }
            }
            Self::Zero { layer, .. } if *layer >= layers => {
                report.deviation(all_zero(extent, u64::from(layers)))?;
                *self = Self::Done(false);
            }
            Self::Zero { error, layer } => {
                if record(window, extent, *layer)?.as_bytes().iter().any(|byte| *byte != 0) {
                    return Err(report.refuse(*error));
                }
                *layer = layer.saturating_add(1);
            }
            Self::Reserved { layer } if *layer >= layers => *self = Self::Done(true),
            Self::Reserved { layer } => {
                check_reserved(*layer, &record(window, extent, *layer)?, width, extent, report)?;
                *layer = layer.saturating_add(1);
            }
            Self::Done(_) => {}
        }
        Ok(())
    }

    fn compare(grouped: bool) -> Self {
        Self::Compare { grouped, layer: 0, cursor: 0, unit: Unit::default() }
    }
}

fn record<R: ReadAt>(window: &mut Window<'_, R>, extent: Extent, layer: u32) -> Checked<RawLayerScheduleEntry> {
    window.record(extent.start().saturating_add(u64::from(layer).saturating_mul(64)))
}
