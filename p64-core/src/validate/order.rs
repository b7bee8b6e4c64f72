//! Spec §7.3: layer-major order, when flag bit 4 promises it.
#![forbid(unsafe_code)]

use super::policy::{Checked, Report};
use crate::error::{Code, Error, Place};
use crate::layout::flags::Flags;
use crate::layout::header::RawHeader;
use crate::layout::hparams::RawHParams;
use crate::layout::role::Role;
use crate::layout::tensor::RawTensorEntry;

/// Where an entry belongs: layers first, then globals, then unknown roles. The high half is the layer, the low half the
/// place within it, so that one number shows both.
pub(crate) fn sort_key(role: Role, manifold_idx: u32, n_layer: u32) -> u64 {
    let group = match role {
        Role::Unknown(_) => u64::from(n_layer).saturating_add(1),
        role if role.is_layer() => u64::from(manifold_idx),
        _ => u64::from(n_layer),
    };
    (group << 16) | u64::from(role.order())
}

pub(super) fn check(
    entries: &[RawTensorEntry],
    header: &RawHeader,
    hparams: &RawHParams,
    report: &mut Report<'_>,
) -> Checked<()> {
    if !header.flags().contains(Flags::LAYER_MAJOR) {
        return Ok(());
    }
    let mut order = Order::new(hparams.n_layer.get());
    (0u32..).zip(entries).try_for_each(|(index, entry)| order.accept(index, entry, report))
}

/// The entries seen so far: the sort key and source offset of the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    n_layer: u32,
    last: (u64, u64),
}

impl Order {
    pub(crate) const fn new(n_layer: u32) -> Self {
        Self { n_layer, last: (0, 0) }
    }

    #[inline(never)]
    pub(crate) fn accept(&mut self, index: u32, entry: &RawTensorEntry, report: &mut Report<'_>) -> Checked<()> {
        let error = Error::new(Code::LayerMajorOrder, Place::Tensor(index));
        let key = sort_key(entry.role(), entry.manifold_idx.get(), self.n_layer);
        if key < self.last.0 {
            return Err(report.refuse(error.values(self.last.0, key)));
        }
        // Unknown roles are stable by source offset; only their order among themselves is the source's business.
        let source = if matches!(entry.role(), Role::Unknown(_)) { entry.source_offset.get() } else { 0 };
        if key == self.last.0 && source < self.last.1 {
            report.deviation(error.values(self.last.1, source))?;
        }
        self.last = (key, source);
        Ok(())
    }
}
