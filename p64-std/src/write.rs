//! The P64 writer: every offset is planned before the first byte is written.
//!
//! ```text
//! descriptions -> Plan      order, offsets, entries, schedule, manifold, names: everything but payloads and their CRCs
//! Plan + payloads -> file   front, room for the checksum table, payloads in pieces while their CRC-32C is computed,
//!                           then the table
//! ```
//!
//! Files are strict (spec §1.1), and the same descriptions, options and payloads give the same bytes.

mod error;
mod holes;
mod order;
mod pairs;
mod plan;
mod q42t;
mod revise;
mod sections;
mod writer;

pub use error::PlanError;
pub use holes::Holes;
pub use order::file_order;
pub use pairs::{Pairs, area};
pub use plan::{LayoutOptions, Model, Plan, TensorDescription};
pub use q42t::{TokenizerParts, encode as encode_tokenizer};
pub(crate) use writer::zeros;
pub use writer::{BlobSink, CHUNK, write};

#[cfg(test)]
mod tests;
