//! Tier 0: ways to compute CRC-32C, the library's and the caller's.

use crate::boundary::{Caller, Outcome, fail};
use crate::status;
use core::ffi::c_void;
use p64_core::crc32c::Checksum;

/// Computes CRC-32C: given the checksum of what came before (0 for nothing), the checksum with `len` bytes at `data`
/// appended. It may be called from any thread that uses the container.
pub type p64_crc32c_update =
    Option<unsafe extern "C" fn(user: *mut c_void, crc: u32, data: *const u8, len: usize) -> u32>;

/// A way to compute CRC-32C: a table of the library's, or a hardware unit.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_crc32c {
    /// One of the four functions below, or the caller's own.
    pub update: p64_crc32c_update,
    /// Passed to `update`.
    pub user: *mut c_void,
}

/// The checksum that core is to use for a caller's hook, which stays where it is for as long as the container is used.
pub(crate) fn hook(c: &Caller<'_>, hook: *const p64_crc32c) -> Outcome<Checksum> {
    if c.get(hook)?.update.is_none() {
        return fail(status::P64_STATUS_NULL_POINTER);
    }
    Ok(Checksum::with_context(hook.expose_provenance(), |hook, crc, bytes| {
        let hook = core::ptr::with_exposed_provenance::<p64_crc32c>(hook);
        // SAFETY: the address is that of a hook which `get` has checked, and which by p64.h outlives the container.
        let hook = unsafe { hook.read() };
        // Checked above; without a function no checksum is right.
        let Some(update) = hook.update else { return !crc };
        // SAFETY: by p64.h the function reads these bytes and answers with a number.
        unsafe { update(hook.user, crc, bytes.as_ptr(), bytes.len()) }
    }))
}

/// # Safety
/// The rules of p64.h: `data` is NULL or points to `len` bytes.
unsafe fn update(table: Checksum, crc: u32, data: *const u8, len: usize) -> u32 {
    // SAFETY: as above.
    let caller = unsafe { Caller::new(core::ptr::null_mut()) };
    let bytes: Outcome<&[u8]> = caller.slice(data, len);
    bytes.map_or(crc, |bytes| table.update(crc, bytes))
}

/// CRC-32C with 64 bytes of constants, half a byte a step. A program contains the tables whose functions it names.
///
/// Threads: any. Errors: none; NULL with a length gives `crc` back. Cost: linear.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_crc32c_64(user: *mut c_void, crc: u32, data: *const u8, len: usize) -> u32 {
    let _ = user; // a table needs nothing
    // SAFETY: the caller keeps the rules of p64.h.
    unsafe { update(Checksum::BYTES_64, crc, data, len) }
}

/// CRC-32C with 1 KiB of constants, a byte a step. A program contains the tables whose functions it names.
///
/// Threads: any. Errors: none; NULL with a length gives `crc` back. Cost: linear.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_crc32c_1k(user: *mut c_void, crc: u32, data: *const u8, len: usize) -> u32 {
    let _ = user; // a table needs nothing
    // SAFETY: the caller keeps the rules of p64.h.
    unsafe { update(Checksum::KIB_1, crc, data, len) }
}

/// CRC-32C with 8 KiB of constants, eight bytes a step. A program contains the tables whose functions it names.
///
/// Threads: any. Errors: none; NULL with a length gives `crc` back. Cost: linear.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_crc32c_8k(user: *mut c_void, crc: u32, data: *const u8, len: usize) -> u32 {
    let _ = user; // a table needs nothing
    // SAFETY: the caller keeps the rules of p64.h.
    unsafe { update(Checksum::KIB_8, crc, data, len) }
}

/// CRC-32C with 16 KiB of constants, sixteen bytes a step. A program contains the tables whose functions it names.
///
/// Threads: any. Errors: none; NULL with a length gives `crc` back. Cost: linear.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_crc32c_16k(user: *mut c_void, crc: u32, data: *const u8, len: usize) -> u32 {
    let _ = user; // a table needs nothing
    // SAFETY: the caller keeps the rules of p64.h.
    unsafe { update(Checksum::KIB_16, crc, data, len) }
}
