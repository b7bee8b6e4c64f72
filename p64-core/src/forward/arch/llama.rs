//! LLaMA, and the families that differ from it in one place.
#![forbid(unsafe_code)]

use super::family::*;
use crate::kernel::generic::rope::Pairing;

/// The family that most others are described from.
pub(super) const LLAMA: Family = Family {
    positions: Positions::Rotary(Pairing::Adjacent),
    norm: NormKind::Rms,
    norm_biases: false,
    block: Block::Sequential,
    post_norms: false,
    sub_norms: false,
    head_norms: HeadNorms::None,
    biases: Biases {
        qkv: Presence::Maybe,
        attention: Presence::Maybe,
        feed_forward: Presence::Maybe,
        output: Presence::Never,
    },
    scales: false,
    feed_forward: FeedForwardKind::Gated,
    gate: Gate::Silu,
    experts: Some(Routing { normalise: true, divides_length: false, shared: SharedExperts::None }),
    local: None,
    ignores_window: false,
    long_rope: LongRope::ByType,
    rope_switch: false,
    embedding_scale: EmbeddingScale::One,
    attention_scale: AttentionScale::HeadLength,
    residual_scale: false,
    attention_softcap: Softcap::Never,
    logit_scale: LogitScale::One,
    final_softcap: Softcap::Never,
    attention_node: "ffn_inp",
    gate_node: "ffn_swiglu",
};

/// What LLaMA's descendants usually have: a bias at most for queries, keys and values, no experts.
pub(super) const PLAIN: Family = Family {
    biases: Biases { attention: Presence::Never, feed_forward: Presence::Never, ..LLAMA.biases },
    experts: None,
    long_rope: LongRope::Never,
    ..LLAMA
};
