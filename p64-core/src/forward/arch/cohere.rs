//! Command R and what followed: attention and feed-forward network side by side.
#![forbid(unsafe_code)]

use super::family::*;
use super::llama::PLAIN;

pub(super) const COMMAND_R: Family = Family {
    norm: NormKind::Layer,
    block: Block::Parallel,
    head_norms: HeadNorms::OwnIfThere,
    logit_scale: LogitScale::FromFile,
    ..PLAIN
};

/// Cohere 2: three of four layers see a window, and only those turn their heads.
pub(super) const COHERE2: Family = Family {
    head_norms: HeadNorms::None,
    local: Some(LocalLayers { period: 4, window: Window::Needed, rope: LocalRope::Same, global_rope: false }),
    logit_scale: LogitScale::Needed,
    ..COMMAND_R
};
