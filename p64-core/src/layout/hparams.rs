//! The 64-byte hyperparameter record (spec §6).
#![forbid(unsafe_code)]

use zerocopy::little_endian::{F32, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The hyperparameters as they stand on disk. Bytes 28..55 are zero in strict files; the QualiaDB writers use them for
/// the extension fields below, which only the compatible policy reads.
#[derive(Clone, Copy, PartialEq, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RawHParams {
    /// Bytes 0..3: transformer layers.
    pub n_layer: U32,
    /// Bytes 4..7: embedding width.
    pub n_embd: U32,
    /// Bytes 8..11: attention heads.
    pub n_head: U32,
    /// Bytes 12..15: key/value heads.
    pub n_kv_head: U32,
    /// Bytes 16..19: vocabulary entries.
    pub vocab_size: U32,
    /// Bytes 20..23: RoPE frequency base.
    pub rope_freq_base: F32,
    /// Bytes 24..27: RoPE scale.
    pub rope_scale: F32,
    /// Bytes 28..31, extension: width of one head.
    pub head_dim: U32,
    /// Bytes 32..35, extension: width of one head in sliding-window layers.
    pub head_dim_swa: U32,
    /// Bytes 36..39, extension: positions of the sliding window.
    pub sliding_window: U32,
    /// Bytes 40..43, extension: layers that share their KV cache.
    pub shared_kv_layers: U32,
    /// Bytes 44..47, extension: soft cap of the logits.
    pub logit_softcap: F32,
    /// Bytes 48..51, extension: architecture id.
    pub architecture: U32,
    /// Bytes 52..55, extension: architecture flags.
    pub arch_flags: U32,
    /// Bytes 56..63: zero.
    pub reserved: [u8; 8],
}

const _: () = assert!(size_of::<RawHParams>() == super::RECORD);

impl RawHParams {
    /// Offset inside the record where the extension begins.
    pub const EXTENSION_AT: usize = 28;

    /// Whether any extension byte (28..55) is set.
    #[must_use]
    pub fn has_extension(&self) -> bool {
        self.as_bytes().iter().skip(Self::EXTENSION_AT).take(28).any(|&b| b != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_is_seen_byte_by_byte() {
        for at in 0..64usize {
            let mut bytes = [0u8; 64];
            bytes[at] = 1;
            let record = RawHParams::ref_from_bytes(&bytes).expect("64 bytes");
            assert_eq!(record.has_extension(), (28..56).contains(&at), "byte {at}");
        }
    }

    #[test]
    fn round_trip_into_a_dirty_buffer() {
        let bytes: [u8; 64] = core::array::from_fn(|i| u8::try_from(i * 3 % 251).expect("small"));
        let record = RawHParams::read_from_bytes(&bytes).expect("64 bytes");
        let mut out = [0xa5u8; 64];
        record.write_to(&mut out).expect("64 bytes");
        assert_eq!(out, bytes);
        assert_eq!(record.n_embd.get(), u32::from_le_bytes([12, 15, 18, 21]));
    }
}
