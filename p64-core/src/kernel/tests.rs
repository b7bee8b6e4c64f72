//! Kernels against naive `f64` arithmetic.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "test data and oracles")]

mod cache;
mod experts;
mod levels;
mod matmul;
mod naive;
mod seeds;
mod steps;
#[cfg(feature = "all-types")]
mod tiles;
