//! Columns as rows.

use super::check;
use crate::error::Result;
use crate::source::Payload;
use p64_core::{DType, Shape};

/// A matrix whose rows are the inner one's columns. Of every row of the inner matrix it reads as much as was asked for.
pub(crate) struct Transposed<'s> {
    inner: Box<dyn Payload + 's>,
    shape: Shape,
    /// Bytes of an element.
    width: usize,
    /// Elements of a row of the inner matrix, and rows of it.
    columns: u64,
    rows: u64,
}

impl<'s> Transposed<'s> {
    /// `None` unless it is a matrix of whole bytes.
    pub(crate) fn new(inner: Box<dyn Payload + 's>) -> Option<Self> {
        let inner_shape = inner.shape();
        let [columns, rows] = *inner_shape.dims() else { return None };
        let shape = Shape::new(&[rows, columns])?;
        let width = match inner.dtype() {
            DType::F32 => 4,
            DType::F16 | DType::BF16 => 2,
            _ => return None,
        };
        Some(Self { inner, shape, width, columns: columns.into(), rows: rows.into() })
    }

    /// Elements `first..` of the transposed matrix; `out` has whole elements.
    fn read_elements(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let count = (out.len() / self.width) as u64;
        let Some(last) = first.saturating_add(count).checked_sub(1) else { return Ok(()) };
        if count == 0 || self.rows == 0 {
            return Ok(());
        }
        // The rows that are asked for are the inner matrix's columns from..=to.
        let (from, to) = (first / self.rows, last / self.rows);
        let span = usize::try_from(to.saturating_sub(from).saturating_add(1)).unwrap_or(usize::MAX);
        let mut piece = vec![0u8; span.saturating_mul(self.width)];
        for row in 0..self.rows {
            let offset = row.saturating_mul(self.columns).saturating_add(from).saturating_mul(self.width as u64);
            self.inner.read_at(offset, &mut piece)?;
            for (column, bytes) in (from..).zip(piece.chunks_exact(self.width)) {
                let place = column.saturating_mul(self.rows).saturating_add(row).checked_sub(first);
                let at = place.and_then(|place| usize::try_from(place).ok()?.checked_mul(self.width));
                if let Some(to) = at.and_then(|at| out.get_mut(at..)?.get_mut(..self.width)) {
                    to.copy_from_slice(bytes);
                }
            }
        }
        Ok(())
    }
}

impl Payload for Transposed<'_> {
    fn dtype(&self) -> DType {
        self.inner.dtype()
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        check(offset, out.len(), self.len())?;
        let width = self.width as u64;
        let skip = usize::try_from(offset % width).unwrap_or(0);
        let elements = skip.saturating_add(out.len()).div_ceil(self.width);
        if skip == 0 && out.len().is_multiple_of(self.width) {
            return self.read_elements(offset / width, out);
        }
        let mut whole = vec![0u8; elements.saturating_mul(self.width)];
        self.read_elements(offset / width, &mut whole)?;
        out.copy_from_slice(whole.get(skip..).and_then(|rest| rest.get(..out.len())).unwrap_or_default());
        Ok(())
    }
}
