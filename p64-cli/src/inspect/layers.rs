//! Tensors grouped by layer in one pass.

use super::Layer;
use p64_core::Role;
use p64_core::extent::Extent;
use std::collections::BTreeMap;

/// Sums of layers, `None` last, file by file.
#[derive(Default)]
pub struct Layers(BTreeMap<(bool, usize, u32), Group>);

struct Group {
    tensors: u64,
    start: u64,
    end: u64,
    payload: u64,
    roles: Vec<Role>,
}

impl Layers {
    /// Counts a tensor of a file in.
    pub fn add(&mut self, file: usize, layer: Option<u32>, extent: Extent, role: Option<Role>) {
        let fresh = Group { tensors: 0, start: u64::MAX, end: 0, payload: 0, roles: Vec::new() };
        let group = self.0.entry((layer.is_none(), file, layer.unwrap_or(0))).or_insert(fresh);
        group.tensors += 1;
        group.start = group.start.min(extent.start());
        group.end = group.end.max(extent.end());
        group.payload = group.payload.saturating_add(extent.len());
        if let Some(role) = role.filter(|role| !group.roles.contains(role)) {
            group.roles.push(role);
        }
    }

    /// The rows.
    pub fn finish(self) -> Vec<Layer> {
        let row = |((global, _, layer), mut group): ((bool, usize, u32), Group)| {
            group.roles.sort_by_key(|role| role.order());
            Layer {
                layer: (!global).then_some(layer),
                tensors: group.tensors,
                offset: group.start,
                span: group.end.saturating_sub(group.start),
                payload: group.payload,
                roles: group.roles.iter().map(ToString::to_string).collect(),
            }
        };
        self.0.into_iter().map(row).collect()
    }
}
