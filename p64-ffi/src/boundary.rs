//! Where C's pointers become references, and panics become statuses. Nothing else in tier 0 touches a raw pointer.
//!
//! An exported function makes a [`Caller`] first. Making one is the unsafe step, and holding one stands for the promise of
//! `p64.h`; its methods check what can be checked and answer with a status where a pointer is NULL, misaligned or points
//! to too much.

use crate::error::p64_error;
use crate::status::{self, p64_status};
use core::marker::PhantomData;
use core::mem::MaybeUninit;

/// A [`p64_status`] on its way to or from C, where any number may stand: never an enumeration of Rust's.
pub type Status = i32;

/// Result of what an exported function does.
pub type Outcome<T = ()> = Result<T, p64_error>;

/// A failure that has no place in a file.
pub const fn fail<T>(status: p64_status) -> Outcome<T> {
    Err(p64_error::of(status))
}

/// One call from C, whose pointers obey the rules of `p64.h`. `'c` is how long C lends what they point to: the call, or
/// longer where the function's comment says so.
pub struct Caller<'c> {
    error: *mut p64_error,
    lasts: PhantomData<&'c ()>,
}

impl<'c> Caller<'c> {
    /// Begins a call.
    ///
    /// # Safety
    /// Every pointer that is handed to the methods of this value comes from the caller of the exported function, and is NULL
    /// or points to as many values of its type as the function's documentation says, readable or writable as it says, which
    /// nobody else writes (and, where this writes, nobody else reads) while `'c` lasts. `error` is one of them.
    pub const unsafe fn new(error: *mut p64_error) -> Self {
        Self { error, lasts: PhantomData }
    }

    /// Runs the call, and tells its end both ways.
    pub fn run(&self, body: impl FnOnce(&Self) -> Outcome) -> Status {
        let error = match caught(|| body(self)) {
            Ok(()) => p64_error::of(status::P64_STATUS_OK),
            Err(error) => error,
        };
        if !self.error.is_null() {
            // SAFETY: by `new`, the pointer that is not NULL is writable; whatever its alignment.
            unsafe { self.error.write_unaligned(error) };
        }
        error.status
    }

    /// What `pointer` points to.
    pub fn get<T>(&self, pointer: *const T) -> Outcome<&'c T> {
        checked(pointer)?;
        // SAFETY: not NULL and aligned, just checked; by `new` it points to a `T` that nobody writes during the call. Only
        // types for which every bit pattern is a value are taken from C, and those that this library has made.
        Ok(unsafe { &*pointer })
    }

    /// What `pointer` points to, to be changed.
    pub fn get_mut<T>(&self, pointer: *mut T) -> Outcome<&'c mut T> {
        checked(pointer)?;
        // SAFETY: as in `get`, and by `new` nobody else uses it during the call.
        Ok(unsafe { &mut *pointer })
    }

    /// A place for a result. Nothing is written before the call has succeeded.
    pub fn out<T>(&self, pointer: *mut T) -> Outcome<Out<'c, T>> {
        checked(pointer)?;
        // SAFETY: not NULL and aligned, just checked; by `new` it is room for a `T`, initialised or not.
        Ok(Out(unsafe { &mut *pointer.cast::<MaybeUninit<T>>() }))
    }

    /// `len` values from `pointer` on. No value may be asked for with NULL.
    pub fn slice<T>(&self, pointer: *const T, len: usize) -> Outcome<&'c [T]> {
        if len == 0 {
            return Ok(&[]);
        }
        checked(pointer)?;
        fits::<T>(pointer, len)?;
        // SAFETY: not NULL, aligned, and no longer than an object can be, all just checked; by `new` there are `len` values.
        Ok(unsafe { core::slice::from_raw_parts(pointer, len) })
    }

    /// The same, to be changed. Memory of C's counts as initialised: the types taken are numbers, whose every bit pattern
    /// is a value.
    pub fn slice_mut<T>(&self, pointer: *mut T, len: usize) -> Outcome<&'c mut [T]> {
        if len == 0 {
            return Ok(&mut []);
        }
        checked(pointer)?;
        fits::<T>(pointer, len)?;
        // SAFETY: as in `slice`, and by `new` nobody else uses them during the call.
        Ok(unsafe { core::slice::from_raw_parts_mut(pointer, len) })
    }

    /// UTF-8 of `len` bytes; what is not UTF-8 names nothing in a file.
    pub fn str(&self, pointer: *const core::ffi::c_char, len: usize) -> Outcome<&'c str> {
        let bytes = self.slice(pointer.cast::<u8>(), len)?;
        core::str::from_utf8(bytes).or(fail(status::P64_STATUS_NOT_FOUND))
    }

    /// A path, which is a C string. Outside of Unix it must be UTF-8.
    #[cfg(feature = "std")]
    pub fn path(&self, pointer: *const core::ffi::c_char) -> Outcome<std::path::PathBuf> {
        checked(pointer)?;
        // SAFETY: not NULL, just checked; by `new` and p64.h it points to a string that a NUL ends.
        let bytes = unsafe { core::ffi::CStr::from_ptr(pointer) };
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            Ok(std::ffi::OsStr::from_bytes(bytes.to_bytes()).into())
        }
        #[cfg(not(unix))]
        bytes.to_str().map(Into::into).or(fail(status::P64_STATUS_BAD_ARGUMENT))
    }

    /// Takes back what [`Out::give`] has handed over; nothing for NULL.
    #[cfg(feature = "std")]
    pub fn take_back<T>(&self, pointer: *mut T) -> Outcome<Option<Box<T>>> {
        if pointer.is_null() {
            return Ok(None);
        }
        checked(pointer)?;
        // SAFETY: by p64.h what is handed to a `_free` function came from the function that makes it, which used `give`,
        // and is handed over once.
        Ok(Some(unsafe { Box::from_raw(pointer) }))
    }
}

/// Room for one result.
pub struct Out<'c, T>(&'c mut MaybeUninit<T>);

impl<T> Out<'_, T> {
    /// Hands the result over.
    pub const fn set(self, value: T) {
        self.0.write(value);
    }
}

#[cfg(feature = "std")]
impl<T> Out<'_, *mut T> {
    /// Hands a value over that lives on the heap until it is taken back.
    pub fn give(self, value: T) {
        self.set(Box::into_raw(Box::new(value)));
    }
}

fn checked<T>(pointer: *const T) -> Outcome {
    if pointer.is_null() {
        return fail(status::P64_STATUS_NULL_POINTER);
    }
    if !pointer.is_aligned() {
        let error = p64_error::of(status::P64_STATUS_MISALIGNED);
        return Err(error.values(align_of::<T>(), pointer.addr()));
    }
    Ok(())
}

/// Checks that `len` values from `pointer` on can be: at most `isize::MAX` bytes, and not around the end of memory.
fn fits<T>(pointer: *const T, len: usize) -> Outcome {
    let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| isize::try_from(*bytes).is_ok());
    match bytes.and_then(|bytes| pointer.addr().checked_add(bytes)) {
        Some(_) => Ok(()),
        None => Err(p64_error::of(status::P64_STATUS_BAD_ARGUMENT).values(0, len)),
    }
}

/// Checks that a struct that may grow is of this library's size.
pub fn struct_size<T>(given: u32) -> Outcome {
    let (need, have) = (size_of::<T>(), usize::try_from(given).unwrap_or(usize::MAX));
    if have == need { Ok(()) } else { Err(p64_error::of(status::P64_STATUS_BAD_STRUCT_SIZE).values(need, have)) }
}

/// Checks that an input and an output share no byte.
pub fn apart<A, B>(input: &[A], (output, len): (*mut B, usize)) -> Outcome {
    let (a, b) = (input.as_ptr().addr(), output.addr());
    let (a_end, b_end) = (a.saturating_add(size_of_val(input)), b.saturating_add(len.saturating_mul(size_of::<B>())));
    if a < b_end && b < a_end && a != a_end && b != b_end { fail(status::P64_STATUS_BAD_ARGUMENT) } else { Ok(()) }
}

#[cfg(feature = "std")]
fn caught(body: impl FnOnce() -> Outcome) -> Outcome {
    // What a panic leaves half changed is for the caller to throw away, as the status says.
    let body = std::panic::AssertUnwindSafe(body);
    std::panic::catch_unwind(body).unwrap_or(fail(status::P64_STATUS_PANIC))
}

/// Without std a panic ends in the panic handler.
#[cfg(not(feature = "std"))]
fn caught(body: impl FnOnce() -> Outcome) -> Outcome {
    body()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let mut error = p64_error::of(status::P64_STATUS_OK);
        // SAFETY: `error` is this test's own.
        let caller = unsafe { Caller::new(&raw mut error) };
        assert_eq!(caller.run(|_| panic!("on purpose")), status::P64_STATUS_PANIC as i32);
        assert_eq!(error.status, status::P64_STATUS_PANIC as i32);
    }

    #[test]
    fn overlaps_are_found() {
        let mut values = [0u32; 8];
        let all = values.as_mut_ptr();
        for (from, to, len, same) in
            [(0, 0, 1, true), (0, 3, 2, true), (0, 4, 4, false), (4, 0, 4, false), (2, 5, 0, false)]
        {
            // SAFETY: inside the array.
            let input = unsafe { core::slice::from_raw_parts(all.wrapping_add(from), 4) };
            assert_eq!(apart(input, (all.wrapping_add(to), len)).is_err(), same, "{from} {to} {len}");
        }
    }
}
