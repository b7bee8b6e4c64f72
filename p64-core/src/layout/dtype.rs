//! Element types: the GGML registry, and the codes P64 adds (spec §7.2).
//!
//! A type is *known* when its block size is known: then a tensor's payload length follows from its shape and is
//! verified. A code outside the registry is kept as [`DType::Unknown`]: opaque bytes that nothing here decodes.
#![forbid(unsafe_code)]

use super::shape::Shape;
use core::fmt;

/// How a type packs elements along a row: `elements` consecutive values share `bytes` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// Values of one block.
    pub elements: u32,
    /// Bytes of one block.
    pub bytes: u32,
}

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $name:literal, $elements:literal / $bytes:literal;)*) => {
        /// An element type code. The number is the one stored in the tensor entry.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[non_exhaustive]
        #[allow(non_camel_case_types, reason = "the names are GGML's own")]
        pub enum DType {
            $($(#[$doc])* $variant,)*
            /// BitNet-1.58b: one `f32` scale, then base-3 digits, five to a byte (spec §7.4). Not a block type: rows
            /// are not aligned.
            Ternary,
            /// A code outside the registry.
            Unknown(u16),
        }

        impl DType {
            /// Every type of the registry, in the order of the codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)* Self::Ternary];

            /// The type of a code; any code is accepted.
            #[must_use]
            pub const fn from_id(id: u16) -> Self {
                match id {
                    $($id => Self::$variant,)*
                    TERNARY_ID => Self::Ternary,
                    other => Self::Unknown(other),
                }
            }

            /// The code.
            #[must_use]
            pub const fn id(self) -> u16 {
                match self {
                    $(Self::$variant => $id,)*
                    Self::Ternary => TERNARY_ID,
                    Self::Unknown(id) => id,
                }
            }

            /// GGML's name of the type, or ours for the codes that P64 adds.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Ternary => "TERNARY",
                    Self::Unknown(_) => "unknown",
                }
            }

            /// How the type packs a row; `None` for ternary and for unknown codes.
            #[must_use]
            pub const fn block(self) -> Option<Block> {
                match self {
                    $(Self::$variant => Some(Block { elements: $elements, bytes: $bytes }),)*
                    Self::Ternary | Self::Unknown(_) => None,
                }
            }
        }
    };
}

const TERNARY_ID: u16 = 1158;

dtypes! {
    /// 32-bit IEEE float.
    F32 = 0, "F32", 1 / 4;
    /// 16-bit IEEE float.
    F16 = 1, "F16", 1 / 2;
    /// 4-bit, f16 scale per 32.
    Q4_0 = 2, "Q4_0", 32 / 18;
    /// 4-bit, f16 scale and minimum per 32.
    Q4_1 = 3, "Q4_1", 32 / 20;
    /// 5-bit, f16 scale per 32.
    Q5_0 = 6, "Q5_0", 32 / 22;
    /// 5-bit, f16 scale and minimum per 32.
    Q5_1 = 7, "Q5_1", 32 / 24;
    /// 8-bit, f16 scale per 32.
    Q8_0 = 8, "Q8_0", 32 / 34;
    /// 8-bit activations with their sum; not a weight type.
    Q8_1 = 9, "Q8_1", 32 / 36;
    /// 2-bit super-blocks of 256.
    Q2_K = 10, "Q2_K", 256 / 84;
    /// 3-bit super-blocks of 256.
    Q3_K = 11, "Q3_K", 256 / 110;
    /// 4-bit super-blocks of 256.
    Q4_K = 12, "Q4_K", 256 / 144;
    /// 5-bit super-blocks of 256.
    Q5_K = 13, "Q5_K", 256 / 176;
    /// 6-bit super-blocks of 256.
    Q6_K = 14, "Q6_K", 256 / 210;
    /// 8-bit activations of the K types; not a weight type.
    Q8_K = 15, "Q8_K", 256 / 292;
    /// 2.06-bit codebook.
    IQ2_XXS = 16, "IQ2_XXS", 256 / 66;
    /// 2.31-bit codebook.
    IQ2_XS = 17, "IQ2_XS", 256 / 74;
    /// 3.06-bit codebook.
    IQ3_XXS = 18, "IQ3_XXS", 256 / 98;
    /// 1.56-bit codebook.
    IQ1_S = 19, "IQ1_S", 256 / 50;
    /// 4-bit non-linear, f16 scale per 32.
    IQ4_NL = 20, "IQ4_NL", 32 / 18;
    /// 3.44-bit codebook.
    IQ3_S = 21, "IQ3_S", 256 / 110;
    /// 2.5-bit codebook.
    IQ2_S = 22, "IQ2_S", 256 / 82;
    /// 4.25-bit non-linear.
    IQ4_XS = 23, "IQ4_XS", 256 / 136;
    /// 8-bit integer.
    I8 = 24, "I8", 1 / 1;
    /// 16-bit integer.
    I16 = 25, "I16", 1 / 2;
    /// 32-bit integer.
    I32 = 26, "I32", 1 / 4;
    /// 64-bit integer.
    I64 = 27, "I64", 1 / 8;
    /// 64-bit IEEE float.
    F64 = 28, "F64", 1 / 8;
    /// 1.75-bit codebook.
    IQ1_M = 29, "IQ1_M", 256 / 56;
    /// The upper half of a 32-bit float.
    BF16 = 30, "BF16", 1 / 2;
    /// Ternary, 1.69 bits.
    TQ1_0 = 34, "TQ1_0", 256 / 54;
    /// Ternary, 2.06 bits.
    TQ2_0 = 35, "TQ2_0", 256 / 66;
    /// 4-bit float with a shared exponent per 32.
    MXFP4 = 39, "MXFP4", 32 / 17;
    /// 4-bit float with four 8-bit scales per 64.
    NVFP4 = 40, "NVFP4", 64 / 36;
    /// 1-bit, f16 scale per 128.
    Q1_0 = 41, "Q1_0", 128 / 18;
    /// 2-bit, f16 scale per 64.
    Q2_0 = 42, "Q2_0", 64 / 18;
    /// Q4_K with its scales expanded at conversion (spec §7.2.1).
    Q4KSoa = 112, "Q4_K_SOA", 256 / 160;
    /// Sixteen rows of Q4_0 side by side.
    Q4_0_R16 = 113, "Q4_0_R16", 32 / 18;
    /// Sixteen rows of Q4_1 side by side.
    Q4_1_R16 = 114, "Q4_1_R16", 32 / 20;
    /// Sixteen rows of Q5_0 side by side.
    Q5_0_R16 = 115, "Q5_0_R16", 32 / 22;
    /// Sixteen rows of Q5_1 side by side.
    Q5_1_R16 = 116, "Q5_1_R16", 32 / 24;
    /// Sixteen rows of Q8_0 side by side.
    Q8_0_R16 = 117, "Q8_0_R16", 32 / 34;
    /// Sixteen rows of Q2_K side by side.
    Q2_K_R16 = 118, "Q2_K_R16", 256 / 84;
    /// Sixteen rows of Q3_K side by side.
    Q3_K_R16 = 119, "Q3_K_R16", 256 / 110;
    /// Sixteen rows of Q4_K side by side.
    Q4_K_R16 = 120, "Q4_K_R16", 256 / 144;
    /// Sixteen rows of Q5_K side by side.
    Q5_K_R16 = 121, "Q5_K_R16", 256 / 176;
    /// Sixteen rows of Q6_K side by side.
    Q6_K_R16 = 122, "Q6_K_R16", 256 / 210;
    /// Sixteen rows of IQ4_NL side by side.
    IQ4_NL_R16 = 123, "IQ4_NL_R16", 32 / 18;
    /// Sixteen rows of IQ4_XS side by side.
    IQ4_XS_R16 = 124, "IQ4_XS_R16", 256 / 136;
    /// Sixteen rows of F16 side by side.
    F16_R16 = 125, "F16_R16", 1 / 2;
    /// Sixteen rows of BF16 side by side.
    BF16_R16 = 126, "BF16_R16", 1 / 2;
    /// Sixteen rows of F32 side by side.
    F32_R16 = 127, "F32_R16", 1 / 4;
}

/// Rows side by side in the types named `_R16`, whose tensors have a multiple of them in every matrix.
pub const TILE_ROWS: u32 = 16;

macro_rules! tiled {
    ($($stock:ident => $tiled:ident;)*) => {
        impl DType {
            /// The type with the same blocks row after row, if this one has sixteen rows side by side; else itself.
            #[must_use]
            pub const fn stock(self) -> Self {
                match self {
                    $(Self::$tiled => Self::$stock,)*
                    other => other,
                }
            }

            /// The type with the same blocks and sixteen rows side by side, where there is one.
            #[must_use]
            pub const fn tiled(self) -> Option<Self> {
                match self {
                    $(Self::$stock => Some(Self::$tiled),)*
                    _ => None,
                }
            }

            /// Whether the type has sixteen rows side by side.
            #[must_use]
            pub const fn is_tiled(self) -> bool {
                matches!(self, $(Self::$tiled)|*)
            }
        }
    };
}

tiled! {
    Q4_0 => Q4_0_R16;
    Q4_1 => Q4_1_R16;
    Q5_0 => Q5_0_R16;
    Q5_1 => Q5_1_R16;
    Q8_0 => Q8_0_R16;
    Q2_K => Q2_K_R16;
    Q3_K => Q3_K_R16;
    Q4_K => Q4_K_R16;
    Q5_K => Q5_K_R16;
    Q6_K => Q6_K_R16;
    IQ4_NL => IQ4_NL_R16;
    IQ4_XS => IQ4_XS_R16;
    F16 => F16_R16;
    BF16 => BF16_R16;
    F32 => F32_R16;
}

const _: () = {
    let mut at = 0;
    while at < DType::ALL.len() {
        if let Some(block) = DType::ALL[at].block() {
            assert!(block.elements.is_power_of_two());
        }
        at += 1;
    }
};

/// `number / 5`, a byte at a time from the top: `u64` division is a library function on 32-bit machines.
fn fifth(number: u64) -> u64 {
    let mut rest = 0u16;
    u64::from_be_bytes(number.to_be_bytes().map(|byte| {
        let digit = (rest << 8) | u16::from(byte);
        rest = digit % 5;
        u8::try_from(digit / 5).unwrap_or_default()
    }))
}

/// Why a payload length cannot be worked out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SizeError {
    /// The element or byte count does not fit 64 bits.
    Overflow,
    /// `dims[0]` is no multiple of the block's elements (given).
    PartialBlock(u32),
    /// `dims[1]` (given) is no multiple of [`TILE_ROWS`], in a type with sixteen rows side by side.
    PartialTile(u32),
}

impl DType {
    /// Payload bytes of a tensor of this type and `shape`; `Ok(None)` for unknown codes.
    ///
    /// # Errors
    /// [`SizeError`] when the shape overflows or a row is no whole number of blocks.
    pub fn byte_len(self, shape: &Shape) -> Result<Option<u64>, SizeError> {
        let elements = shape.elements().ok_or(SizeError::Overflow)?;
        if self == Self::Ternary {
            // Five digits to a byte, the last one perhaps not full, and the scale.
            let bytes = elements.checked_add(4).map(fifth).and_then(|bytes| bytes.checked_add(4));
            return bytes.map(Some).ok_or(SizeError::Overflow);
        }
        let Some(block) = self.block() else { return Ok(None) };
        // Blocks hold powers of two, so neither test nor quotient takes a division, which is long on a 32-bit machine.
        if shape.row_len() & u64::from(block.elements).saturating_sub(1) != 0 {
            return Err(SizeError::PartialBlock(block.elements));
        }
        if self.is_tiled() {
            let rows = shape.dims().get(1).copied().unwrap_or(1);
            if !rows.is_multiple_of(TILE_ROWS) {
                return Err(SizeError::PartialTile(rows));
            }
        }
        let blocks = elements.checked_shr(block.elements.trailing_zeros());
        blocks.and_then(|blocks| blocks.checked_mul(u64::from(block.bytes))).map(Some).ok_or(SizeError::Overflow)
    }

    /// Whether the code is in the registry.
    #[must_use]
    pub const fn is_known(self) -> bool {
        !matches!(self, Self::Unknown(_))
    }

    /// Whether the code is one of GGML's (not one that P64 adds, not unknown), so that a GGUF can carry it.
    #[must_use]
    pub const fn is_ggml(self) -> bool {
        !matches!(self, Self::Unknown(_) | Self::Ternary | Self::Q4KSoa) && !self.is_tiled()
    }

    /// What a code once meant, for codes that GGML has removed. 36 is also the private `i2_s` of BitNet's fork.
    #[must_use]
    pub const fn removed_name(id: u32) -> Option<&'static str> {
        match id {
            4 => Some("Q4_2"),
            5 => Some("Q4_3"),
            31 => Some("Q4_0_4_4"),
            32 => Some("Q4_0_4_8"),
            33 => Some("Q4_0_8_8"),
            36 => Some("IQ4_NL_4_4, or the private i2_s of a BitNet fork"),
            37 => Some("IQ4_NL_4_8"),
            38 => Some("IQ4_NL_8_8"),
            _ => None,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(f, "unknown type {id}"),
            known => f.pad(known.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_a_round_trip() {
        for id in 0..=u16::MAX {
            assert_eq!(DType::from_id(id).id(), id);
        }
    }

    #[test]
    fn every_tiled_type_has_the_blocks_of_its_stock() {
        let tiled: std::vec::Vec<_> = DType::ALL.iter().filter(|dtype| dtype.is_tiled()).collect();
        assert_eq!(tiled.len(), 15);
        for dtype in tiled {
            let stock = dtype.stock();
            assert_eq!((stock.tiled(), dtype.block()), (Some(*dtype), stock.block()));
            assert_eq!(dtype.name().strip_suffix("_R16"), Some(stock.name()));
            assert!(!dtype.is_ggml() && stock.is_ggml() && stock.stock() == stock);
        }
    }

    #[test]
    fn a_fifth_is_a_fifth() {
        for number in (0..5000).chain((0..64).map(|bit| 1u64 << bit)).chain([u64::MAX, u64::MAX - 1]) {
            assert_eq!(fifth(number), number / 5);
        }
    }

    #[test]
    fn sizes() {
        let shape = Shape::new(&[576, 3]).expect("rank 2");
        assert_eq!(DType::Q4_1.byte_len(&shape), Ok(Some(3 * 18 * 20)));
        assert_eq!(DType::F32.byte_len(&shape), Ok(Some(3 * 576 * 4)));
        assert_eq!(DType::Q4_K.byte_len(&shape), Err(SizeError::PartialBlock(256)));
        assert_eq!(DType::Ternary.byte_len(&Shape::new(&[7]).expect("rank 1")), Ok(Some(6)));
        assert_eq!(DType::Unknown(77).byte_len(&shape), Ok(None));
        assert_eq!(DType::Q6_K.byte_len(&Shape::new(&[0, 9]).expect("rank 2")), Ok(Some(0)));
        assert_eq!(DType::Q4_1_R16.byte_len(&shape), Err(SizeError::PartialTile(3)));
        assert_eq!(DType::Q4_1_R16.byte_len(&Shape::new(&[576]).expect("rank 1")), Err(SizeError::PartialTile(1)));
        let tiles = Shape::new(&[64, 48, 5]).expect("rank 3");
        assert_eq!(DType::Q4_1_R16.byte_len(&tiles), DType::Q4_1.byte_len(&tiles));
        let huge = Shape::new(&[u32::MAX, u32::MAX, u32::MAX]).expect("rank 3");
        assert_eq!(DType::I8.byte_len(&huge), Err(SizeError::Overflow));
    }
}
