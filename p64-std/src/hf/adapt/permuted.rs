//! Rows in another order.

use super::check;
use crate::error::Result;
use crate::source::Payload;
use p64_core::{DType, Shape};

/// Which row of a tensor of heads goes where.
///
/// Hugging Face rotates the first half of a head with the second one, llama.cpp's `llama` neighbours: row `i` of the first half
/// of a head goes to place `2i`, row `i` of the second half to `2i + 1`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Halves become neighbours: from Hugging Face to GGUF.
    Interleave,
    /// Neighbours become halves: from GGUF to Hugging Face.
    Separate,
}

/// A payload whose rows (of a vector: whose elements) are reordered head by head.
pub(crate) struct Permuted<'s> {
    inner: Box<dyn Payload + 's>,
    order: Order,
    /// Rows of a head, even.
    head: u64,
    row: u64,
}

impl<'s> Permuted<'s> {
    /// `None` when the rows are not `heads` times an even number, or when a row is not a whole number of bytes.
    pub(crate) fn new(inner: Box<dyn Payload + 's>, heads: u32, order: Order) -> Option<Self> {
        let vector = inner.shape().rank() == 1;
        let rows = if vector { inner.shape().row_len() } else { inner.rows() };
        let head = rows.checked_div(u64::from(heads)).filter(|head| head % 2 == 0)?;
        if rows == 0 || head.checked_mul(u64::from(heads)) != Some(rows) {
            return None;
        }
        let row = inner.len().checked_div(rows)?;
        (row != 0 && row.checked_mul(rows) == Some(inner.len())).then_some(Self { inner, order, head, row })
    }

    /// The row of the inner payload that stands at place `row`.
    fn source(&self, row: u64) -> u64 {
        let half = self.head / 2;
        let (head, place) = (row / self.head * self.head, row % self.head);
        let from = match self.order {
            Order::Interleave => place / 2 + (place % 2) * half,
            Order::Separate => (place % half) * 2 + place / half,
        };
        head.saturating_add(from)
    }
}

impl Payload for Permuted<'_> {
    fn dtype(&self) -> DType {
        self.inner.dtype()
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        check(offset, out.len(), self.len())?;
        let mut at = offset;
        let mut rest = out;
        while !rest.is_empty() {
            let (row, within) = (at / self.row, at % self.row);
            let len = usize::try_from(self.row.saturating_sub(within)).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at_mut(len);
            self.inner.read_at(self.source(row).saturating_mul(self.row).saturating_add(within), now)?;
            at = at.saturating_add(len as u64);
            rest = later;
        }
        Ok(())
    }
}
