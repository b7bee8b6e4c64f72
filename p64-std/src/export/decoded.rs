//! The values of a quantised payload, as floats.

use crate::error::{Error, Result};
use crate::quantize::encode_rows;
use crate::source::{Payload, SourceTensor};
use p64_core::kernel::{dequantize, is_supported};
use p64_core::quant::ternary::{self, Ternary};
use p64_core::{DType, Shape};
use std::path::{Path, PathBuf};

/// Elements that are decoded at once: a multiple of every block, and of the five digits of a ternary byte.
const RUN: u64 = 5 * 8192;
const TERNARY_SCALE: u64 = 4;
const TERNARY_PER_BYTE: u64 = ternary::PER_BYTE as u64;

/// A payload over another, decoded as it is read. Values are those of [`dequantize`], rounded to the nearest of the wanted
/// type, ties to even.
pub(super) struct Decoded<'s> {
    /// Source and name, for messages.
    path: PathBuf,
    name: String,
    inner: Box<dyn Payload + 's>,
    to: DType,
    width: u64,
    elements: u64,
    len: u64,
}

impl<'s> Decoded<'s> {
    /// The payload of a tensor of the source at `path` as F32, F16 or BF16. `None` for another type, or when the tensor is
    /// of a type that is not decoded.
    pub fn new(path: &Path, tensor: SourceTensor<'s>, to: DType) -> Option<Self> {
        let SourceTensor { name, payload: inner, .. } = tensor;
        let width = match to {
            DType::F32 => 4,
            DType::F16 | DType::BF16 => 2,
            _ => return None,
        };
        if !is_supported(inner.dtype()) {
            return None;
        }
        let elements = inner.shape().elements()?;
        Some(Self { path: path.to_owned(), name, inner, to, width, elements, len: elements.checked_mul(width)? })
    }

    /// The values from element `first`, a multiple of [`RUN`], as many as there are up to that many.
    fn values(&self, first: u64, bytes: &mut Vec<u8>, values: &mut Vec<f32>) -> Result<()> {
        let count = self.elements.saturating_sub(first).min(RUN);
        values.resize(usize::try_from(count).unwrap_or(0), 0.0);
        let failed = |error| Error::core(&self.path, error);
        let dtype = self.inner.dtype();
        if dtype == DType::Ternary {
            // The scale, and the digits of the run behind it, are a payload of their own.
            let digits = usize::try_from(count.div_ceil(TERNARY_PER_BYTE)).unwrap_or(0);
            bytes.resize(digits.saturating_add(4), 0);
            let (scale, rest) = bytes.split_at_mut(4);
            self.inner.read_at(0, scale)?;
            self.inner.read_at(TERNARY_SCALE.saturating_add(first / TERNARY_PER_BYTE), rest)?;
            Ternary::new(bytes, values.len()).map_err(failed)?.dequantize(0, values);
            return Ok(());
        }
        let shape = |elements: u64| Shape::new(&[u32::try_from(elements).ok()?]);
        let size = |elements| shape(elements).and_then(|shape| dtype.byte_len(&shape).ok().flatten()).unwrap_or(0);
        // `first` may pass 32 bits; it is a whole number of runs.
        let start = (first / RUN).saturating_mul(size(RUN));
        bytes.resize(usize::try_from(size(count)).unwrap_or(0), 0);
        self.inner.read_at(start, bytes)?;
        dequantize(dtype, bytes, values).map_err(failed)
    }
}

impl Payload for Decoded<'_> {
    fn dtype(&self) -> DType {
        self.to
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(out.len() as u64).filter(|end| *end <= self.len);
        let end = end.ok_or_else(|| Error::io(&self.path, "read it", std::io::ErrorKind::UnexpectedEof.into()))?;
        let run_len = RUN.saturating_mul(self.width);
        let (mut bytes, mut values, mut encoded) = (Vec::new(), Vec::new(), Vec::new());
        let (mut at, mut out) = (offset, out);
        while at < end {
            let run = at / run_len;
            self.values(run.saturating_mul(RUN), &mut bytes, &mut values)?;
            encoded.clear();
            if self.to == DType::F32 {
                // As they are, also those that are no numbers.
                encoded.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            } else {
                encoded.resize(values.len().saturating_mul(2), 0);
                encode_rows(self.to, &values, values.len(), None, &mut encoded)
                    .map_err(|error| Error::refused(&self.path, format!("tensor {:?}: {error}", self.name)))?;
            }
            let skip = usize::try_from(at.saturating_sub(run.saturating_mul(run_len))).unwrap_or(usize::MAX);
            let piece = encoded.get(skip..).unwrap_or_default();
            let len = piece.len().min(out.len());
            if len == 0 {
                break;
            }
            let (now, later) = out.split_at_mut(len);
            now.copy_from_slice(piece.get(..len).unwrap_or_default());
            out = later;
            at = at.saturating_add(len as u64);
        }
        Ok(())
    }
}
