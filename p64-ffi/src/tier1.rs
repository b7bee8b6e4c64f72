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
