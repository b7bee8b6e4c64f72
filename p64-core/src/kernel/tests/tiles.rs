//! Rows side by side against the same rows one after the other: the same bits.

use super::levels::rows;
use super::seeds::Rng;
use crate::error::Code;
use crate::kernel::{EXACT, Level, Matrix, Rows, is_supported};
use crate::layout::dtype::DType;
use crate::quant::tile::{self, Units};
use std::vec::Vec;

fn types() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|dtype| dtype.is_tiled())
}

/// Rows one after the other, and side by side.
fn both(rng: &mut Rng, dtype: DType, rows: usize, cols: usize) -> [Vec<u8>; 2] {
    let stock = rng.weights(dtype.stock(), rows * cols);
    let mut tiled = std::vec![0; stock.len()];
    let units = Units::of(dtype).expect("a cut");
    let len = stock.len() / rows * tile::ROWS;
    for (rows, to) in stock.chunks_exact(len).zip(tiled.chunks_exact_mut(len)) {
        tile::tile(units, rows, to);
    }
    [stock, tiled]
}

#[test]
fn products_have_the_bits_of_the_stock_type_on_every_level() {
    for dtype in types() {
        assert!(is_supported(dtype));
        let block = dtype.block().map_or(32, |block| block.elements as usize);
        // One block, some, more than the activations of a short panel, and of a long one.
        let lengths = if block == 1 { [5, 32, 40, 1027] } else { [block, 3 * block, 4608, 16640] };
        for cols in lengths {
            let mut rng = Rng::new(cols as u64);
            let [stock, tiled] = both(&mut rng, dtype, 48, cols);
            let stock = Matrix::new(dtype.stock(), 48, cols, &stock).expect("lengths fit");
            let tiled = Matrix::new(dtype, 48, cols, &tiled).expect("lengths fit");
            for n in [1, 2, 3, 11, 12, 33, 70].into_iter().filter(|n| cols < 10_000 || *n < 3) {
                let x = rng.activations(n * cols);
                for (first, len) in [(0, 48), (0, 1), (15, 2), (17, 30), (16, 16)] {
                    let expected = rows(Level::Scalar, &stock, first, &x, n, len);
                    for level in Level::ALL {
                        let found = rows(level, &tiled, first, &x, n, len);
                        assert!(found == expected, "{dtype} {len}x{cols} from row {first}, n={n}, {}", level.name());
                    }
                }
            }
        }
    }
}

#[test]
fn rows_decode_and_multiply_exactly_as_those_of_the_stock_type() {
    for dtype in types() {
        let cols = dtype.block().map_or(37, |block| if block.elements == 1 { 37 } else { 3 * block.elements as usize });
        let mut rng = Rng::new(3);
        let [stock, tiled] = both(&mut rng, dtype, 32, cols);
        let stock = Matrix::new(dtype.stock(), 32, cols, &stock).expect("lengths fit");
        let tiled = Matrix::new(dtype, 32, cols, &tiled).expect("lengths fit");
        for row in 0..32 {
            let (mut expected, mut found) = (std::vec![0.0; cols], std::vec![f32::NAN; cols]);
            stock.dequantize_row(row, &mut expected).expect("a row");
            tiled.dequantize_row(row, &mut found).expect("a row");
            assert_eq!(found, expected, "{dtype} row {row}");
        }
        let x = rng.activations(cols);
        let exact = |w: &Matrix<'_>| {
            let mut out = std::vec![f32::NAN; 32];
            if let Some(Rows::Exact(rows)) = EXACT.rows(w.dtype()) {
                rows(w, 0, &x, 1, &mut out);
            }
            out
        };
        assert_eq!(exact(&tiled), exact(&stock), "{dtype}");
        // Parts begin and end between tiles.
        let part = tiled.rows_of(16..32).expect("a tile");
        let (mut expected, mut found) = (std::vec![0.0; cols], std::vec![f32::NAN; cols]);
        stock.dequantize_row(19, &mut expected).expect("a row");
        part.dequantize_row(3, &mut found).expect("a row");
        assert_eq!(found, expected);
        assert!(tiled.rows_of(8..32).is_none() && tiled.rows_of(0..24).is_none());
    }
}

#[test]
fn rows_that_make_no_tile_are_refused() {
    let error = Matrix::new(DType::Q4_0_R16, 17, 32, &[0; 17 * 18]).expect_err("17 rows");
    assert_eq!((error.code, error.expected, error.found), (Code::PartialTile, 16, 17));
}
