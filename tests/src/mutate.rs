//! Changes to finished files.

use p64_core::crc32c::checksum;

/// Header fields by offset.
pub mod at {
    #![allow(missing_docs, reason = "the names are the header's")]
    pub const VERSION: usize = 4;
    pub const FLAGS: usize = 6;
    pub const ROLE_TABLE: usize = 8;
    pub const TENSOR_TABLE: usize = 12;
    pub const TOKENIZER: usize = 16;
    pub const HPARAMS: usize = 20;
    pub const STRINGS: usize = 24;
    pub const CHECKSUMS: usize = 28;
    pub const MANIFOLD: usize = 32;
    pub const TENSOR_COUNT: usize = 36;
    pub const PAGE_SIZE: usize = 40;
}

/// The `u32` at an offset.
#[must_use]
pub fn u32_at(file: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"))
}

/// The `u32` at an offset as an index.
#[must_use]
pub fn usize_at(file: &[u8], at: usize) -> usize {
    u32_at(file, at) as usize
}

/// Writes a `u32`.
pub fn put_u32(file: &mut [u8], at: usize, value: u32) {
    file[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Writes a `u16`.
pub fn put_u16(file: &mut [u8], at: usize, value: u16) {
    file[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

/// File offset of a field of tensor entry `index`.
#[must_use]
pub fn entry(file: &[u8], index: usize, field: usize) -> usize {
    usize_at(file, at::TENSOR_TABLE) + 64 * index + field
}

/// Recomputes every checksum that the file's own offsets still let one find; a file too broken for that stays as it is.
pub fn refix(file: &mut [u8]) {
    if file.len() < 64 {
        return;
    }
    let table = usize_at(file, at::CHECKSUMS);
    let entries = usize_at(file, at::TENSOR_TABLE);
    let wide = file[at::VERSION..at::FLAGS] == [5, 0];
    for index in 0..usize_at(file, at::TENSOR_COUNT).min(file.len() / 64) {
        let Some(entry) = file.get(entries + 64 * index..entries + 64 * index + 64) else { break };
        let (mut start, mut len) = (usize_at(entry, 32), usize_at(entry, 36));
        if wide {
            // On a 32-bit machine no slice is as long as that.
            start = start.saturating_add(usize_at(entry, 56).saturating_mul(1 << 31).saturating_mul(2));
            len = len.saturating_add(usize_at(entry, 60).saturating_mul(1 << 31).saturating_mul(2));
        }
        let Some(crc) = file.get(start..start.saturating_add(len)).map(checksum) else { continue };
        if let Some(slot) = file.get_mut(table + 4 + 4 * index..table + 8 + 4 * index) {
            slot.copy_from_slice(&crc.to_le_bytes());
        }
    }
    let Some(crc) = file.get(..table).map(checksum) else { return };
    if let Some(slot) = file.get_mut(table..table + 4) {
        slot.copy_from_slice(&crc.to_le_bytes());
    }
}
