//! FNV-1a 64, the hash by which a tensor remembers the name it had in its source (spec §7).
#![forbid(unsafe_code)]

/// The hash of nothing.
pub(crate) const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;
/// The safetensors profile clears the top four bits.
const SAFETENSORS_MASK: u64 = 0x0fff_ffff_ffff_ffff;

/// FNV-1a 64 of `name`: the convention of the GGUF producer profile.
#[must_use]
pub const fn fnv1a64(name: &[u8]) -> u64 {
    fnv1a64_continue(OFFSET_BASIS, name)
}

/// [`fnv1a64`] of what `hash` is the hash of, followed by `bytes`.
pub(crate) const fn fnv1a64_continue(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        hash = (hash ^ *byte as u64).wrapping_mul(PRIME);
        rest = tail;
    }
    hash
}

/// [`fnv1a64`] masked to 60 bits: the convention of the safetensors producer profile.
#[must_use]
pub const fn fnv1a60(name: &[u8]) -> u64 {
    fnv1a64(name) & SAFETENSORS_MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values worked out by an independent implementation (spec §7, worked examples).
    #[test]
    fn known_names() {
        assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64(b"blk.0.attn_q.weight"), 0xb2d8_8a54_54e2_6c3b);
        assert_eq!(fnv1a64(b"token_embd.weight"), 0x2d85_b88e_70e6_7727);
        assert_eq!(fnv1a60(b""), 0x0bf2_9ce4_8422_2325);
        assert_eq!(fnv1a60(b"blk.0.attn_q.weight"), 0x02d8_8a54_54e2_6c3b);
        assert_eq!(fnv1a60(b"model.layers.0.self_attn.q_proj.weight"), 0x0a29_6639_dc11_febb);
    }
}
