//! Stacks of expert matrices.

use super::seeds::Rng;
use crate::error::Code;
use crate::kernel::experts::Stack;
use crate::kernel::{Matrix, is_supported};
use crate::layout::dtype::DType;

#[test]
fn an_expert_is_its_rows_of_the_whole() {
    for dtype in
        DType::ALL.iter().copied().filter(|dtype| is_supported(*dtype) && *dtype != DType::Ternary && !dtype.is_tiled())
    {
        let cols = dtype.block().map_or(1, |block| block.elements as usize) * 3;
        let (count, rows) = (5, 7);
        let bytes = Rng::new(5).weights(dtype, count * rows * cols);
        let whole = Matrix::new(dtype, count * rows, cols, &bytes).expect("lengths fit");
        let stack = Stack::new(dtype, count, rows, cols, &bytes).expect("lengths fit");
        assert_eq!((stack.count(), stack.rows(), stack.cols()), (count, rows, cols));
        assert_eq!(stack.expert_len() * count, bytes.len());
        let (mut ours, mut expected) = (std::vec![0.0; cols], std::vec![f32::NAN; cols]);
        for expert in 0..count {
            let matrix = stack.expert(expert).expect("it is there");
            assert_eq!((matrix.rows(), matrix.cols(), matrix.bytes().len()), (rows, cols, stack.expert_len()));
            for row in 0..rows {
                matrix.dequantize_row(row, &mut ours).expect("a row");
                whole.dequantize_row(expert * rows + row, &mut expected).expect("a row");
                assert_eq!(ours, expected, "{dtype} expert {expert} row {row}");
            }
        }
        assert_eq!(stack.expert(count).map(|_| ()).map_err(|error| error.code), Err(Code::LengthMismatch));
    }
}

#[test]
fn stacks_that_do_not_fit_are_refused() {
    let code = |dtype, count, rows, cols, len| {
        Stack::new(dtype, count, rows, cols, &std::vec![0; len]).map(|_| ()).map_err(|error| error.code)
    };
    assert_eq!(code(DType::Q4_0, 3, 2, 32, 3 * 36), Ok(()));
    assert_eq!(code(DType::Q4_0, 3, 2, 32, 3 * 36 - 1), Err(Code::LengthMismatch));
    assert_eq!(code(DType::Q4_0, 0, 2, 32, 0), Err(Code::LengthMismatch));
    assert_eq!(code(DType::F32, usize::MAX, usize::MAX, 1, 4), Err(Code::LengthMismatch));
    assert_eq!(code(DType::Q4_0, 1, 1, 33, 18), Err(Code::PartialBlock));
    assert_eq!(code(DType::Ternary, 1, 1, 5, 5), Err(Code::UnsupportedDType));
    assert_eq!(code(DType::Unknown(99), 1, 1, 1, 1), Err(Code::UnsupportedDType));
}
