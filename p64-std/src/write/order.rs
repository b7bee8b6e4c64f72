//! The order of entries and blobs (spec §7.3).

use super::plan::TensorDescription;
use p64_core::Role;

/// Positions in `tensors` in the order of the file. Layer-major: layers by number and role, then the globals, then the
/// rest by `source_offset`. Otherwise all by `source_offset`, those without bytes first. Equal keys keep their order.
#[must_use]
pub fn file_order(tensors: &[TensorDescription], layer_major: bool) -> Vec<usize> {
    let mut order: Vec<(usize, &TensorDescription)> = tensors.iter().enumerate().collect();
    if layer_major {
        order.sort_by_key(|(_, tensor)| major_key(tensor));
    } else {
        order.sort_by_key(|(_, tensor)| (tensor.source_offset, tensor.size != 0));
    }
    order.into_iter().map(|(index, _)| index).collect()
}

fn major_key(tensor: &TensorDescription) -> (u64, u16, u64) {
    match (tensor.role, tensor.layer) {
        (Role::Unknown(_), _) => (u64::MAX, tensor.role.order(), tensor.source_offset),
        (role, Some(layer)) => (u64::from(layer), role.order(), 0),
        (role, None) => (u64::MAX, role.order(), 0),
    }
}
