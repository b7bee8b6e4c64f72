//! Upper bounds a reader puts on counts before it believes them. Passing one is [`Kind::Limit`](crate::Kind::Limit),
//! apart from malformed input, so that a person knows which of the two happened.
#![forbid(unsafe_code)]

/// Vocabulary entries of a Q42T section (spec §10).
pub const MAX_VOCABULARY: u32 = 1_000_000;
/// Merge pairs of a Q42T section (spec §10).
pub const MAX_MERGES: u32 = 5_000_000;
/// Bytes of one tensor name or of one metadata key.
pub const MAX_STRING: u32 = 65_535;
/// Transformer layers. Public models stay below 200.
pub const MAX_LAYERS: u32 = 65_535;
/// Container version 4 stores `u32` offsets: a file is smaller than this, and so is what stands before the blobs in
/// container version 5.
pub const MAX_FILE_V4: u64 = 1 << 32;
