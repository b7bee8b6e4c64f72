//! Helpers for the tests of the workspace.
//!
//! [`assemble`] writes P64 files straight from the spec's tables, independently of `p64-std`'s writer, so that the two
//! check each other; [`mutate`] changes files and puts their checksums right again.

pub mod agree;
pub mod assemble;
pub mod broken;
pub mod conformance;
pub mod data;
pub mod far;
pub mod gguf;
pub mod mutate;
pub mod toy;
