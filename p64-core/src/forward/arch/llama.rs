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

/// LLaMA without experts and without divisors that the length of the context chooses: all of it that builds without
/// `all-families` run.
pub(super) const LLAMA_DENSE: Family = Family { experts: None, long_rope: LongRope::Never, ..LLAMA };

/// What LLaMA's descendants usually have: a bias at most for queries, keys and values, no experts.
pub(super) const PLAIN: Family = Family {
    biases: Biases { attention: Presence::Never, feed_forward: Presence::Never, ..LLAMA.biases },
    ..LLAMA_DENSE
};

/// SmolLM3: every fourth layer turns nothing.
pub(super) const SMOLLM3: Family = Family {
    local: Some(LocalLayers { period: 4, window: Window::All, rope: LocalRope::Same, global_rope: false }),
    ..PLAIN
};

/// Granite: four factors, three of which the file may leave out.
pub(super) const GRANITE: Family = Family {
    experts: Some(Routing { normalise: true, divides_length: false, shared: SharedExperts::IfThere }),
    rope_switch: true,
    embedding_scale: EmbeddingScale::FromFile,
    attention_scale: AttentionScale::FromFile,
    residual_scale: true,
    logit_scale: LogitScale::OneOver,
    ..LLAMA
};

/// Granite with experts.
pub(super) const GRANITE_MOE: Family = Family { rope_switch: false, ..GRANITE };

/// BitNet: ternary weights, norms in front of what they give.
pub(super) const BITNET: Family =
    Family { positions: Positions::Rotary(Pairing::Split), sub_norms: true, biases: NO_BIASES, scales: true, ..PLAIN };

/// No biases at all.
pub(super) const NO_BIASES: Biases =
    Biases { qkv: Presence::Never, attention: Presence::Never, feed_forward: Presence::Never, output: Presence::Never };
