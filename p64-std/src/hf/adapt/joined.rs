//! Payloads behind each other, a part of one, and bytes of our own.

use super::{check, outside};
use crate::error::Result;
use crate::source::Payload;
use p64_core::{DType, Shape};
use std::sync::Arc;

/// Several payloads of one type behind each other.
pub(crate) struct Joined<'s> {
    shape: Shape,
    dtype: DType,
    /// Each with the offset behind its last byte.
    parts: Vec<(u64, Box<dyn Payload + 's>)>,
}

impl<'s> Joined<'s> {
    /// The payloads in order. `None` when there are none, when their types differ, or when together they are no `shape`.
    pub(crate) fn new(shape: Shape, parts: Vec<Box<dyn Payload + 's>>) -> Option<Self> {
        let dtype = parts.first()?.dtype();
        let mut end = 0u64;
        let mut placed = Vec::with_capacity(parts.len());
        for part in parts {
            if part.dtype() != dtype {
                return None;
            }
            end = end.checked_add(part.len())?;
            placed.push((end, part));
        }
        (dtype.byte_len(&shape).ok().flatten() == Some(end)).then_some(Self { shape, dtype, parts: placed })
    }
}

impl Payload for Joined<'_> {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn len(&self) -> u64 {
        self.parts.last().map_or(0, |(end, _)| *end)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        check(offset, out.len(), self.len())?;
        let mut at = offset;
        let mut rest = out;
        let first = self.parts.partition_point(|(end, _)| *end <= offset);
        for (end, part) in self.parts.iter().skip(first) {
            if rest.is_empty() {
                break;
            }
            let start = end.saturating_sub(part.len());
            let len = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at_mut(len);
            part.read_at(at.saturating_sub(start), now)?;
            at = at.saturating_add(len as u64);
            rest = later;
        }
        Ok(())
    }
}

/// A run of a payload's bytes, with a shape of its own. Several parts may share the payload.
pub(crate) struct Part<'s> {
    inner: Arc<dyn Payload + 's>,
    shape: Shape,
    offset: u64,
    len: u64,
}

impl<'s> Part<'s> {
    /// `shape` from the byte `offset` on; `None` when the payload does not reach that far.
    pub(crate) fn new(inner: Arc<dyn Payload + 's>, offset: u64, shape: Shape) -> Option<Self> {
        let len = inner.dtype().byte_len(&shape).ok().flatten()?;
        (offset.checked_add(len)? <= inner.len()).then_some(Self { inner, shape, offset, len })
    }
}

impl Payload for Part<'_> {
    fn dtype(&self) -> DType {
        self.inner.dtype()
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        check(offset, out.len(), self.len)?;
        self.inner.read_at(self.offset.saturating_add(offset), out)
    }

    fn bytes(&self) -> Option<&[u8]> {
        let (start, len) = (usize::try_from(self.offset).ok()?, usize::try_from(self.len).ok()?);
        self.inner.bytes()?.get(start..)?.get(..len)
    }
}

/// A tensor of f32 that no file has.
pub(crate) struct Made {
    shape: Shape,
    bytes: Vec<u8>,
}

impl Made {
    /// A vector. `None` for more values than a dimension counts.
    pub(crate) fn vector(values: &[f32]) -> Option<Self> {
        let shape = Shape::new(&[u32::try_from(values.len()).ok()?])?;
        Some(Self { shape, bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect() })
    }
}

impl Payload for Made {
    fn dtype(&self) -> DType {
        DType::F32
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let start = usize::try_from(offset).map_err(|_| outside())?;
        let bytes = self.bytes.get(start..).and_then(|rest| rest.get(..out.len())).ok_or_else(outside)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }
}
