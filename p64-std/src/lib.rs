//! Files in and out of P64: mapped opening, the GGUF reader, the streaming writer, converters, tokenizers, samplers and
//! sessions. The bytes of a `.p64` are only ever interpreted by `p64_core`.
pub mod tokenizer;
