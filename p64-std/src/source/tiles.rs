//! Payloads with sixteen rows side by side over payloads with row after row, and back.

use super::Payload;
use crate::error::Result;
use p64_core::quant::tile::{self, Units};
use p64_core::{DType, Shape};

/// Bytes that are rearranged at once, about: whole tiles.
const ABOUT: u64 = 1 << 20;

/// The same values in the other arrangement, rearranged as they are read.
pub(crate) struct Rearranged<P> {
    inner: P,
    to: DType,
    units: Units,
    /// Bytes of sixteen rows.
    tile_len: u64,
}

impl<P: Payload> Rearranged<P> {
    /// A payload of type `to` over one of the type that differs from it in the arrangement alone. What needs no rearranging, or
    /// has no whole tiles, comes back as it was.
    pub fn new(inner: P, to: DType) -> std::result::Result<Self, P> {
        let from = inner.dtype();
        let fits = from != to && from.stock() == to.stock() && to.byte_len(&inner.shape()) == Ok(Some(inner.len()));
        match (Units::of(to), inner.row_len()) {
            (Some(units), Some(row_len)) if fits => {
                Ok(Self { inner, to, units, tile_len: row_len.saturating_mul(tile::ROWS as u64) })
            }
            _ => Err(inner),
        }
    }

    /// Rearranges whole tiles.
    fn turn(&self, from: &[u8], to: &mut [u8]) {
        let len = usize::try_from(self.tile_len).unwrap_or(usize::MAX).max(1);
        for (from, to) in from.chunks_exact(len).zip(to.chunks_exact_mut(len)) {
            if self.to.is_tiled() { tile::tile(self.units, from, to) } else { tile::untile(self.units, from, to) }
        }
    }
}

impl<P: Payload> Payload for Rearranged<P> {
    fn dtype(&self) -> DType {
        self.to
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let run = (ABOUT / self.tile_len.max(1)).max(1).saturating_mul(self.tile_len);
        let (mut read, mut turned) = (Vec::new(), Vec::new());
        let (mut at, mut out) = (offset, out);
        while !out.is_empty() {
            // The tiles that `at` and what follows it lie in.
            let start = at.checked_div(self.tile_len).unwrap_or_default().saturating_mul(self.tile_len);
            let skip = at.saturating_sub(start);
            let wanted = skip.saturating_add(out.len() as u64).next_multiple_of(self.tile_len.max(1));
            let len = wanted.min(run).min(self.len().saturating_sub(start));
            let (len, skip) = (usize::try_from(len).unwrap_or(0), usize::try_from(skip).unwrap_or(usize::MAX));
            if len <= skip {
                // Past the end: the payload says so.
                return self.inner.read_at(at, out);
            }
            read.resize(len, 0);
            turned.resize(len, 0);
            self.inner.read_at(start, &mut read)?;
            self.turn(&read, &mut turned);
            let piece = turned.get(skip..).unwrap_or_default();
            let (now, later) = out.split_at_mut(piece.len().min(out.len()));
            now.copy_from_slice(piece.get(..now.len()).unwrap_or_default());
            at = at.saturating_add(now.len() as u64);
            out = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::path::Path;

    struct InMemory(DType, Shape, Vec<u8>);

    impl Payload for InMemory {
        fn dtype(&self) -> DType {
            self.0
        }

        fn shape(&self) -> Shape {
            self.1
        }

        fn len(&self) -> u64 {
            self.2.len() as u64
        }

        fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let found = self.2.get(start..).and_then(|rest| rest.get(..out.len()));
            let ended = || crate::error::Error::io(Path::new("memory"), "read it", ErrorKind::UnexpectedEof.into());
            out.copy_from_slice(found.ok_or_else(ended)?);
            Ok(())
        }
    }

    #[test]
    fn any_part_reads_as_it_stands_in_the_whole() {
        let shape = Shape::new(&[64, 32, 2]).expect("rank 3");
        let stock: Vec<u8> = (0..64 * 64 / 32 * 20).map(|i: usize| i.to_le_bytes()[0] ^ i.to_le_bytes()[1]).collect();
        let tiled = Rearranged::new(InMemory(DType::Q4_1, shape, stock.clone()), DType::Q4_1_R16).ok().expect("tiles");
        let mut whole = vec![0; stock.len()];
        tiled.read_at(0, &mut whole).expect("all of it");
        assert_ne!(whole, stock);
        for (offset, len) in [(0, 1), (639, 2), (5, 1200), (640, 640), (1999, 561), (2559, 1)] {
            let mut part = vec![0; len];
            tiled.read_at(offset as u64, &mut part).expect("a part");
            assert_eq!(part, whole[offset..offset + len], "{len} bytes from {offset}");
        }
        assert!(tiled.read_at(2550, &mut [0; 11]).is_err() && tiled.read_at(2561, &mut [0; 1]).is_err());

        let back = Rearranged::new(tiled, DType::Q4_1).ok().expect("tiles");
        let mut rows = vec![0; stock.len()];
        back.read_at(0, &mut rows).expect("all of it");
        assert_eq!(rows, stock);
    }

    #[test]
    fn what_has_no_whole_tiles_stays() {
        let shape = Shape::new(&[32, 17]).expect("rank 2");
        assert!(Rearranged::new(InMemory(DType::Q4_0, shape, vec![0; 17 * 18]), DType::Q4_0_R16).is_err());
        let shape = Shape::new(&[32, 16]).expect("rank 2");
        assert!(Rearranged::new(InMemory(DType::Q4_0, shape, vec![0; 16 * 18]), DType::Q4_0).is_err());
        assert!(Rearranged::new(InMemory(DType::Q4_0, shape, vec![0; 16 * 18]), DType::Q4_1_R16).is_err());
    }
}
