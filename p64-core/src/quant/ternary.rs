//! Ternary: -1, 0 or +1 times one scale, five values to a byte (BitNet-1.58b; P64 type 1158, spec §7.4).
//!
//! ```text
//! 0..4   f32    scale of the whole tensor
//! 4..    u8     byte = d0 + 3 d1 + 9 d2 + 27 d3 + 81 d4, digit = trit + 1, at most 242
//! value = scale * (digit - 1)
//! ```
//!
//! The digits run over the whole tensor: rows do not begin on a byte. Digits missing in the last byte are 0.
#![forbid(unsafe_code)]

use crate::error::{Code, Error, Place, Result};

/// The largest byte: five digits of 2.
pub const LARGEST_BYTE: u8 = 242;

/// Values in one byte.
pub const PER_BYTE: usize = 5;

/// Bytes of `elements` values, the scale included, or `None` when that does not fit.
#[must_use]
pub const fn byte_len(elements: usize) -> Option<usize> {
    elements.div_ceil(PER_BYTE).checked_add(size_of::<f32>())
}

/// The trits of every byte up to [`LARGEST_BYTE`].
const TRITS: [[i8; PER_BYTE]; LARGEST_BYTE as usize + 1] = {
    let mut table = [[0; PER_BYTE]; LARGEST_BYTE as usize + 1];
    let mut trits = [-1i8; PER_BYTE];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = trits;
        // Count one up in base 3, first digit first.
        let mut digit = 0;
        while digit < PER_BYTE {
            if trits[digit] < 1 {
                trits[digit] += 1;
                break;
            }
            trits[digit] = -1;
            digit += 1;
        }
        byte += 1;
    }
    table
};

/// A ternary payload whose every byte has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Ternary<'a> {
    scale: f32,
    packed: &'a [u8],
}

impl<'a> Ternary<'a> {
    /// The payload of `elements` values.
    ///
    /// # Errors
    /// [`Code::LengthMismatch`] unless `bytes` is exactly as long as that takes; [`Code::TernaryDigit`] for a byte above
    /// [`LARGEST_BYTE`].
    pub fn new(bytes: &'a [u8], elements: usize) -> Result<Self> {
        let this = Self::split(bytes, elements)?;
        match this.packed.iter().find(|byte| **byte > LARGEST_BYTE) {
            None => Ok(this),
            Some(byte) => {
                let (most, found) = (u64::from(LARGEST_BYTE), u64::from(*byte));
                Err(Error::new(Code::TernaryDigit, Place::File).values(most, found))
            }
        }
    }

    /// The same without looking at the bytes. A byte above [`LARGEST_BYTE`] reads as five NaN.
    pub(crate) fn split(bytes: &'a [u8], elements: usize) -> Result<Self> {
        let need = byte_len(elements).unwrap_or(usize::MAX);
        match bytes.split_first_chunk::<4>() {
            Some((scale, packed)) if bytes.len() == need => Ok(Self { scale: f32::from_le_bytes(*scale), packed }),
            _ => Err(Error::new(Code::LengthMismatch, Place::File).values(need as u64, bytes.len() as u64)),
        }
    }

    /// Writes the values from element `first` on, as many as `out` takes; what lies past the payload reads as NaN.
    pub fn dequantize(&self, first: usize, out: &mut [f32]) {
        let (start, skip) = (first / PER_BYTE, first % PER_BYTE);
        let bytes = self.packed.get(start..).unwrap_or_default();
        let (head, tail) = out.split_at_mut(out.len().min((PER_BYTE - skip) % PER_BYTE));
        let (head_bytes, bytes) = bytes.split_at(bytes.len().min(usize::from(skip > 0)));
        head.fill(f32::NAN);
        for (out, value) in head.iter_mut().zip(head_bytes.iter().flat_map(|byte| self.values(*byte)).skip(skip)) {
            *out = value;
        }
        let mut bytes = bytes.iter();
        for out in tail.chunks_mut(PER_BYTE) {
            let values = bytes.next().map_or([f32::NAN; PER_BYTE], |byte| self.values(*byte));
            for (out, value) in out.iter_mut().zip(values) {
                *out = value;
            }
        }
    }

    #[inline]
    fn values(&self, byte: u8) -> [f32; PER_BYTE] {
        match TRITS.get(usize::from(byte)) {
            Some(trits) => trits.map(|trit| self.scale * f32::from(trit)),
            None => [f32::NAN; PER_BYTE],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn decode(bytes: &[u8], elements: usize) -> Vec<f32> {
        let ternary = Ternary::new(bytes, elements).expect("a valid payload");
        let mut out = std::vec![0.0; elements];
        ternary.dequantize(0, &mut out);
        for first in 0..elements {
            let mut rest = std::vec![0.0; elements - first];
            ternary.dequantize(first, &mut rest);
            assert_eq!(rest, out[first..]);
        }
        out
    }

    /// The payloads of docs/spec §7.4.
    #[test]
    fn worked_payloads() {
        let s = 0.84;
        assert_eq!(decode(&[0x3d, 0x0a, 0x57, 0x3f, 0x77], 5), [s, -s, 0.0, 0.0, 0.0]);
        let s = f32::from_bits(0x3f83_a83a);
        assert_eq!(decode(&[0x3a, 0xa8, 0x83, 0x3f, 0x77, 0x02], 7), [s, -s, 0.0, 0.0, 0.0, s, -s]);
        assert_eq!(decode(&[0x00, 0x00, 0x80, 0x3f, 0xf2, 0x02], 6), [1.0; 6]);
        assert_eq!(decode(&[0, 0, 0, 0, 0x79, 0x04], 7), [0.0; 7]);
        assert_eq!(decode(&[0x00, 0x00, 0x80, 0x3f, 0x14], 4), [1.0, -1.0, 1.0, -1.0]);
    }

    #[test]
    fn every_byte_is_its_digits() {
        for byte in 0..=LARGEST_BYTE {
            let values = decode(&[0, 0, 0x80, 0x3f, byte], 5);
            let back = values.iter().rev().fold(0.0, |sum, value| sum * 3.0 + value + 1.0);
            assert_eq!(back, f32::from(byte));
        }
    }

    #[test]
    fn bytes_above_the_largest_and_wrong_lengths_are_refused() {
        for byte in 243..=255 {
            let error = Ternary::new(&[0, 0, 0, 0, 0, byte], 10).expect_err("a bad digit");
            assert_eq!((error.code, error.expected, error.found), (Code::TernaryDigit, 242, u64::from(byte)));
        }
        for (bytes, elements) in [(&[0u8; 3][..], 0), (&[0; 5], 0), (&[0; 4], 1), (&[0; 6], 5), (&[0; 5], usize::MAX)] {
            assert_eq!(Ternary::new(bytes, elements).expect_err("a wrong length").code, Code::LengthMismatch);
        }
        assert!(Ternary::new(&[0; 4], 0).is_ok());
    }
}
