//! The fixed records of the format, exactly as they stand on disk, and the codes they carry.
//!
//! ```text
//! 0                 header         64 B    layout::header
//! hparams_offset    HParams        64 B    layout::hparams
//! role_table_offset schedule       64 B x n_layer         layout::schedule (flag bit 6)
//! tensor_table      entries        64 B x tensor_count    layout::tensor
//! string_table      names          NUL-terminated
//! manifold_table    coordinates    64 B x (n_layer + 1)   layout::manifold
//! tokenizer         Q42T           optional
//! checksum          CRC-32C        4 B x (tensor_count + 1)
//! blobs             payloads       page- or 256-byte-aligned
//! ```
//!
//! Every record has alignment 1 and little-endian fields, so a view of one never faults and never copies, whatever the
//! host. Reader and writer share these types: a record is read with `ref_from_bytes` and written with `as_bytes`.
#![forbid(unsafe_code)]

pub mod dtype;
pub mod flags;
pub mod header;
pub mod hparams;
pub mod manifold;
pub mod role;
pub mod schedule;
pub mod shape;
pub mod tensor;

/// Size of every fixed record, in bytes (spec §3.4).
pub const RECORD: usize = 64;
/// Alignment of the manifold, tokenizer and checksum sections, and of the end of the file (spec §4).
pub const SECTION_ALIGN: u64 = 64;
/// Alignment of a blob inside a layer of a packed file (spec §7.4).
pub const PACK_ALIGN: u64 = 256;
/// Default blob alignment (spec §4).
pub const DEFAULT_PAGE_SIZE: u32 = 16_384;
/// Smallest permitted `page_size` (spec §5).
pub const MIN_PAGE_SIZE: u32 = 256;
