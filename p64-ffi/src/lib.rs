//! The C ABI, `include/p64.h`. Nothing is exported yet.
//!
//! Tier 0 needs no heap: a `p64_container` in the caller's storage over `p64_core`. Tier 1 (`P64_STD`) opens files and runs
//! sessions through `p64_std`. Statuses are the frozen numbers of [`p64_core::Code`].
#![forbid(unsafe_code)]
