//! Another element type, and a number added to every element.

use super::{check, read_converted};
use crate::error::Result;
use crate::source::Payload;
use p64_core::quant::float::{from_bf16, from_f16, from_f32};
use p64_core::{DType, Shape};

/// f32 from f32, f16 or bf16; exact but for what is added, and that is rounded once.
pub(crate) struct Cast<'s> {
    inner: Box<dyn Payload + 's>,
    add: f32,
    /// Bytes of an element of the inner payload.
    width: usize,
}

impl<'s> Cast<'s> {
    /// `None` for other types than the three.
    pub(crate) fn new(inner: Box<dyn Payload + 's>, add: f32) -> Option<Self> {
        let width = match inner.dtype() {
            DType::F32 => 4,
            DType::F16 | DType::BF16 => 2,
            _ => return None,
        };
        Some(Self { inner, add, width })
    }

    /// The payload in f32, where it is of another float type.
    pub(crate) fn to_f32(inner: Box<dyn Payload + 's>) -> Box<dyn Payload + 's> {
        match inner.dtype() {
            DType::F16 | DType::BF16 => Box::new(Self { inner, add: 0.0, width: 2 }),
            _ => inner,
        }
    }

    fn convert(&self, bytes: &[u8], out: &mut Vec<u8>) {
        // Adding zero would take the sign of a negative one.
        let add = |value: f32| if self.add == 0.0 { value } else { value + self.add };
        let mut push = |value: f32| out.extend_from_slice(&add(value).to_le_bytes());
        match self.inner.dtype() {
            DType::F32 => bytes.as_chunks().0.iter().for_each(|bytes| push(from_f32(bytes))),
            DType::F16 => bytes.as_chunks().0.iter().for_each(|bytes| push(from_f16(bytes))),
            _ => bytes.as_chunks().0.iter().for_each(|bytes| push(from_bf16(bytes))),
        }
    }
}

impl Payload for Cast<'_> {
    fn dtype(&self) -> DType {
        DType::F32
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn len(&self) -> u64 {
        (self.inner.len() / self.width as u64).saturating_mul(4)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        check(offset, out.len(), self.len())?;
        read_converted(self.inner.as_ref(), (self.width, 4), offset, out, |raw, converted| self.convert(raw, converted))
    }
}
