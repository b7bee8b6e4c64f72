//! Phi-3, Phi-3.5, Phi-4 and their mini versions.
#![forbid(unsafe_code)]

use super::family::*;
use super::llama::PLAIN;
use crate::kernel::generic::rope::Pairing;

pub(super) const PHI3: Family = Family {
    positions: Positions::Rotary(Pairing::Split),
    feed_forward: FeedForwardKind::GatedInUp,
    // Converters have written windows that the models do not have; llama.cpp passes them over, and so do we.
    ignores_window: true,
    long_rope: LongRope::Always,
    ..PLAIN
};
