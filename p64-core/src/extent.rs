//! A byte range of a file, and every piece of arithmetic on offsets that come from one.
//!
//! Offsets are `u64` throughout: container version 4 stores `u32`, version 5 wider ones, and neither may wrap here.
#![forbid(unsafe_code)]

use core::ops::Range;

/// The bytes `start..end` of a file. `start <= end` always holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    start: u64,
    end: u64,
}

impl Extent {
    /// `len` bytes from `start`, or `None` when the end does not fit 64 bits.
    #[must_use]
    pub const fn new(start: u64, len: u64) -> Option<Self> {
        match start.checked_add(len) {
            Some(end) => Some(Self { start, end }),
            None => None,
        }
    }

    /// `count` records of `size` bytes from `start`, or `None` on overflow.
    #[must_use]
    pub const fn of_records(start: u64, count: u64, size: u64) -> Option<Self> {
        match count.checked_mul(size) {
            Some(len) => Self::new(start, len),
            None => None,
        }
    }

    /// The bytes `start..end`, or `None` when they run backwards.
    #[must_use]
    pub const fn between(start: u64, end: u64) -> Option<Self> {
        if start <= end { Some(Self { start, end }) } else { None }
    }

    /// First byte.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// One past the last byte.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the range holds no byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether the two ranges share a byte. An empty range shares none.
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        !self.is_empty() && !other.is_empty() && self.start < other.end && other.start < self.end
    }

    /// The range as indices of a slice, or `None` where `usize` is too narrow (a large file on a 32-bit machine).
    #[must_use]
    pub fn to_range(self) -> Option<Range<usize>> {
        Some(usize::try_from(self.start).ok()?..usize::try_from(self.end).ok()?)
    }

    /// The bytes of `file` in this range, or `None` when it runs past the end.
    #[must_use]
    pub fn of<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        file.get(self.to_range()?)
    }
}

/// `value` rounded up to a multiple of `alignment` (a power of two), or `None` on overflow.
#[must_use]
pub const fn align_up(value: u64, alignment: u64) -> Option<u64> {
    debug_assert!(alignment.is_power_of_two());
    let mask = alignment.wrapping_sub(1);
    match value.checked_add(mask) {
        Some(sum) => Some(sum & !mask),
        None => None,
    }
}

/// Whether `value` is a multiple of `alignment` (a power of two).
#[must_use]
pub const fn is_aligned(value: u64, alignment: u64) -> bool {
    debug_assert!(alignment.is_power_of_two());
    value & alignment.wrapping_sub(1) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_never_wraps() {
        assert_eq!(Extent::new(u64::MAX, 1), None);
        assert_eq!(Extent::of_records(0, u64::MAX / 64 + 1, 64), None);
        assert_eq!(Extent::between(2, 1), None);
        assert_eq!(align_up(u64::MAX, 64), None);
        assert_eq!(align_up(65, 64), Some(128));
        assert_eq!(align_up(64, 64), Some(64));
    }

    #[test]
    fn empty_ranges_overlap_nothing() {
        let empty = Extent::new(5, 0).expect("fits");
        let around = Extent::new(0, 10).expect("fits");
        assert!(!empty.overlaps(&around));
        assert!(around.overlaps(&Extent::new(9, 5).expect("fits")));
        assert!(!around.overlaps(&Extent::new(10, 5).expect("fits")));
    }
}
