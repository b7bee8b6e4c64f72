//! Types of P64 that GGUF does not have, as types that it has.
//!
//! ```text
//! Q4_K_SOA  -> Q4_1      32 x (factor, minimum), the same nibbles: each value exactly, minimum negated
//! TERNARY   -> TQ2_0     rows of whole 256, the tensor's scale rounded to F16
//!              Q4_0      rows of whole 32, likewise
//!              F16       other rows, likewise
//!              F32       a scale that F16 does not hold
//! _R16      -> the stock type, row after row: the same bytes
//! ```

use crate::error::{Error, Result};
use p64_core::quant::float::{from_f16, to_f16};
use p64_core::quant::ternary::{self, PER_BYTE, Ternary};
use p64_core::quant::tile::{self, Units};
use p64_core::quant::{q4_1, q4_k_soa};
use p64_core::{DType, Shape};
use std::path::Path;

/// Values of a piece: whole bytes of ternary digits, whole blocks of every type.
const PIECE: usize = 1280 * 256;

/// Largest relative error that rounding to F16 makes.
const ROUNDING: f32 = 1.0 / 2048.0;

/// How a payload is written to a GGUF.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum StandIn {
    /// As it is.
    Same(DType),
    /// Sixteen rows side by side as row after row of this type.
    Rows(DType),
    /// Q4_K_SOA as Q4_1.
    Affine,
    /// Ternary as this type.
    Trits(DType),
}

impl StandIn {
    /// The stand-in for a payload, whose beginning (with a ternary's scale) is `head`.
    pub fn of(dtype: DType, shape: &Shape, head: &[u8]) -> Self {
        match dtype {
            DType::Q4KSoa => Self::Affine,
            DType::Ternary => Self::Trits(trits_as(shape, scale_of(head))),
            tiled if tiled.is_tiled() => Self::Rows(tiled.stock()),
            other => Self::Same(other),
        }
    }

    /// The type in the GGUF.
    pub const fn dtype(self) -> DType {
        match self {
            Self::Same(dtype) | Self::Rows(dtype) | Self::Trits(dtype) => dtype,
            Self::Affine => DType::Q4_1,
        }
    }

    /// Whether the bytes are those that the source had.
    pub const fn is_lossless(self) -> bool {
        matches!(self, Self::Same(_) | Self::Rows(_))
    }

    /// Calls `take` with the bytes in the GGUF, in pieces. `path` and `name` are for errors.
    pub fn write(
        self,
        payload: &[u8],
        shape: &Shape,
        (path, name): (&Path, &str),
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Same(_) => payload.chunks(crate::write::CHUNK).try_for_each(take),
            Self::Rows(dtype) => {
                let row = Shape::new(shape.dims().get(..1).unwrap_or_default());
                let row = row.and_then(|row| dtype.byte_len(&row).ok().flatten()).unwrap_or_default();
                let len = usize::try_from(row).unwrap_or(usize::MAX).saturating_mul(tile::ROWS);
                let (Some(units), false) = (Units::of(dtype), len == 0) else { return Ok(()) };
                let mut rows = vec![0; len.min(payload.len())];
                payload.chunks_exact(len).try_for_each(|tile| {
                    tile::untile(units, tile, &mut rows);
                    take(&rows)
                })
            }
            Self::Affine => {
                let mut blocks = payload.as_chunks::<{ q4_k_soa::BYTES }>().0.chunks(PIECE / q4_k_soa::ELEMENTS);
                blocks.try_for_each(|blocks| {
                    take(blocks.iter().map(affine).collect::<Vec<_>>().as_flattened().as_flattened())
                })
            }
            Self::Trits(dtype) => {
                let elements = shape.elements().and_then(|elements| usize::try_from(elements).ok()).unwrap_or_default();
                let scale = scale_of(payload);
                let digits = payload.get(size_of::<f32>()..).unwrap_or_default();
                let mut pieces = digits.chunks(PIECE / PER_BYTE).zip((0..elements).step_by(PIECE));
                pieces.try_for_each(|(digits, first)| {
                    let len = elements.saturating_sub(first).min(PIECE);
                    let values = signs(digits, len).map_err(|error| refuse(path, name, &error))?;
                    take(&encode(dtype, scale, &values))
                })
            }
        }
    }

    /// Why the type is another one, where it is.
    pub fn note(self, from: DType) -> Option<String> {
        match self {
            Self::Same(_) | Self::Rows(_) => None,
            Self::Affine => Some(format!("{from} as Q4_1, which holds the same values")),
            Self::Trits(DType::F32) => Some(format!("{from} as F32: F16 does not hold its scale")),
            Self::Trits(to) => Some(format!("{from} as {to}, its scale rounded to F16")),
        }
    }
}

fn refuse(path: &Path, name: &str, error: &p64_core::Error) -> Error {
    Error::refused(path, format!("tensor {name:?}: {error}"))
}

fn scale_of(payload: &[u8]) -> f32 {
    payload.first_chunk().map_or(f32::NAN, |scale| f32::from_le_bytes(*scale))
}

fn trits_as(shape: &Shape, scale: f32) -> DType {
    let rounded = from_f16(&to_f16(scale));
    let near = (rounded - scale).abs() <= scale.abs() * ROUNDING;
    let fits = |dtype: DType| dtype.byte_len(shape).is_ok();
    match () {
        () if !near => DType::F32,
        () if fits(DType::TQ2_0) => DType::TQ2_0,
        () if fits(DType::Q4_0) => DType::Q4_0,
        () => DType::F16,
    }
}

/// The digits as -1, 0 and +1.
fn signs(digits: &[u8], len: usize) -> std::result::Result<Vec<f32>, p64_core::Error> {
    let mut payload = 1.0f32.to_le_bytes().to_vec();
    payload.extend_from_slice(digits);
    payload.truncate(ternary::byte_len(len).unwrap_or_default());
    let mut values = vec![0.0; len];
    Ternary::new(&payload, len)?.dequantize(0, &mut values);
    Ok(values)
}

/// `signs` times `scale`.
fn encode(dtype: DType, scale: f32, signs: &[f32]) -> Vec<u8> {
    let half = to_f16(scale);
    match dtype {
        DType::TQ2_0 => {
            let mut out = Vec::with_capacity(signs.len() / 256 * 66);
            for block in signs.as_chunks::<256>().0 {
                for run in block.as_chunks::<128>().0 {
                    out.extend((0..32).map(|at| {
                        // Element `32 digit + at` in two bits from the low end.
                        let digits = run.iter().skip(at).step_by(32).rev();
                        digits.fold(0u8, |byte, sign| (byte << 2) | digit(*sign))
                    }));
                }
                out.extend_from_slice(&half);
            }
            out
        }
        DType::Q4_0 => {
            let mut out = Vec::with_capacity(signs.len() / 32 * 18);
            for block in signs.as_chunks::<32>().0 {
                out.extend_from_slice(&half);
                let (low, high) = block.split_at(16);
                // Nibbles stand for the number less 8, digits for the number less 1.
                out.extend(low.iter().zip(high).map(|(low, high)| (digit(*low) + 7) | ((digit(*high) + 7) << 4)));
            }
            out
        }
        DType::F16 => {
            let scale = from_f16(&half);
            signs.iter().flat_map(|sign| to_f16(sign * scale)).collect()
        }
        _ => signs.iter().flat_map(|sign| (sign * scale).to_le_bytes()).collect(),
    }
}

/// 0, 1 or 2 for -1, 0 or +1.
fn digit(sign: f32) -> u8 {
    1 + u8::from(sign > 0.0) - u8::from(sign < 0.0)
}

/// A block of Q4_K_SOA as eight of Q4_1: `factor * nibble - minimum` is `d * nibble + m`.
fn affine(block: &[u8; q4_k_soa::BYTES]) -> [[u8; q4_1::BYTES]; 8] {
    let mut out = [[0; q4_1::BYTES]; 8];
    let (quants, halves) = block.split_at(128);
    let (factors, minima) = halves.split_at(16);
    let halves = factors.as_chunks::<2>().0.iter().zip(minima.as_chunks::<2>().0);
    for (group, (out, (factor, minimum))) in out.iter_mut().zip(halves).enumerate() {
        let run = quants.as_chunks::<32>().0.get(group / 2).copied().unwrap_or([0; 32]);
        let nibbles = run.map(|byte| if group % 2 == 0 { byte & 15 } else { byte >> 4 });
        let (d, rest) = out.split_at_mut(2);
        let (m, packed) = rest.split_at_mut(2);
        d.copy_from_slice(factor);
        let [low, high] = *minimum;
        m.copy_from_slice(&[low, high ^ 0x80]);
        let (first, last) = nibbles.split_at(16);
        for (packed, (first, last)) in packed.iter_mut().zip(first.iter().zip(last)) {
            *packed = first | (last << 4);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use p64_core::kernel::dequantize;

    fn decoded(dtype: DType, bytes: &[u8], len: usize) -> Vec<f32> {
        let mut out = vec![0.0; len];
        dequantize(dtype, bytes, &mut out).expect("decodes");
        out
    }

    fn written(stand_in: StandIn, payload: &[u8], shape: &Shape) -> Vec<u8> {
        let mut out = Vec::new();
        let mut take = |piece: &[u8]| -> Result<()> {
            out.extend_from_slice(piece);
            Ok(())
        };
        stand_in.write(payload, shape, (Path::new("x"), "t"), &mut take).expect("written");
        out
    }

    #[test]
    fn soa_is_q4_1_value_for_value() {
        let mut payload: Vec<u8> = (0..160u16 * 3).map(|i| u8::try_from(i * 37 % 251).expect("a byte")).collect();
        // Factors and minima that are numbers: exponents below the highest.
        for block in payload.chunks_mut(160) {
            block[128..].chunks_mut(2).for_each(|half| half[1] &= 0xbb);
        }
        let shape = Shape::new(&[256, 3]).expect("rank 2");
        let stand_in = StandIn::of(DType::Q4KSoa, &shape, &payload);
        assert_eq!(stand_in.dtype(), DType::Q4_1);
        let bytes = written(stand_in, &payload, &shape);
        assert_eq!(bytes.len(), payload.len());
        let (own, theirs) = (decoded(DType::Q4KSoa, &payload, 768), decoded(DType::Q4_1, &bytes, 768));
        assert_eq!(own, theirs);
        assert!(own.iter().any(|value| *value != 0.0));
    }

    #[test]
    fn trits_keep_their_signs_and_round_one_scale() {
        for (dims, expected) in [
            (&[256u32, 3][..], DType::TQ2_0),
            (&[32, 5], DType::Q4_0),
            (&[7, 3], DType::F16),
            (&[1280, 300], DType::TQ2_0),
        ] {
            let shape = Shape::new(dims).expect("rank 2");
            let len = usize::try_from(shape.elements().expect("small")).expect("small");
            let mut payload = 0.0123f32.to_le_bytes().to_vec();
            payload.extend((0..len.div_ceil(5)).map(|i| u8::try_from(i * 7 % 243).expect("a byte")));
            let stand_in = StandIn::of(DType::Ternary, &shape, &payload);
            assert_eq!(stand_in.dtype(), expected);
            let bytes = written(stand_in, &payload, &shape);
            assert_eq!(Some(bytes.len() as u64), expected.byte_len(&shape).expect("whole blocks"));
            let scale = from_f16(&to_f16(0.0123));
            let own: Vec<f32> =
                decoded(DType::Ternary, &payload, len).iter().map(|value| value / 0.0123 * scale).collect();
            for (own, theirs) in own.iter().zip(decoded(expected, &bytes, len)) {
                assert!((own - theirs).abs() <= 1e-6 * scale, "{own} {theirs}");
            }
        }
        for scale in [1e6f32, 1e-9] {
            let shape = Shape::new(&[256]).expect("rank 1");
            let payload: Vec<u8> = scale.to_le_bytes().into_iter().chain([0; 52]).collect();
            let stand_in = StandIn::of(DType::Ternary, &shape, &payload);
            assert_eq!(stand_in.dtype(), DType::F32);
            assert_eq!(decoded(DType::F32, &written(stand_in, &payload, &shape), 256), [-scale; 256]);
        }
    }

    #[test]
    fn a_scale_of_zero_is_held() {
        let shape = Shape::new(&[256]).expect("rank 1");
        let payload: Vec<u8> = 0.0f32.to_le_bytes().into_iter().chain([121; 52]).collect();
        assert_eq!(StandIn::of(DType::Ternary, &shape, &payload).dtype(), DType::TQ2_0);
    }
}
