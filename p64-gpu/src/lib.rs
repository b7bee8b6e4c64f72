//! A second executor of `p64_core`'s model description, on a GPU through wgpu. Nothing is here yet.
//!
//! It will record the same transformer as a list of commands (testable without a device), bind every weight in the form
//! it has on disk, and share names with core: `shader/gemv_q4_k.wgsl`, `kernels/gemv.rs`, `p64_core::quant::q4_k`.
#![forbid(unsafe_code)]
