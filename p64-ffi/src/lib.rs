//! The C ABI, `include/p64.h`.
//!
//! ```text
//! tier 0   container tensor layer metadata tokenizer names kernel decoder
//!          stream crc vocabulary           no heap, no operating system
//! tier 1   files, sessions, conversion (feature `std`, `P64_STD` in the header)
//! border   boundary (pointers and panics become statuses)   status   error   version
//! ```
//!
//! There is no logic here: each function turns its pointers into what `p64_core` or `p64_std` take, makes one call, and
//! hands the result back. The header is generated from these sources by `tests/header.rs`; the comments of exported items
//! are written for the people who read it there.
//!
//! What a C caller promises, and every `unsafe` block below rests on, are the rules at the top of `p64.h`
//! (`cbindgen.toml`): a pointer is NULL or points to what its type says, for as long as the function's comment says.
//! NULL, a misaligned pointer, a length that cannot be, storage that was never opened and numbers out of range are no
//! breach of them: those are answered with a status.
#![cfg_attr(not(feature = "std"), no_std)]
#![allow(
    non_camel_case_types,
    clippy::missing_safety_doc,
    reason = "C's names; the conditions of all functions stand above and in p64.h"
)]

mod boundary;
pub mod container;
pub mod crc;
pub mod decoder;
pub mod error;
pub mod kernel;
pub mod layer;
pub mod metadata;
pub mod names;
#[cfg(all(feature = "firmware", not(feature = "std")))]
mod panic;
pub mod status;
pub mod stream;
pub mod tensor;
pub mod tier1;
pub mod tokenizer;
pub mod version;
pub mod vocabulary;
