//! Look-up of tensors by name, by role and layer, by source hash.
#![forbid(unsafe_code)]

use super::{Container, TensorInfo};
use crate::layout::role::Role;
use crate::num;
use crate::validate::{name_at, name_hash};

impl<'a> Container<'a> {
    /// The tensor of that name: `O(log n)` with a name index ([`Storage`](crate::validate::Storage)), else one pass. Of
    /// duplicates, which only the compatible policy lets pass, the first.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<TensorInfo<'a>> {
        let slots = self.parts.names;
        if slots.is_empty() {
            return self.tensors().find(|info| info.name() == name);
        }
        let hash = name_hash(name);
        // Most steps are decided by the hash; the name is read only where hashes are equal.
        let at = slots.partition_point(|slot| {
            let stored =
                || self.parts.entries.get(num::index(slot.index)).map_or("", |e| name_at(e, self.parts.strings));
            slot.hash.cmp(&hash).then_with(|| stored().cmp(name)).is_lt()
        });
        self.info(slots.get(at)?.index).filter(|info| info.name() == name)
    }

    /// The first tensor of a role in a layer; globals belong to layer `n_layer`. One pass over the table, or over the
    /// layer's own entries when the file is layer-major.
    #[must_use]
    pub fn find_role(&self, role: Role, layer: u32) -> Option<TensorInfo<'a>> {
        let entries = self.parts.entries;
        let matches =
            |index: &usize| entries.get(*index).is_some_and(|e| e.manifold_idx.get() == layer && e.role() == role);
        let start = if self.flags().contains(crate::layout::flags::Flags::LAYER_MAJOR) {
            entries.partition_point(|entry| entry.manifold_idx.get() < layer)
        } else {
            0
        };
        let index = (start..entries.len()).find(matches).or_else(|| (0..start).find(matches))?;
        self.info(num::count(index))
    }

    /// The first tensor with that hash of its source's name.
    #[must_use]
    pub fn find_source_hash(&self, hash: u64) -> Option<TensorInfo<'a>> {
        self.tensors().find(|info| info.source_name_hash() == hash)
    }
}
