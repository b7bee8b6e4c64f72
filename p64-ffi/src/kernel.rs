//! Tier 0: arithmetic on tensors.

use crate::boundary::{Caller, Outcome, Status, apart, fail};
use crate::container::p64_container;
use crate::error::p64_error;
use crate::status;
use crate::tensor::info;
use core::ffi::c_void;
use p64_core::forward::argmax;
use p64_core::kernel::matmul::{MatmulScratch, activations_len};
use p64_core::kernel::{Activations, Matrix, Serial, gemv};
use p64_core::quant::ActivationBlock;
use p64_core::{Code, Error, Place, TensorInfo};

/// What activations are rounded to before they meet the weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_activations {
    /// To 16 bits in blocks of 32, where the weights are integers: what a decoder does.
    P64_ACTIVATIONS_QUANTIZED = 0,
    /// Not at all.
    P64_ACTIVATIONS_F32 = 1,
}

impl p64_activations {
    pub(crate) fn read(number: u32) -> Outcome<Activations> {
        match number {
            0 => Ok(Activations::Quantized),
            1 => Ok(Activations::F32),
            _ => fail(status::P64_STATUS_BAD_ARGUMENT),
        }
    }
}

fn matrix<'a>(c: &Caller<'_>, container: *const p64_container, index: u32) -> Outcome<(TensorInfo<'a>, Matrix<'a>)> {
    let container = c.container(container)?;
    let info = info(&container, index)?;
    let at = |error: Error| {
        Error::new(error.code, Place::Tensor(index)).at(error.offset).values(error.expected, error.found)
    };
    Ok((info, container.tensor(&info)?.matrix().map_err(at)?))
}

/// Values of `n_rows` rows of a tensor from `row` on, as floats: bit for bit those of GGML's reference code. A row is
/// `dims[0]` elements; the other dimensions count rows.
///
/// Threads: any. Errors: `P64_STATUS_LENGTH_MISMATCH` unless `out_len` is `n_rows * dims[0]`, or for rows past the last
/// one (with their number); `P64_STATUS_UNSUPPORTED_DTYPE`; as `p64_tensor_data`. Cost: linear in the rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_tensor_dequantize(
    container: *const p64_container,
    index: u32,
    row: u64,
    n_rows: u64,
    out: *mut f32,
    out_len: usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (_, matrix) = matrix(c, container, index)?;
        let mismatch = |need: u64, have: u64| Error::new(Code::LengthMismatch, Place::Tensor(index)).values(need, have);
        let (rows, cols) = (matrix.rows() as u64, matrix.cols() as u64);
        let end = row.checked_add(n_rows).filter(|end| *end <= rows);
        end.ok_or(mismatch(rows, row.saturating_add(n_rows)))?;
        let need = n_rows.saturating_mul(cols);
        if out_len as u64 != need {
            return Err(mismatch(need, out_len as u64).into());
        }
        apart(matrix.bytes(), (out, out_len))?;
        let out = c.slice_mut(out, out_len)?;
        // Both ends have been compared with the matrix' own, which is in memory.
        let first = usize::try_from(row).unwrap_or(usize::MAX);
        for (row, out) in (first..).zip(out.chunks_exact_mut(matrix.cols().max(1))) {
            matrix.dequantize_row(row, out)?;
        }
        Ok(())
    })
}

/// Bytes of scratch that `p64_tensor_gemv` needs for a tensor.
///
/// Threads: any. Errors: `P64_STATUS_NO_SUCH_TENSOR`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_tensor_gemv_required(
    container: *const p64_container,
    index: u32,
    scratch_len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let container = c.container(container)?;
        let scratch_len = c.out(scratch_len)?;
        let cols = usize::try_from(info(&container, index)?.shape().row_len()).unwrap_or(usize::MAX);
        let blocks = activations_len(cols, 1).saturating_mul(size_of::<ActivationBlock>());
        // Room to align the first block, wherever the caller's memory begins.
        scratch_len.set(blocks.saturating_add(align_of::<ActivationBlock>() - 1));
        Ok(())
    })
}

/// The product of a tensor with a vector: `y[r] = sum over c of W[r][c] * x[c]`.
///
/// Owner: all buffers are the caller's and overlap neither each other nor the tensor. Threads: any, each with scratch and
/// `y` of its own. Errors: `P64_STATUS_LENGTH_MISMATCH` unless `x_len` is `dims[0]` and `y_len` the number of rows;
/// `P64_STATUS_BUFFER_TOO_SMALL` for scratch below what `p64_tensor_gemv_required` says; `P64_STATUS_UNSUPPORTED_DTYPE`;
/// `P64_STATUS_BAD_ARGUMENT` for buffers that overlap; as `p64_tensor_data`. Cost: linear in the tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_tensor_gemv(
    container: *const p64_container,
    index: u32,
    x: *const f32,
    x_len: usize,
    y: *mut f32,
    y_len: usize,
    scratch: *mut c_void,
    scratch_len: usize,
    activations: u32,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let mode = p64_activations::read(activations)?;
        let (_, matrix) = matrix(c, container, index)?;
        let x = c.slice(x, x_len)?;
        apart(x, (y, y_len))?;
        apart(x, (scratch.cast::<u8>(), scratch_len))?;
        apart(matrix.bytes(), (y, y_len))?;
        apart(matrix.bytes(), (scratch.cast::<u8>(), scratch_len))?;
        let y = c.slice_mut(y, y_len)?;
        apart(y, (scratch.cast::<u8>(), scratch_len))?;
        let skip = scratch.cast::<u8>().align_offset(align_of::<ActivationBlock>()).min(scratch_len);
        let blocks = scratch.cast::<u8>().wrapping_add(skip).cast::<ActivationBlock>();
        let activations = c.slice_mut(blocks, (scratch_len - skip) / size_of::<ActivationBlock>())?;
        let mut scratch = MatmulScratch { activations, transposed: &mut [] };
        Ok(gemv(&matrix, x, y, mode, &mut scratch, &Serial)?)
    })
}

/// The index of the largest value: of equal ones the lowest, NaN never.
///
/// Threads: any. Errors: `P64_STATUS_BAD_ARGUMENT` for no values. Cost: linear.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_argmax(values: *const f32, len: usize, out: *mut u32, error: *mut p64_error) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (values, out) = (c.slice(values, len)?, c.out(out)?);
        if values.is_empty() {
            return fail(status::P64_STATUS_BAD_ARGUMENT);
        }
        out.set(argmax(values));
        Ok(())
    })
}
