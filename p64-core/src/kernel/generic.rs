//! The steps between the matrix products, on buffers of the caller's.
#![forbid(unsafe_code)]

pub mod activation;
pub mod attention;
pub mod cache;
mod exp;
mod grouped;
pub mod layernorm;
mod mean;
pub mod rmsnorm;
pub mod rope;
pub mod softmax;
pub(crate) mod spread;
