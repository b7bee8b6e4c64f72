//! The 64-byte header at offset 0 (spec §5).
#![forbid(unsafe_code)]

use super::flags::Flags;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `p64\0`, the first four bytes of every P64 file.
pub const MAGIC: [u8; 4] = *b"p64\0";
/// The version our writer emits for a file of less than 4 GiB, and every reader accepts.
pub const VERSION: u16 = 4;
/// The version of files of 4 GiB and more: [`VERSION`] with the high words of blob offsets and lengths in bytes that it
/// reserves (spec §15.1).
pub const VERSION_LARGE: u16 = 5;
/// The version [`Policy::Compatible`](crate::validate::Policy::Compatible) also reads: the same layout without flag bits 3..6.
pub const VERSION_3: u16 = 3;

/// The header as it stands on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RawHeader {
    /// Bytes 0..3, [`MAGIC`].
    pub magic: [u8; 4],
    /// Bytes 4..5, [`VERSION`].
    pub version: U16,
    /// Bytes 6..7, [`Flags`].
    pub flags: U16,
    /// Bytes 8..11: file offset of the layer schedule when flag bit 6 is set, else zero.
    pub role_table_offset: U32,
    /// Bytes 12..15: file offset of the tensor entries.
    pub tensor_table_offset: U32,
    /// Bytes 16..19: file offset of the Q42T section; equal to `checksum_offset` when there is none.
    pub tokenizer_offset: U32,
    /// Bytes 20..23: file offset of the hyperparameters.
    pub hparams_offset: U32,
    /// Bytes 24..27: file offset of the string table.
    pub string_table_offset: U32,
    /// Bytes 28..31: file offset of the CRC-32C table.
    pub checksum_offset: U32,
    /// Bytes 32..35: file offset of the manifold records.
    pub manifold_table_offset: U32,
    /// Bytes 36..39: number of tensor entries and blobs.
    pub tensor_count: U32,
    /// Bytes 40..43: power-of-two blob alignment, at least 256.
    pub page_size: U32,
    /// Bytes 44..63: zero.
    pub reserved: [u8; 20],
}

const _: () = assert!(size_of::<RawHeader>() == super::RECORD);

/// How many bits of a blob's offset and length a container version stores. Below version 5 the bytes of the high words
/// are reserved; the QualiaDB writers put other things there, so they must not be taken for offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OffsetWidth {
    /// 32, of container versions 3 and 4.
    #[default]
    Bits32,
    /// 64, of container version 5.
    Bits64,
}

impl OffsetWidth {
    /// The number whose halves stand in two fields.
    #[must_use]
    pub fn join(self, low: U32, high: U32) -> u64 {
        let high = if self == Self::Bits64 { high.get() } else { 0 };
        (u64::from(high) << 32) | u64::from(low.get())
    }
}

impl RawHeader {
    /// The width of the version's offsets.
    #[must_use]
    pub fn offset_width(&self) -> OffsetWidth {
        if self.version.get() == VERSION_LARGE { OffsetWidth::Bits64 } else { OffsetWidth::Bits32 }
    }

    /// The flag bits.
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags(self.flags.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 64] = {
        let mut b = [0u8; 64];
        b[0] = b'p';
        b[1] = b'6';
        b[2] = b'4';
        b[4] = 4;
        b[6] = 0x71;
        b[8] = 128;
        b[13] = 1;
        b[36] = 2;
        b[41] = 0x40;
        b
    };

    #[test]
    fn deconstruct() {
        let header = RawHeader::ref_from_bytes(&BYTES).expect("64 bytes");
        assert_eq!(header.magic, MAGIC);
        assert_eq!(header.version.get(), VERSION);
        assert!(header.flags().contains(Flags::LAYER_SCHEDULE));
        assert_eq!(header.role_table_offset.get(), 128);
        assert_eq!(header.tensor_table_offset.get(), 256);
        assert_eq!(header.tensor_count.get(), 2);
        assert_eq!(header.page_size.get(), super::super::DEFAULT_PAGE_SIZE);
    }

    #[test]
    fn round_trip_into_a_dirty_buffer() {
        let header = RawHeader::read_from_bytes(&BYTES).expect("64 bytes");
        let mut out = [0xa5u8; 64];
        header.write_to(&mut out).expect("64 bytes");
        assert_eq!(out, BYTES);
    }

    #[test]
    fn reject_other_lengths() {
        assert!(RawHeader::ref_from_bytes(&BYTES[..63]).is_err());
    }
}
