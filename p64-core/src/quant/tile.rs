//! Sixteen rows side by side: the arrangement of the types named `_R16`.
//!
//! ```text
//! tile       16 consecutive rows, as many bytes as they have one after the other
//! unit       a block is cut into halves (2 bytes: its f16 numbers) and words (4 bytes: all else)
//! pair       two neighbouring blocks of each of the 16 rows; of an odd number of blocks the last is by itself
//!              halves   half 0 of the first blocks, row after row, half 1 of them, ..; then those of the second blocks
//!              words    in the same order; those of a Q6_K block as [`Units`] says
//! ```
//!
//! Every byte of the stock type is there once, so that either form gives the other. A vector of 16 lanes loads a unit of all
//! rows at once, and a lane is a row from there to the result: nothing is gathered, nothing is summed across lanes, and a
//! product reads memory in one stream. Two blocks together, because those of many types have one half: the words of a pair begin
//! with a cache line, as the tile does.
#![forbid(unsafe_code)]

use crate::layout::dtype::{DType, TILE_ROWS};

/// Rows of a tile.
pub const ROWS: usize = TILE_ROWS as usize;

/// How a block is cut: halves, then words, then halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Units {
    head: usize,
    words: usize,
    tail: usize,
    /// The runs of words in the order that a tile has them: place in the block and number.
    order: &'static [(usize, usize)],
}

/// Q6_K in the order of use, by which a processor sees what is next: the scales, then of each half the upper bits and the lower.
/// In the order of the block, products from memory took three times as long.
const Q6_K_ORDER: &[(usize, usize)] = &[(48, 4), (32, 8), (0, 16), (40, 8), (16, 16)];

impl Units {
    /// The cut of a type with or without rows side by side; `None` where no type has its rows side by side.
    #[must_use]
    pub const fn of(dtype: DType) -> Option<Self> {
        let (head, words, tail) = match dtype.stock() {
            DType::F32 => (0, 1, 0),
            DType::F16 | DType::BF16 => (1, 0, 0),
            DType::Q4_0 | DType::IQ4_NL => (1, 4, 0),
            DType::Q4_1 => (2, 4, 0),
            DType::Q5_0 => (1, 5, 0),
            DType::Q5_1 => (2, 5, 0),
            DType::Q8_0 => (1, 8, 0),
            DType::Q2_K => (0, 20, 2),
            DType::Q3_K => (0, 27, 1),
            DType::Q4_K => (2, 35, 0),
            DType::Q5_K => (2, 43, 0),
            DType::Q6_K => (0, 52, 1),
            DType::IQ4_XS => (2, 33, 0),
            _ => return None,
        };
        let order: &[(usize, usize)] = match dtype.stock() {
            DType::Q6_K => Q6_K_ORDER,
            _ => &[(0, usize::MAX)],
        };
        Some(Self { head, words, tail, order })
    }

    /// Bytes of a block.
    #[must_use]
    pub const fn block_len(self) -> usize {
        (self.head + self.tail) * 2 + self.words * 4
    }

    /// Where the halves and the words of block `at` of sixteen rows begin in a tile of `blocks` blocks to a row.
    #[inline(always)]
    const fn places(self, blocks: usize, at: usize) -> [usize; 2] {
        let (halves, words) = ((self.head + self.tail) * 2 * ROWS, self.words * 4 * ROWS);
        let (first, second) = (at & !1, at & 1);
        let together = if first + 1 < blocks { 2 } else { 1 };
        let pair = first * (halves + words);
        [pair + second * halves, pair + together * halves + second * words]
    }

    /// Block `at` of row `row`, out of a tile. What is not there leaves `block` as it is.
    #[inline(always)]
    pub fn gather(self, tile: &[u8], row: usize, at: usize, block: &mut [u8]) {
        let places = self.places(tile.len() / (self.block_len() * ROWS), at);
        let [halves, words] = places.map(|place| tile.get(place..).unwrap_or_default());
        let (first, rest) = block.split_at_mut((self.head * 2).min(block.len()));
        let (middle, last) = rest.split_at_mut((self.words * 4).min(rest.len()));
        copy::<2>(halves, 0, row, first);
        let mut placed = 0;
        for (start, len) in self.order {
            let run = middle.get_mut(start * 4..).unwrap_or_default();
            let len = run.len().min(len.saturating_mul(4));
            copy::<4>(words, placed, row, run.split_at_mut(len).0);
            placed += len / 4;
        }
        copy::<2>(halves, self.head, row, last);
    }

    /// Puts block `at` of row `row` into a tile. What has no place is left out.
    pub fn scatter(self, block: &[u8], row: usize, at: usize, tile: &mut [u8]) {
        let [halves, words] = self.places(tile.len() / (self.block_len() * ROWS), at);
        let (first, rest) = block.split_at((self.head * 2).min(block.len()));
        let (middle, last) = rest.split_at((self.words * 4).min(rest.len()));
        place::<2>(first, 0, row, tile.get_mut(halves..).unwrap_or_default());
        let mut placed = 0;
        for (start, len) in self.order {
            let run = middle.get(start * 4..).unwrap_or_default();
            let len = run.len().min(len.saturating_mul(4));
            place::<4>(run.split_at(len).0, placed, row, tile.get_mut(words..).unwrap_or_default());
            placed += len / 4;
        }
        place::<2>(last, self.head, row, tile.get_mut(halves..).unwrap_or_default());
    }
}

/// One row's units of `N` bytes, out of those of all rows; `first` units of each row stand in front.
#[inline(always)]
fn copy<const N: usize>(all: &[u8], first: usize, row: usize, units: &mut [u8]) {
    let theirs = all.as_chunks::<N>().0.iter().skip(first * ROWS + row).step_by(ROWS);
    for (unit, theirs) in units.as_chunks_mut::<N>().0.iter_mut().zip(theirs) {
        *unit = *theirs;
    }
}

/// One row's units of `N` bytes, among those of all rows; `first` units of each row stand in front.
fn place<const N: usize>(units: &[u8], first: usize, row: usize, all: &mut [u8]) {
    let places = all.as_chunks_mut::<N>().0.iter_mut().skip(first * ROWS + row).step_by(ROWS);
    for (unit, place) in units.as_chunks::<N>().0.iter().zip(places) {
        *place = *unit;
    }
}

/// Sixteen rows, one after the other in `rows`, side by side in `tile`; both have the same length, 16 times whole blocks.
pub fn tile(units: Units, rows: &[u8], tile: &mut [u8]) {
    for (r, row) in rows.chunks_exact((rows.len() / ROWS).max(1)).enumerate() {
        for (at, block) in row.chunks_exact(units.block_len()).enumerate() {
            units.scatter(block, r, at, tile);
        }
    }
}

/// The rows of `tile`, one after the other: what [`tile`] took.
pub fn untile(units: Units, tile: &[u8], rows: &mut [u8]) {
    for (r, row) in rows.chunks_exact_mut((tile.len() / ROWS).max(1)).enumerate() {
        for (at, block) in row.chunks_exact_mut(units.block_len()).enumerate() {
            units.gather(tile, r, at, block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn units_make_up_the_block() {
        for dtype in DType::ALL {
            let bytes = dtype.block().map(|block| block.bytes as usize);
            match Units::of(*dtype) {
                Some(units) => assert_eq!(Some(units.block_len()), bytes, "{dtype}"),
                None => assert_eq!(dtype.tiled(), None, "{dtype}"),
            }
        }
    }

    #[test]
    fn rows_come_back() {
        for dtype in DType::ALL.iter().filter(|dtype| dtype.is_tiled()) {
            let units = Units::of(*dtype).expect("a cut");
            for blocks in [1, 2, 7] {
                let rows: Vec<u8> = (0..ROWS * blocks * units.block_len()).map(|i| (i * 7 % 251) as u8).collect();
                let (mut tiled, mut back) = (std::vec![0; rows.len()], std::vec![0; rows.len()]);
                tile(units, &rows, &mut tiled);
                untile(units, &tiled, &mut back);
                assert!(back == rows, "{dtype}");
                let count =
                    |bytes: &[u8]| (0..=255).map(|byte| bytes.iter().filter(|b| **b == byte).count()).sum::<usize>();
                assert_eq!(count(&tiled), count(&rows));
            }
        }
    }

    /// Q4_1 by hand, two blocks to a row: scales and minima of both, then four words of each.
    #[test]
    fn a_pair_is_halves_and_then_words() {
        let rows: Vec<u8> = (0..16u8).flat_map(|row| (0..40u8).map(move |byte| (row << 4) | (byte % 16))).collect();
        let mut tiled = std::vec![0; rows.len()];
        tile(Units::of(DType::Q4_1).expect("a cut"), &rows, &mut tiled);
        // Bytes 0 to 3 and 20 to 23 of each row are halves.
        assert_eq!(tiled[..6], [0x00, 0x01, 0x10, 0x11, 0x20, 0x21]);
        assert_eq!(tiled[32..36], [0x02, 0x03, 0x12, 0x13]);
        assert_eq!(tiled[64..68], [0x04, 0x05, 0x14, 0x15]);
        assert_eq!(tiled[128..136], [0x04, 0x05, 0x06, 0x07, 0x14, 0x15, 0x16, 0x17]);
        assert_eq!(tiled[192..196], [0x08, 0x09, 0x0a, 0x0b]);
        assert_eq!(tiled[384..392], [0x08, 0x09, 0x0a, 0x0b, 0x18, 0x19, 0x1a, 0x1b]);
    }
}
