//! Number conversions that cannot lose anything, for the modules where `as` is denied.
#![forbid(unsafe_code)]

/// A length as a file offset. `usize` is at most 64 bits on every supported target.
#[must_use]
pub fn wide(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// A `u32` as an index; on a 16-bit machine a large one becomes `usize::MAX`, past the end of every slice.
#[must_use]
pub fn index(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// A length as a `u32` count, saturating: it is compared with stored counts, which are never larger.
#[must_use]
pub fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
