//! Tier 1: a mapped container, for all the functions of tier 0.

use super::message::Result;
use crate::boundary::{Caller, Status, struct_size};
use crate::container::{p64_container, p64_integrity, p64_policy};
use crate::error::p64_error;
use core::ffi::{c_char, c_void};
use p64_core::Container;
use p64_std::map::{MapOptions, MappedContainer};

/// How a file is opened. Zero in every field but `struct_size` means the defaults.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_map_options {
    /// `sizeof(p64_map_options)`.
    pub struct_size: u32,
    /// A `p64_policy`.
    pub policy: u32,
    /// A `p64_integrity`.
    pub integrity: u32,
    /// Threads that verify checksums under `P64_INTEGRITY_FULL`; 0 for one per core.
    pub threads: u32,
    /// Is told each deviation that the policy lets pass, or NULL. It must return.
    pub warning: Option<unsafe extern "C" fn(user: *mut c_void, warning: *const p64_error)>,
    /// Passed to `warning`.
    pub warning_user: *mut c_void,
}

impl p64_map_options {
    /// What the caller asks for; the defaults for NULL.
    pub(super) fn read(c: &Caller<'_>, options: *const Self) -> Result<MapOptions> {
        if options.is_null() {
            return Ok(MapOptions::default());
        }
        let options = c.get(options)?;
        struct_size::<Self>(options.struct_size)?;
        Ok(MapOptions {
            policy: p64_policy::read(options.policy)?,
            integrity: p64_integrity::read(options.integrity)?,
            threads: options.threads as usize,
        })
    }

    /// Passes warnings on.
    pub(super) fn warn(c: &Caller<'_>, options: *const Self, warnings: &[p64_core::Error]) -> Result {
        if options.is_null() {
            return Ok(());
        }
        let options = c.get(options)?;
        if let Some(tell) = options.warning {
            for warning in warnings {
                let warning = p64_error::from(*warning);
                // SAFETY: by p64.h the function takes this pointer and an error that it may read until it returns.
                unsafe { tell(options.warning_user, &raw const warning) };
            }
        }
        Ok(())
    }
}

/// A mapped file, with a container over it.
#[derive(Debug)]
pub struct p64_file {
    /// Refers to what `mapped` owns, and goes with it.
    container: p64_container,
    #[expect(dead_code, reason = "holds what `container` refers to")]
    mapped: MappedContainer,
}

/// Storage for a container that lies in a mapping.
///
/// # Safety
/// The storage is not used once what the container borrows from has ended.
pub(super) unsafe fn lend(container: &Container<'_>) -> p64_container {
    // SAFETY: only the lifetime changes, and the caller does not outstay the true one.
    let container = unsafe { std::mem::transmute::<Container<'_>, Container<'static>>(*container) };
    p64_container::of(container)
}

/// Maps a `.p64` and validates it.
///
/// Owner: the caller's, until `p64_file_free`. Threads: any. Errors: `P64_STATUS_IO`, `P64_STATUS_NOT_A_MODEL` for other
/// kinds of files; else as `p64_container_open`. Cost: linear in the file, spread over `threads`; under
/// `P64_INTEGRITY_LAZY` linear in what stands before the tensors and the padding between them. The file must not be changed
/// in place while it is mapped: one that is made shorter ends the process at the next touch. Replacing it by renaming is
/// safe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_file_open(
    path: *const c_char,
    options: *const p64_map_options,
    out: *mut *mut p64_file,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let out = c.out(out)?;
        let (mapped, warnings) = MappedContainer::open(&c.path(path)?, &p64_map_options::read(c, options)?)?;
        p64_map_options::warn(c, options, &warnings)?;
        // SAFETY: the two are kept, and dropped, together; what the container borrows from does not move with `mapped`.
        let container = unsafe { lend(mapped.container()) };
        out.give(p64_file { container, mapped });
        Ok(())
    })
}

/// The container of a mapped file: a `const p64_container *` like any other. NULL for NULL.
///
/// Owner: the file's, until `p64_file_free`. Threads: any. Errors: none. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_file_container(file: *const p64_file) -> *const p64_container {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(core::ptr::null_mut()) };
    caller.get(file).map_or(core::ptr::null(), |file| &raw const file.container)
}

/// Unmaps a file. Its container, and everything that came out of that, must not be used any more.
///
/// Threads: any, once no other uses the file. Errors: none; NULL is fine. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_file_free(file: *mut p64_file) {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(core::ptr::null_mut()) };
    caller.run(|c| c.take_back(file).map(drop));
}
