//! Memory between two pages that nobody may touch.

use core::ptr::null_mut;
use core::slice;
use p64_core::quant::ActivationBlock;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};

/// A multiple of every page size that Linux has.
const GUARD: usize = 64 << 10;

/// At which guard a slice lies: the byte before its first, or the one after its last, is the guard's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Start,
    End,
}

/// Elements of which any bytes are a value.
///
/// # Safety
/// That is so, none has padding, and their alignment divides their size.
pub unsafe trait Plain: Copy {}

// SAFETY: any byte is one.
unsafe impl Plain for u8 {}
// SAFETY: any four bytes are one, of 4 bytes and alignment 4.
unsafe impl Plain for f32 {}
// SAFETY: bytes.
unsafe impl<const N: usize> Plain for [u8; N] {}
// SAFETY: one f32, two i32 and 32 i16: 76 bytes without a gap, alignment 4.
unsafe impl Plain for ActivationBlock {}

/// Readable and writable memory with a guard on each side. It stays until the process ends.
pub struct Arena {
    first: *mut u8,
    len: usize,
}

impl Arena {
    /// At least `len` bytes.
    pub fn new(len: usize) -> Self {
        let len = len.next_multiple_of(GUARD);
        // SAFETY: where it comes to lie is the system's choice, so it replaces no other mapping.
        let mapped = unsafe { mmap_anonymous(null_mut(), GUARD + len + GUARD, ProtFlags::empty(), MapFlags::PRIVATE) };
        let first = mapped.expect("address space").cast::<u8>().wrapping_add(GUARD);
        // SAFETY: these are bytes of the mapping just made, which nothing refers to yet.
        unsafe { mprotect(first.cast(), len, MprotectFlags::READ | MprotectFlags::WRITE) }.expect("memory");
        Self { first, len }
    }

    /// `count` elements beside a guard. They hold what the memory last held.
    pub fn slice<T: Plain>(&mut self, count: usize, side: Side) -> &mut [T] {
        let len = count.checked_mul(size_of::<T>()).filter(|len| *len <= self.len).expect("the arena is larger");
        let offset = if side == Side::Start { 0 } else { self.len - len };
        let first = self.first.wrapping_add(offset).cast::<T>();
        // SAFETY: `offset + len` is at most the arena's length, all of which is readable and writable for ever and borrowed
        // from `self`. `first` is aligned, since pages are and `len` is a multiple of the alignment. Any bytes are a `T`.
        unsafe { slice::from_raw_parts_mut(first, count) }
    }

    /// A copy of `values` beside a guard.
    pub fn copy<T: Plain>(&mut self, values: &[T], side: Side) -> &[T] {
        let slice = self.slice(values.len(), side);
        slice.copy_from_slice(values);
        slice
    }

    /// Reads the byte before or behind the arena, which ends the process.
    pub fn touch_guard(&self, side: Side) -> u8 {
        let place = if side == Side::Start { self.first.wrapping_sub(1) } else { self.first.wrapping_add(self.len) };
        // SAFETY: not sound, on purpose: the process ends with a signal here, which is what the caller tests.
        unsafe { place.read_volatile() }
    }
}
