//! The Qwen line.
#![forbid(unsafe_code)]

use super::family::*;
use super::llama::PLAIN;
use crate::kernel::generic::rope::Pairing;

pub(super) const QWEN2: Family = Family {
    positions: Positions::Rotary(Pairing::Split),
    biases: Biases { output: Presence::Maybe, ..PLAIN.biases },
    ..PLAIN
};

pub(super) const QWEN3: Family = Family { head_norms: HeadNorms::Shared, biases: PLAIN.biases, ..QWEN2 };

/// Its experts' weights are the shares of all experts that the softmax gave; an expert for every token joins them.
pub(super) const QWEN2_MOE: Family = Family {
    biases: PLAIN.biases,
    experts: Some(Routing { normalise: false, divides_length: true, shared: SharedExperts::Gated }),
    ..QWEN2
};

pub(super) const QWEN3_MOE: Family =
    Family { experts: Some(Routing { normalise: true, divides_length: true, shared: SharedExperts::None }), ..QWEN3 };
