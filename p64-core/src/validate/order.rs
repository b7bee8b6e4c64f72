//! Spec §7.3: layer-major order, when flag bit 4 promises it.
#![forbid(unsafe_code)]

use super::policy::Report;
use crate::error::{Code, Error, Place, Result};
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
) -> Result<()> {
    if !header.flags().contains(Flags::LAYER_MAJOR) {
        return Ok(());
    }
    let n_layer = hparams.n_layer.get();
    let mut last = (0u64, 0u64);
    for (index, entry) in (0u32..).zip(entries) {
        let error = Error::new(Code::LayerMajorOrder, Place::Tensor(index));
        let key = sort_key(entry.role(), entry.manifold_idx.get(), n_layer);
        if key < last.0 {
            return Err(error.values(last.0, key));
        }
        // Unknown roles are stable by source offset; only their order among themselves is the source's business.
        let source = if matches!(entry.role(), Role::Unknown(_)) { entry.source_offset.get() } else { 0 };
        if key == last.0 && source < last.1 {
            report.deviation(error.values(last.1, source))?;
        }
        last = (key, source);
    }
    Ok(())
}
