//! Header flag bits (spec §5.1).
#![forbid(unsafe_code)]

use core::fmt;

/// The `flags` field of the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// Bit 0: numeric fields are little-endian. Required.
    pub const LITTLE_ENDIAN: Self = Self(1);
    /// Bit 1: streamed from a tensor container without a complete model profile.
    pub const RAW_TRANSCODE: Self = Self(1 << 1);
    /// Bit 2: at least one tensor is ternary (dtype 1158).
    pub const TERNARY: Self = Self(1 << 2);
    /// Bit 3: at least one tensor is Q4_K_SOA (dtype 112).
    pub const Q4K_SOA: Self = Self(1 << 3);
    /// Bit 4: known-role tensors stand in layer-major order (spec §7.3).
    pub const LAYER_MAJOR: Self = Self(1 << 4);
    /// Bit 5: pages between layers, 256 bytes within one (spec §7.4).
    pub const LAYER_PACK: Self = Self(1 << 5);
    /// Bit 6: `role_table_offset` points at the layer schedule (spec §7.4).
    pub const LAYER_SCHEDULE: Self = Self(1 << 6);
    /// Bits that have a meaning in draft 0.3; all others are reserved and zero.
    pub const KNOWN: Self = Self(0x7f);

    const NAMES: [(Self, &'static str); 7] = [
        (Self::LITTLE_ENDIAN, "LITTLE_ENDIAN"),
        (Self::RAW_TRANSCODE, "RAW_TRANSCODE"),
        (Self::TERNARY, "TERNARY"),
        (Self::Q4K_SOA, "Q4K_SOA"),
        (Self::LAYER_MAJOR, "LAYER_MAJOR"),
        (Self::LAYER_PACK, "LAYER_PACK"),
        (Self::LAYER_SCHEDULE, "LAYER_SCHEDULE"),
    ];

    /// Whether every bit of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The bits that draft 0.3 gives no meaning.
    #[must_use]
    pub const fn reserved(self) -> u16 {
        self.0 & !Self::KNOWN.0
    }

    /// The set bits by name, lowest first; reserved bits are left out.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(bit, _)| self.contains(*bit)).map(|(_, name)| name)
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for name in self.names() {
            f.write_str(if first { "" } else { " | " })?;
            f.write_str(name)?;
            first = false;
        }
        match (self.reserved(), first) {
            (0, true) => f.write_str("none"),
            (0, false) => Ok(()),
            (bits, _) => write!(f, "{}reserved {bits:#06x}", if first { "" } else { " | " }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn display_names_bits_and_reserved_ones() {
        assert_eq!(Flags(0).to_string(), "none");
        assert_eq!(Flags(0x11).to_string(), "LITTLE_ENDIAN | LAYER_MAJOR");
        assert_eq!(Flags(0x8001).to_string(), "LITTLE_ENDIAN | reserved 0x8000");
    }
}
