//! Files in and out of P64: mapped opening, the GGUF reader, the streaming writer, converters, tokenizers, samplers and
//! sessions. The bytes of a `.p64` are only ever interpreted by `p64_core`.
#![deny(unsafe_code)]

pub mod atomic_file;
pub mod bandwidth;
pub mod chat;
pub mod convert;
pub mod diff;
pub mod edit;
pub mod error;
pub mod export;
mod files;
pub mod gguf;
pub mod glob;
pub mod hf;
pub mod map;
pub mod model;
mod part_name;
pub mod perplexity;
pub mod pool;
pub mod quantize;
#[cfg(feature = "remote")]
pub mod remote;
pub mod safetensors;
pub mod sample;
pub mod session;
pub mod sniff;
pub mod source;
pub mod split;
pub mod stats;
pub mod tokenizer;
pub mod write;

pub use error::{Error, Result};
