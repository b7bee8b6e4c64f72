//! Tier 1: what takes files, threads and a heap.
//!
//! ```text
//! message      why a call of this tier failed, in words
//! file         a mapped container                 -> every function of tier 0
//! model        a mapped model with its tokenizer
//! session      a sequence over a model
//! convert      GGUF to P64 and back
//! ```

// The header's generator reads this file as a root: it takes the conditions from here and looks for modules beside it.
#[cfg(feature = "std")]
#[path = "tier1/message.rs"]
pub mod message;

#[cfg(feature = "std")]
#[path = "tier1/file.rs"]
pub mod file;

#[cfg(feature = "std")]
#[path = "tier1/model.rs"]
pub mod model;

#[cfg(feature = "std")]
#[path = "tier1/session.rs"]
pub mod session;

#[cfg(feature = "std")]
#[path = "tier1/convert.rs"]
pub mod convert;

// An enumeration under a condition would lose all of its variants, and C has no empty one: these stand in every header.

/// How text is read by `p64_model_encode` and `p64_vocabulary_encode`, and written by their counterparts. May be combined with `|`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_text_flags {
    /// Only the text.
    P64_TEXT_PLAIN = 0,
    /// Encoding: puts the beginning of sequence before it, and the end behind it, where the model wants them.
    P64_TEXT_ADD_SPECIAL = 1,
    /// Encoding: the texts of special tokens (`<|im_end|>`) stand for them; not for text from strangers. Decoding: special
    /// tokens are written as their texts.
    P64_TEXT_SPECIAL = 2,
}

/// Why a generation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_stop {
    /// The model gave a token that ends a generation.
    P64_STOP_END = 0,
    /// One of the stop texts appeared.
    P64_STOP_TEXT = 1,
    /// As many tokens were generated as were asked for.
    P64_STOP_LENGTH = 2,
    /// The context is full.
    P64_STOP_CONTEXT = 3,
    /// The callback asked for it.
    P64_STOP_CANCELLED = 4,
}

/// How a session keeps the keys and values of what it has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_kv_type {
    /// As they were computed.
    P64_KV_F32 = 0,
    /// Rounded to f16: half the memory.
    P64_KV_F16 = 1,
    /// Rounded to 8-bit integers with a step for each 32, 34 bytes for them: for models whose heads are multiples of 32.
    P64_KV_Q8_0 = 2,
}

/// What a long operation is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_phase {
    /// Reading the source for its digest.
    P64_PHASE_DIGEST = 0,
    /// Writing the output.
    P64_PHASE_WRITE = 1,
    /// Comparing.
    P64_PHASE_COMPARE = 2,
}
