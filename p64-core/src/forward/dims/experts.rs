//! What the keys say about experts.
#![forbid(unsafe_code)]

use super::keys::Keys;
use super::most;
use crate::error::Result;
use crate::forward::arch::{Architecture, SharedExperts};
use crate::forward::parameter::Parameter;

/// The experts of a model's layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Experts {
    /// How many there are.
    pub count: usize,
    /// How many of them a position passes through.
    pub used: usize,
    /// Length of an expert's inside.
    pub n_ff: usize,
    /// Length of the inside of what every position passes through; 0 when there is no such expert.
    pub shared_n_ff: usize,
    /// Whether that one is weighed by a sigmoid (`ffn_gate_inp_shexp`).
    pub shared_gate: bool,
    /// Whether the weights of those used are made to sum to 1.
    pub normalise: bool,
    /// Without a value of this there is none of [`Experts`].
    pub(in crate::forward) built: Built,
}

/// Has a value where this build runs experts. Elsewhere what holds one cannot exist, and the compiler leaves out the code
/// that would handle it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::forward) enum Built {
    #[cfg(feature = "all-families")]
    Yes,
}

impl Built {
    #[cfg(feature = "all-families")]
    const HERE: Option<Self> = Some(Self::Yes);
    #[cfg(not(feature = "all-families"))]
    const HERE: Option<Self> = None;
}

/// The experts that the keys of a family say; `None` for a model without.
pub(super) fn read(keys: &Keys<'_>, architecture: Architecture) -> Result<Option<Experts>> {
    let (Some(routing), Some(built)) = (architecture.family().experts, Built::HERE) else { return Ok(None) };
    let Some(count) = keys.length_or_zero(Parameter::ExpertCount, most::EXPERTS)? else { return Ok(None) };
    keys.same_switch_if_there(Parameter::ExpertWeightsNorm, routing.normalise)?;
    let used = keys.need(Parameter::ExpertUsedCount, count)?;
    let n_ff = keys.length_or_zero(Parameter::FeedForwardLength, most::LENGTH)?;
    let own = keys.length_or_zero(Parameter::ExpertFeedForwardLength, most::LENGTH)?;
    let shared = keys.length_or_zero(Parameter::ExpertSharedFeedForwardLength, most::LENGTH)?;
    let own = own.or(n_ff.map(|n_ff| if routing.divides_length { n_ff.checked_div(used).unwrap_or(0) } else { n_ff }));
    let shared = match routing.shared {
        SharedExperts::None => None,
        SharedExperts::IfThere => shared,
        SharedExperts::Gated => Some(shared.or(n_ff).ok_or(keys.missing(Parameter::ExpertSharedFeedForwardLength))?),
    };
    Ok(Some(Experts {
        count,
        used,
        n_ff: own.filter(|own| *own > 0).ok_or(keys.missing(Parameter::ExpertFeedForwardLength))?,
        shared_n_ff: shared.unwrap_or(0),
        shared_gate: routing.shared == SharedExperts::Gated,
        normalise: routing.normalise,
        built,
    }))
}
