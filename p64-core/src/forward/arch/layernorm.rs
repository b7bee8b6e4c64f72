//! The families whose norms subtract the mean and add a bias.
#![forbid(unsafe_code)]

use super::family::*;
use super::llama::PLAIN;
use crate::kernel::generic::rope::Pairing;

/// StableLM: where a layer has no norm in front of its feed-forward network (12B), that reads what attention reads.
pub(super) const STABLELM: Family = Family {
    positions: Positions::Rotary(Pairing::Split),
    norm: NormKind::Layer,
    norm_biases: true,
    block: Block::ParallelWithoutNorm,
    head_norms: HeadNorms::OwnIfThere,
    ..PLAIN
};

/// GPT-2: positions are learned, every projection has a bias, the feed-forward network has no gate.
pub(super) const GPT2: Family = Family {
    positions: Positions::Learned,
    norm: NormKind::Layer,
    norm_biases: true,
    biases: Biases {
        qkv: Presence::Always,
        attention: Presence::Always,
        feed_forward: Presence::Always,
        output: Presence::Never,
    },
    feed_forward: FeedForwardKind::Plain,
    gate: Gate::GeluF16,
    gate_node: "ffn_gelu",
    ..PLAIN
};
