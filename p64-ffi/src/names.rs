//! Names of element types and roles.

use crate::boundary::{Caller, Status};
use crate::error::p64_error;
use core::ffi::c_char;
use p64_core::{Code, DType, Error, Place, Role};

/// `name` with NULs up to the array's end: a C string at compile time. Too long a name does not compile.
pub(crate) const fn padded<const N: usize>(name: &str) -> [u8; N] {
    assert!(name.len() < N);
    let mut padded = [0; N];
    let (to, _) = padded.split_at_mut(name.len());
    to.copy_from_slice(name.as_bytes());
    padded
}

static DTYPES: [[u8; 16]; DType::ALL.len()] = {
    let mut names = [[0; 16]; DType::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = padded(DType::ALL[at].name());
        at += 1;
    }
    names
};

static ROLES: [[u8; 16]; Role::ALL.len()] = {
    let mut names = [[0; 16]; Role::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = padded(Role::ALL[at].name());
        at += 1;
    }
    names
};

/// The element type of a number; `None` for numbers that no tensor can have.
pub(crate) fn dtype(id: u32) -> Option<DType> {
    u16::try_from(id).ok().map(DType::from_id)
}

/// GGML's name of an element type, `Q4_K`; `unknown` for a number outside the registry.
///
/// Owner: a static string, never freed. Threads: any. Errors: none. Cost: one pass over the registry.
#[unsafe(no_mangle)]
pub extern "C" fn p64_dtype_name(dtype: u32) -> *const c_char {
    let known = DType::ALL.iter().zip(&DTYPES).find(|(known, _)| u32::from(known.id()) == dtype);
    known.map_or(c"unknown".as_ptr(), |(_, name)| name.as_ptr().cast())
}

/// How an element type packs a row: `elements` consecutive values share `bytes` bytes.
///
/// Threads: any. Errors: `P64_STATUS_UNSUPPORTED_DTYPE` for types that are no blocks (ternary) and for unknown ones.
/// Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_dtype_block(
    dtype: u32,
    elements: *mut u32,
    bytes: *mut u32,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (elements, bytes) = (c.out(elements)?, c.out(bytes)?);
        let unsupported = Error::new(Code::UnsupportedDType, Place::File).values(0, u64::from(dtype));
        let block = self::dtype(dtype).and_then(DType::block).ok_or(unsupported)?;
        elements.set(block.elements);
        bytes.set(block.bytes);
        Ok(())
    })
}

/// The name of a role, `attn_q`; `unknown` for a number without a meaning.
///
/// Owner: a static string, never freed. Threads: any. Errors: none. Cost: one pass over the roles.
#[unsafe(no_mangle)]
pub extern "C" fn p64_role_name(role: u32) -> *const c_char {
    let known = Role::ALL.iter().zip(&ROLES).find(|(known, _)| u32::from(known.id()) == role);
    known.map_or(c"unknown".as_ptr(), |(_, name)| name.as_ptr().cast())
}
