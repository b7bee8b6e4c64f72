//! The fuzz targets of P64 as plain functions of the input bytes.
//!
//! `fuzz_targets/` hands each to libFuzzer; `tests/tests/fuzz_replay.rs` runs each over its corpus in the ordinary tests.
//! A body returns when the input is handled well, whether accepted or refused, and panics when a promise is broken.

pub mod container_slice;
pub mod container_stream;
pub mod convert_and_back;
pub mod gguf_reader;
pub mod metadata;
pub mod model_run;
pub mod q42t;
pub mod safetensors;
pub mod tokenizer;

/// A target: the name of its corpus folder and of its binary, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("container_slice", container_slice::run),
    ("container_stream", container_stream::run),
    ("convert_and_back", convert_and_back::run),
    ("gguf_reader", gguf_reader::run),
    ("metadata", metadata::run),
    ("model_run", model_run::run),
    ("q42t", q42t::run),
    ("safetensors", safetensors::run),
    ("tokenizer", tokenizer::run),
];
