//! OLMo 2 and 3: norms behind attention and feed-forward network instead of in front.
#![forbid(unsafe_code)]

use super::family::*;
use super::llama::PLAIN;
use crate::kernel::generic::rope::Pairing;

pub(super) const OLMO2: Family = Family {
    positions: Positions::Rotary(Pairing::Split),
    block: Block::PostNormOnly,
    post_norms: true,
    head_norms: HeadNorms::Whole,
    // OLMo 3.
    local: Some(LocalLayers { period: 4, window: Window::IfThere, rope: LocalRope::Unscaled, global_rope: true }),
    ..PLAIN
};
