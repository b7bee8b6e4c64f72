//! How weights are packed: one module for each element type that this build computes with.
//!
//! Every block format is read the same way. `unpack` turns the packed bytes of one block into [`Group`]s, integers of
//! 32 consecutive weights with the factors that make numbers of them; what follows from that is shared:
//!
//! ```text
//! block bytes --unpack--> [Group; ELEMENTS / 32] --dequantize_block--> f32 values
//!                                                \--dot_block--------> sum of products with ActivationBlocks
//! ```
//!
//! `dequantize_block` gives the bits that GGML's reference code gives when it is compiled without fused multiply-add:
//! one multiplication for the scale, one for the value, one subtraction for the minimum, in that order.
#![forbid(unsafe_code)]

/// A block format as a type, for code that is generic over formats.
pub trait Packed<const BYTES: usize, const GROUPS: usize, const S: usize> {
    /// The integers of one block and their factors.
    fn unpack(block: &[u8; BYTES]) -> [Group<S>; GROUPS];
}

/// `unpack` of a format behind a pointer, so that code over formats of one size is there once. Bytes that are too few for a
/// block are a block of zeros.
#[cfg(feature = "all-types")]
pub(crate) fn unpack_from<F, const BYTES: usize, const GROUPS: usize, const S: usize>(
    bytes: &[u8],
) -> [Group<S>; GROUPS]
where
    F: Packed<BYTES, GROUPS, S>,
{
    bytes.first_chunk().map_or([Group::ZERO; GROUPS], F::unpack)
}

/// A pointer to [`unpack_from`] of a format.
#[cfg(feature = "all-types")]
pub(crate) type Unpack<const GROUPS: usize, const S: usize> = fn(&[u8]) -> [Group<S>; GROUPS];

/// Defines what every block format has beside its `unpack`: sizes, `dequantize_block`, `dot_block` and [`Packed`].
macro_rules! block_format {
    (elements: $elements:literal, bytes: $bytes:literal, scales per group: $scales:literal) => {
        /// Values of one block.
        pub const ELEMENTS: usize = $elements;

        /// Bytes of one block.
        pub const BYTES: usize = $bytes;

        /// The values of one block, bit for bit those of GGML's reference code.
        #[inline]
        pub fn dequantize_block(block: &[u8; BYTES], out: &mut [f32; ELEMENTS]) {
            $crate::quant::group::dequantize(&unpack(block), out);
        }

        /// The sum of products of one block with quantised activations; the integer part is exact.
        #[inline]
        #[must_use]
        pub fn dot_block(
            block: &[u8; BYTES],
            activations: &[$crate::quant::activation::ActivationBlock; ELEMENTS / 32],
        ) -> f32 {
            $crate::quant::group::dot::<$scales>(&unpack(block), activations, 0.0)
        }

        /// This format as a type.
        #[derive(Clone, Copy, Debug)]
        pub struct Format;

        impl $crate::quant::Packed<BYTES, { ELEMENTS / 32 }, $scales> for Format {
            #[inline(always)]
            fn unpack(block: &[u8; BYTES]) -> [Group<$scales>; ELEMENTS / 32] {
                unpack(block)
            }
        }
    };
}

pub mod activation;
mod codebook;
pub mod float;
pub mod group;
pub mod iq1_m;
pub mod iq1_s;
pub mod iq2_s;
pub mod iq2_xs;
pub mod iq2_xxs;
pub mod iq3_s;
pub mod iq3_xxs;
pub mod iq4_nl;
pub mod iq4_xs;
pub mod mxfp4;
pub mod nvfp4;
pub mod q1_0;
pub mod q2_0;
pub mod q2_k;
pub mod q3_k;
pub mod q4_0;
pub mod q4_1;
pub mod q4_k;
pub mod q4_k_soa;
pub mod q5_0;
pub mod q5_1;
pub mod q5_k;
pub mod q6_k;
pub mod q8_0;
pub mod scales;
pub mod ternary;
pub mod tile;
pub mod tq1_0;
pub mod tq2_0;

pub use activation::ActivationBlock;
pub use group::Group;
