//! The P64 weight container, its kernels and the forward pass, without `std` and without allocation.
//!
//! Bytes become trusted once and then flow one way, each step a type that proves the step before:
//!
//! ```text
//! &[u8] -> Container<'a>   only the validator makes one; what it describes cannot fail afterwards
//!       -> Tensor<'a>      bytes whose CRC-32C has been checked
//!       -> Matrix<'a>      dtype x rows x cols, proven to fit its bytes
//!       -> Model<'a>       matrices bound to their places in a transformer
//!       -> forward(..)     on the caller's scratch and KV cache -> logits
//! ```
//!
//! Where a file cannot be mapped, [`stream`] validates it and hands out its parts through reads of a few bytes.
//!
//! The caller owns every buffer; each consumer of one has a function beside it that says how long it must be.
#![no_std]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

pub mod bytes;
pub mod container;
pub mod crc32c;
pub mod error;
pub mod extent;
pub mod forward;
pub mod hash;
pub mod kernel;
pub mod layout;
pub mod limits;
pub mod metadata;
pub mod num;
pub mod quant;
pub mod stream;
pub mod tokenizer;
pub mod validate;

pub use container::{Container, Tensor, TensorInfo};
pub use error::{Code, Error, Kind, Place, Result, Section};
pub use layout::dtype::DType;
pub use layout::role::Role;
pub use layout::shape::Shape;
