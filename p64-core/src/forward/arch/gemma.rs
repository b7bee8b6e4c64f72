//! The Gemma line.
#![forbid(unsafe_code)]

use super::family::*;
use super::llama::PLAIN;
use crate::kernel::generic::rope::Pairing;

pub(super) const GEMMA: Family = Family {
    positions: Positions::Rotary(Pairing::Split),
    // Plain gelu is nearer to the formula, but this is what the reference results were computed with: the largest
    // difference of a logit from them is 0.007 with it and 0.018 without (`tests/tests/llama_golden.rs`).
    gate: Gate::GeluF16,
    embedding_scale: EmbeddingScale::RootOfLength,
    gate_node: "ffn_geglu",
    ..PLAIN
};

pub(super) const GEMMA3: Family = Family {
    head_norms: HeadNorms::Shared,
    post_norms: true,
    local: Some(LocalLayers {
        period: 6,
        window: Window::IfThere,
        rope: LocalRope::OwnBaseUnscaled(10_000.0),
        global_rope: true,
    }),
    attention_scale: AttentionScale::HeadLengthExceptAtLayers(62),
    final_softcap: Softcap::FromFile,
    attention_node: "sa_out",
    ..GEMMA
};

/// Gemma 2: soft-caps, every other layer local.
pub(super) const GEMMA2: Family = Family {
    post_norms: true,
    local: Some(LocalLayers { period: 2, window: Window::Or(4096), rope: LocalRope::OwnBase, global_rope: true }),
    // The 27B.
    attention_scale: AttentionScale::HeadLengthExceptAtLayers(46),
    attention_softcap: Softcap::Or(50.0),
    final_softcap: Softcap::Or(30.0),
    attention_node: "sa_out",
    ..GEMMA
};
