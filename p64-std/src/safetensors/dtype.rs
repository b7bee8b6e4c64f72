//! The element types of safetensors, and which of them GGML has.

use p64_core::DType;
use std::fmt;

macro_rules! types {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $bits:literal, $ggml:expr;)*) => {
        /// An element type of the format, by the name that stands in a header. The order is that in which the library that
        /// defines the format writes tensors, the last type first.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        #[non_exhaustive]
        #[allow(non_camel_case_types, reason = "the names are the format's own")]
        pub enum ElementType {
            $($(#[$doc])* $variant,)*
        }

        impl ElementType {
            /// Every type of the format.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The type of a name, which is matched exactly.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The name in a header.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Bits of one element.
            #[must_use]
            pub const fn bits(self) -> u64 {
                match self {
                    $(Self::$variant => $bits,)*
                }
            }

            /// The type of the same elements in GGML's registry; `None` where it has none.
            #[must_use]
            pub const fn ggml(self) -> Option<DType> {
                match self {
                    $(Self::$variant => $ggml,)*
                }
            }
        }
    };
}

types! {
    /// A byte of 0 or 1.
    Bool = "BOOL", 8, None;
    /// 4-bit float, two to a byte.
    F4 = "F4", 4, None;
    /// 6-bit float of 2 exponent bits.
    F6_E2M3 = "F6_E2M3", 6, None;
    /// 6-bit float of 3 exponent bits.
    F6_E3M2 = "F6_E3M2", 6, None;
    /// Unsigned byte.
    U8 = "U8", 8, None;
    /// Signed byte.
    I8 = "I8", 8, Some(DType::I8);
    /// 8-bit float of 5 exponent bits.
    F8_E5M2 = "F8_E5M2", 8, None;
    /// 8-bit float of 4 exponent bits.
    F8_E4M3 = "F8_E4M3", 8, None;
    /// A power of two.
    F8_E8M0 = "F8_E8M0", 8, None;
    /// 8-bit float of 4 exponent bits, without infinities and negative zero.
    F8_E4M3FNUZ = "F8_E4M3FNUZ", 8, None;
    /// 8-bit float of 5 exponent bits, without infinities and negative zero.
    F8_E5M2FNUZ = "F8_E5M2FNUZ", 8, None;
    /// 16-bit integer.
    I16 = "I16", 16, Some(DType::I16);
    /// Unsigned 16-bit integer.
    U16 = "U16", 16, None;
    /// 16-bit IEEE float.
    F16 = "F16", 16, Some(DType::F16);
    /// The upper half of a 32-bit float.
    BF16 = "BF16", 16, Some(DType::BF16);
    /// 32-bit integer.
    I32 = "I32", 32, Some(DType::I32);
    /// Unsigned 32-bit integer.
    U32 = "U32", 32, None;
    /// 32-bit IEEE float.
    F32 = "F32", 32, Some(DType::F32);
    /// Two 32-bit floats.
    C64 = "C64", 64, None;
    /// 64-bit IEEE float.
    F64 = "F64", 64, Some(DType::F64);
    /// 64-bit integer.
    I64 = "I64", 64, Some(DType::I64);
    /// Unsigned 64-bit integer.
    U64 = "U64", 64, None;
}

impl ElementType {
    /// The type that holds a GGML type's elements as they are; `None` for block types and for codes of ours.
    #[must_use]
    pub fn from_ggml(dtype: DType) -> Option<Self> {
        Self::ALL.iter().copied().find(|own| own.ggml() == Some(dtype))
    }

    /// Bytes of `elements` elements; `None` when the number overflows or is no whole number of bytes.
    #[must_use]
    pub fn byte_len(self, elements: u64) -> Option<u64> {
        let bits = elements.checked_mul(self.bits())?;
        bits.is_multiple_of(8).then_some(bits / 8)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
