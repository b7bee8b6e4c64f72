//! Layers as residency units: the byte range to map or upload as one (spec §7.4).
#![forbid(unsafe_code)]

use super::{Container, TensorInfo};
use crate::extent::Extent;
use crate::layout::header::OffsetWidth;
use crate::layout::role::Role;
use crate::layout::schedule::RawLayerScheduleEntry;
use crate::num;
use crate::validate::{Grouped, Unit, layer_unit};

/// One layer's tensors and the range of the file that holds them all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayerUnit {
    /// The layer.
    pub layer: u32,
    /// From the layer's first blob to the end of its last; empty at 0 for a layer without tensors.
    pub extent: Extent,
    /// Tensors of the layer.
    pub tensor_count: u32,
    /// Bit `i` is set when role `i` (below 16) is present.
    pub roles_mask: u16,
}

impl LayerUnit {
    /// What a schedule record says.
    pub(crate) fn of_record(layer: u32, record: &RawLayerScheduleEntry, width: OffsetWidth) -> Option<Self> {
        Some(Self {
            layer,
            extent: Extent::between(record.begin(width), record.end(width))?,
            tensor_count: u32::from(record.tensor_count.get()),
            roles_mask: record.roles_mask.get(),
        })
    }

    pub(crate) fn of(layer: u32, unit: Unit) -> Option<Self> {
        let extent = Extent::between(unit.begin, unit.end)?;
        Some(Self { layer, extent, tensor_count: unit.count, roles_mask: unit.roles_mask })
    }

    /// Whether a role is present; always `false` for roles of 16 and above, which the mask cannot hold.
    #[must_use]
    pub fn has(&self, role: Role) -> bool {
        1u16.checked_shl(u32::from(role.id())).is_some_and(|bit| self.roles_mask & bit != 0)
    }
}

impl<'a> Container<'a> {
    /// Whether the file carries a layer schedule; otherwise [`Container::layer`] sums the table up.
    #[must_use]
    pub const fn has_schedule(&self) -> bool {
        self.parts.schedule.is_some()
    }

    /// A layer's residency unit: from the schedule, or computed in one pass over the table. `layer == n_layer` is the
    /// group of globals and unknown roles, which no schedule holds.
    #[must_use]
    pub fn layer(&self, layer: u32) -> Option<LayerUnit> {
        if layer > self.n_layer() {
            return None;
        }
        if let Some(record) = self.parts.schedule.and_then(|records| records.get(num::index(layer))) {
            return LayerUnit::of_record(layer, record, self.offset_width());
        }
        LayerUnit::of(layer, layer_unit(layer, self.parts.entries, self.offset_width()))
    }

    /// The units of all layers, in order: from the schedule, or computed in one pass where the table goes layer by layer,
    /// else in one pass a layer.
    pub fn layers(&self) -> impl Iterator<Item = LayerUnit> + use<'a> {
        let container = *self;
        let mut rest = Grouped::new(container.parts.entries, container.n_layer(), container.offset_width());
        (0..container.n_layer()).filter_map(move |layer| match rest.as_mut().filter(|_| !container.has_schedule()) {
            Some(rest) => LayerUnit::of(layer, rest.next(layer)),
            None => container.layer(layer),
        })
    }

    /// The tensors of a layer, in file order; `layer == n_layer` gives globals and unknown roles.
    pub fn layer_tensors(&self, layer: u32) -> impl Iterator<Item = TensorInfo<'a>> + use<'a> {
        self.tensors().filter(move |info| info.manifold_idx() == layer)
    }
}
