//! The 64-byte tensor entry (spec §7).
#![forbid(unsafe_code)]

use super::dtype::DType;
use super::header::OffsetWidth;
use super::role::Role;
use crate::extent::Extent;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One tensor descriptor as it stands on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RawTensorEntry {
    /// Bytes 0..3: offset of the name in the string table.
    pub name_offset: U32,
    /// Bytes 4..5: [`Role`].
    pub role_id: U16,
    /// Bytes 6..7: [`DType`].
    pub dtype: U16,
    /// Bytes 8..11: layer, or `n_layer` for globals and unknown roles.
    pub manifold_idx: U32,
    /// Bytes 12..15: 1 to 4.
    pub rank: U32,
    /// Bytes 16..31: GGML order, `dimensions[0]` contiguous; unused ones zero.
    pub dimensions: [U32; 4],
    /// Bytes 32..35: file offset of the payload, its low word.
    pub blob_offset: U32,
    /// Bytes 36..39: payload bytes, their low word.
    pub blob_size: U32,
    /// Bytes 40..47: offset in the source's data region.
    pub source_offset: U64,
    /// Bytes 48..55: FNV-1a of the source's name ([`crate::hash`]).
    pub source_name_hash: U64,
    /// Bytes 56..59: high word of `blob_offset` in container version 5, else zero.
    pub blob_offset_hi: U32,
    /// Bytes 60..63: high word of `blob_size` in container version 5, else zero.
    pub blob_size_hi: U32,
}

const _: () = assert!(size_of::<RawTensorEntry>() == super::RECORD);

impl RawTensorEntry {
    /// `source_offset` of a tensor that the converter added and no source has (`p64.metadata`, `p64.provenance`). It
    /// sorts after every real offset, so the order of §7.3 holds for them too.
    pub const NO_SOURCE: u64 = u64::MAX;

    /// Where the payload lies in a file whose offsets have that width. An end past 64 bits becomes the last number there
    /// is, which lies past the end of every file.
    #[must_use]
    pub fn extent(&self, width: OffsetWidth) -> Extent {
        let start = width.join(self.blob_offset, self.blob_offset_hi);
        Extent::between(start, start.saturating_add(self.len(width))).unwrap_or_default()
    }

    /// Payload bytes.
    #[must_use]
    pub fn len(&self, width: OffsetWidth) -> u64 {
        width.join(self.blob_size, self.blob_size_hi)
    }

    /// The role code.
    #[must_use]
    pub fn role(&self) -> Role {
        Role::from_id(self.role_id.get())
    }

    /// The element type code.
    #[must_use]
    pub fn dtype(&self) -> DType {
        DType::from_id(self.dtype.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn round_trip_into_a_dirty_buffer() {
        let bytes: [u8; 64] = core::array::from_fn(|i| u8::try_from(255 - i).expect("small"));
        let record = RawTensorEntry::read_from_bytes(&bytes).expect("64 bytes");
        let mut out = [0xa5u8; 64];
        record.write_to(&mut out).expect("64 bytes");
        assert_eq!(out, bytes);
        assert_eq!(record.source_offset.get(), u64::from_le_bytes([215, 214, 213, 212, 211, 210, 209, 208]));
        assert_eq!(record.role_id.get(), u16::from_le_bytes([251, 250]));
    }

    #[test]
    fn high_words_count_where_offsets_are_wide() {
        let mut record = RawTensorEntry::new_zeroed();
        record.blob_offset = 0x4000.into();
        record.blob_size = 7.into();
        record.blob_offset_hi = 2.into();
        record.blob_size_hi = 1.into();
        let extent = |width| record.extent(width);
        assert_eq!(extent(OffsetWidth::Bits32), Extent::new(0x4000, 7).expect("fits"));
        assert_eq!(extent(OffsetWidth::Bits64), Extent::new(0x2_0000_4000, 0x1_0000_0007).expect("fits"));
        record.blob_offset_hi = u32::MAX.into();
        assert_eq!(record.extent(OffsetWidth::Bits64).end(), u64::MAX);
    }
}
