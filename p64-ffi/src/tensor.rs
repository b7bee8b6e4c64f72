//! Tier 0: the tensor table, and verified bytes.

use crate::boundary::{Caller, Outcome, Status, fail};
use crate::container::p64_container;
use crate::error::p64_error;
use crate::status;
use core::ffi::c_char;
use p64_core::{Code, Container, Error, Place, Role, TensorInfo};

/// What the tensor table says of one tensor.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_tensor {
    /// The name, UTF-8 of `name_len` bytes, in the file; a NUL follows it.
    pub name: *const c_char,
    /// Bytes of the name.
    pub name_len: usize,
    /// Place in the table, from 0.
    pub index: u32,
    /// What the tensor is for: a `p64_role`, or another number where it has no role.
    pub role: u32,
    /// Element type: a `p64_dtype`, or another number.
    pub dtype: u32,
    /// The layer; `n_layer` for tensors that belong to none.
    pub layer: u32,
    /// Dimensions, 1 to 4.
    pub rank: u32,
    /// The dimensions; `dims[0]` is the contiguous one, unused ones are zero.
    pub dims: [u32; 4],
    /// Zero.
    pub reserved: u32,
    /// File offset of the bytes.
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
    /// Where the bytes stood in the source's data; `UINT64_MAX` for tensors that the converter added.
    pub source_offset: u64,
    /// FNV-1a 64 of the name in the source.
    pub source_name_hash: u64,
}

impl From<TensorInfo<'_>> for p64_tensor {
    fn from(info: TensorInfo<'_>) -> Self {
        let extent = info.extent();
        Self {
            name: info.name().as_ptr().cast(),
            name_len: info.name().len(),
            index: info.index(),
            role: u32::from(info.role().id()),
            dtype: u32::from(info.dtype().id()),
            layer: info.manifold_idx(),
            rank: info.shape().dims().len() as u32,
            dims: info.shape().raw(),
            reserved: 0,
            offset: extent.start(),
            size: extent.len(),
            source_offset: info.source_offset(),
            source_name_hash: info.source_name_hash(),
        }
    }
}

/// The tensor at a place in the table.
pub(crate) fn info<'a>(container: &Container<'a>, index: u32) -> Outcome<TensorInfo<'a>> {
    let none = Error::new(Code::NoSuchTensor, Place::File);
    let none = none.values(u64::from(container.tensor_count()), u64::from(index));
    container.info(index).ok_or(none.into())
}

/// Number of tensors.
///
/// Threads: any. Errors: `P64_STATUS_NOT_OPEN`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_container_tensor_count(
    container: *const p64_container,
    out: *mut u32,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (c.container(container)?, c.out(out)?);
        out.set(container.tensor_count());
        Ok(())
    })
}

/// The tensor at a place in the table, which is the order of the file.
///
/// Owner: `out->name` points into the file. Threads: any. Errors: `P64_STATUS_NO_SUCH_TENSOR`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_container_tensor(
    container: *const p64_container,
    index: u32,
    out: *mut p64_tensor,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (c.container(container)?, c.out(out)?);
        out.set(info(&container, index)?.into());
        Ok(())
    })
}

/// The tensor of a name; of duplicates, which only the compatible policy lets pass, the first.
///
/// Owner: `out->name` points into the file. Threads: any. Errors: `P64_STATUS_NOT_FOUND`. Cost: `O(log n)` with a name
/// index, else one pass over the names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_container_find(
    container: *const p64_container,
    name: *const c_char,
    name_len: usize,
    out: *mut p64_tensor,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (c.container(container)?, c.out(out)?);
        let found = container.find(c.str(name, name_len)?);
        found.map_or(fail(status::P64_STATUS_NOT_FOUND), |info| {
            out.set(info.into());
            Ok(())
        })
    })
}

/// The first tensor of a role in a layer; `layer` is `n_layer` for roles that belong to none.
///
/// Owner: `out->name` points into the file. Threads: any. Errors: `P64_STATUS_NOT_FOUND`; `P64_STATUS_BAD_ARGUMENT` for a
/// role above 65535. Cost: one pass over the layer's part of the table in layer-major files, else over the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_container_find_role(
    container: *const p64_container,
    role: u32,
    layer: u32,
    out: *mut p64_tensor,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (c.container(container)?, c.out(out)?);
        let role = u16::try_from(role).or(fail(status::P64_STATUS_BAD_ARGUMENT))?;
        container.find_role(Role::from_id(role), layer).map_or(fail(status::P64_STATUS_NOT_FOUND), |info| {
            out.set(info.into());
            Ok(())
        })
    })
}

/// The bytes of a tensor, after their checksum has been verified: here under `P64_INTEGRITY_LAZY`, when opening under
/// `P64_INTEGRITY_FULL`. On failure neither `data` nor `len` is written.
///
/// Owner: `data` points into the file. Its alignment is that of the file in memory; elements are little-endian.
/// Threads: any. Errors: `P64_STATUS_TENSOR_CHECKSUM`, `P64_STATUS_NO_SUCH_TENSOR`. Cost: linear in the tensor when it is
/// verified now, else constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_tensor_data(
    container: *const p64_container,
    index: u32,
    data: *mut *const u8,
    len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, data, len) = (c.container(container)?, c.out(data)?, c.out(len)?);
        let bytes = container.tensor(&info(&container, index)?)?.bytes();
        data.set(bytes.as_ptr());
        len.set(bytes.len());
        Ok(())
    })
}

/// Verifies the checksum of a tensor, unless that has been done.
///
/// Threads: any. Errors: `P64_STATUS_TENSOR_CHECKSUM`, `P64_STATUS_NO_SUCH_TENSOR`. Cost: as `p64_tensor_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_tensor_verify(
    container: *const p64_container,
    index: u32,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let container = c.container(container)?;
        container.tensor(&info(&container, index)?)?;
        Ok(())
    })
}
