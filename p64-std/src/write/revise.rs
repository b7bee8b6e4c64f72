//! What a plan says of its parts, and what may be changed in it.

use super::plan::Plan;
use p64_core::layout::header::RawHeader;
use std::ops::Range;
use zerocopy::FromBytes;

impl Plan {
    /// Everything before the checksum table, as it will be written.
    #[must_use]
    pub fn front(&self) -> &[u8] {
        &self.front
    }

    /// Position in the model's tensors and file range of each blob, in file order.
    pub fn blobs(&self) -> impl Iterator<Item = (usize, Range<u64>)> {
        self.blobs.iter().cloned()
    }

    /// Puts other coordinates in the place of the projection that a plan has (spec §9): the bytes of `n_layer + 1`
    /// records. `false`, and nothing changed, when they are not as many.
    pub fn replace_manifold(&mut self, records: &[u8]) -> bool {
        let Ok((header, _)) = RawHeader::ref_from_prefix(&self.front) else { return false };
        let (start, end) = (header.manifold_table_offset.get(), header.tokenizer_offset.get());
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let slot = range.and_then(|(start, end)| self.front.get_mut(start..end));
        match slot.filter(|slot| slot.len() == records.len()) {
            Some(slot) => {
                slot.copy_from_slice(records);
                true
            }
            None => false,
        }
    }
}
