//! The 64-byte layer schedule record: one residency unit per layer (spec §7.4).
#![forbid(unsafe_code)]

use super::header::OffsetWidth;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One layer's byte range as it stands on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RawLayerScheduleEntry {
    /// Bytes 0..3: the layer, equal to the record's index.
    pub layer: U32,
    /// Bytes 4..7: file offset of the layer's first blob, its low word.
    pub blob_begin: U32,
    /// Bytes 8..11: one past the layer's last blob, the low word.
    pub blob_end: U32,
    /// Bytes 12..13: tensors of the layer.
    pub tensor_count: U16,
    /// Bytes 14..15: bit `i` is set when role `i` (below 16) is present.
    pub roles_mask: U16,
    /// Bytes 16..19: high word of `blob_begin` in container version 5, else zero.
    pub blob_begin_hi: U32,
    /// Bytes 20..23: high word of `blob_end` in container version 5, else zero.
    pub blob_end_hi: U32,
    /// Bytes 24..63: zero.
    pub reserved: [u8; 40],
}

const _: () = assert!(size_of::<RawLayerScheduleEntry>() == super::RECORD);

impl RawLayerScheduleEntry {
    /// File offset of the layer's first blob.
    #[must_use]
    pub fn begin(&self, width: OffsetWidth) -> u64 {
        width.join(self.blob_begin, self.blob_begin_hi)
    }

    /// One past the layer's last blob.
    #[must_use]
    pub fn end(&self, width: OffsetWidth) -> u64 {
        width.join(self.blob_end, self.blob_end_hi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deconstruct_and_round_trip() {
        let bytes: [u8; 64] = core::array::from_fn(|i| u8::try_from(i).expect("small"));
        let record = RawLayerScheduleEntry::read_from_bytes(&bytes).expect("64 bytes");
        assert_eq!(record.blob_begin.get(), 0x0706_0504);
        assert_eq!(record.tensor_count.get(), 0x0d0c);
        assert_eq!(record.roles_mask.get(), 0x0f0e);
        assert_eq!((record.begin(OffsetWidth::Bits32), record.end(OffsetWidth::Bits32)), (0x0706_0504, 0x0b0a_0908));
        assert_eq!(record.begin(OffsetWidth::Bits64), 0x1312_1110_0706_0504);
        assert_eq!(record.end(OffsetWidth::Bits64), 0x1716_1514_0b0a_0908);
        let mut out = [0xa5u8; 64];
        record.write_to(&mut out).expect("64 bytes");
        assert_eq!(out, bytes);
    }
}
