//! The 64-byte layer schedule record: one residency unit per layer (spec §7.4).
#![forbid(unsafe_code)]

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One layer's byte range as it stands on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RawLayerScheduleEntry {
    /// Bytes 0..3: the layer, equal to the record's index.
    pub layer: U32,
    /// Bytes 4..7: file offset of the layer's first blob.
    pub blob_begin: U32,
    /// Bytes 8..11: one past the layer's last blob.
    pub blob_end: U32,
    /// Bytes 12..13: tensors of the layer.
    pub tensor_count: U16,
    /// Bytes 14..15: bit `i` is set when role `i` (below 16) is present.
    pub roles_mask: U16,
    /// Bytes 16..63: zero.
    pub reserved: [u8; 48],
}

const _: () = assert!(size_of::<RawLayerScheduleEntry>() == super::RECORD);

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
        let mut out = [0xa5u8; 64];
        record.write_to(&mut out).expect("64 bytes");
        assert_eq!(out, bytes);
    }
}
