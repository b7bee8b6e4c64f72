//! Tier 0: layers as units of residency, and their coordinates.

use crate::boundary::{Caller, Outcome, Status, fail};
use crate::container::p64_container;
use crate::error::p64_error;
use crate::status;
use p64_core::container::LayerUnit;
use p64_core::layout::manifold::RawManifold;

/// One layer's tensors, and the range of the file that holds them all.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_layer {
    /// The layer.
    pub layer: u32,
    /// Tensors of the layer.
    pub tensor_count: u32,
    /// Bit `i` is set when role `i`, below 16, is present.
    pub roles_mask: u32,
    /// Zero.
    pub reserved: u32,
    /// File offset of the layer's first byte.
    pub begin: u64,
    /// One past its last; equal to `begin` for a layer without tensors.
    pub end: u64,
}

impl From<LayerUnit> for p64_layer {
    fn from(unit: LayerUnit) -> Self {
        Self {
            layer: unit.layer,
            tensor_count: unit.tensor_count,
            roles_mask: u32::from(unit.roles_mask),
            reserved: 0,
            begin: unit.extent.start(),
            end: unit.extent.end(),
        }
    }
}

/// A layer as the unit to map or to upload. `layer == n_layer` is the group of tensors that belong to no layer.
///
/// Threads: any. Errors: `P64_STATUS_NOT_FOUND` past that. Cost: constant with a layer schedule, else one pass over the
/// table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_container_layer(
    container: *const p64_container,
    layer: u32,
    out: *mut p64_layer,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (c.container(container)?, c.out(out)?);
        let unit = container.layer(layer).ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))?;
        out.set(unit.into());
        Ok(())
    })
}

/// The coordinates of a layer: scale, attention depth, epistemic weight, topological spin, temporal decay, entropy bias,
/// spatial phase, recurrence frequency, density threshold, manifold curvature.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_manifold {
    /// The ten of them, in that order.
    pub values: [f32; 10],
}

/// The coordinates of a layer. `layer == n_layer` is the record of the tensors that belong to none.
///
/// Threads: any. Errors: `P64_STATUS_NOT_FOUND` past that. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_container_manifold(
    container: *const p64_container,
    layer: u32,
    out: *mut p64_manifold,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (c.container(container)?, c.out(out)?);
        let record: Outcome<&RawManifold> = container.manifold(layer).map_or(fail(status::P64_STATUS_NOT_FOUND), Ok);
        out.set(p64_manifold { values: record?.values.map(|value| value.get()) });
        Ok(())
    })
}
