//! What the metadata say about a model's experts.
#![forbid(unsafe_code)]

use super::keys::Keys;
use super::most;
use crate::error::Result;
use crate::forward::arch::{ExpertLength, Family, SharedNetwork};
use crate::forward::experts::Mixture;
use crate::forward::parameter::Parameter;

/// The experts of a model; `None` where its feed-forward networks are whole. `n_ff` is the length of such a network.
pub(super) fn mixture(keys: &Keys<'_>, family: &Family, n_ff: usize) -> Result<Option<Mixture>> {
    let Some(routing) = &family.experts else {
        return match keys.length_or_zero(Parameter::ExpertCount, most::EXPERTS)? {
            None => Ok(None),
            Some(_) => Err(keys.unsupported(Parameter::ExpertCount)),
        };
    };
    let count = match keys.length_or_zero(Parameter::ExpertCount, most::EXPERTS)? {
        Some(count) => count,
        None if routing.needed => return Err(keys.missing(Parameter::ExpertCount)),
        None => return Ok(None),
    };
    let used = keys.need(Parameter::ExpertUsedCount, count)?;
    let ff = match routing.length {
        ExpertLength::Whole => {
            keys.same_if_there(Parameter::ExpertFeedForwardLength, n_ff)?;
            n_ff
        }
        ExpertLength::OwnOrShare => {
            let own = keys.length_or_zero(Parameter::ExpertFeedForwardLength, most::LENGTH)?;
            own.or(n_ff.checked_div(used).filter(|ff| *ff > 0))
                .ok_or(keys.missing(Parameter::ExpertFeedForwardLength))?
        }
    };
    let shared = keys.length_or_zero(Parameter::ExpertSharedFeedForwardLength, most::LENGTH)?;
    let (shared_ff, shared_gate) = match routing.shared {
        SharedNetwork::None if shared.is_some() => {
            return Err(keys.unsupported(Parameter::ExpertSharedFeedForwardLength));
        }
        SharedNetwork::None => (0, false),
        SharedNetwork::WhereGiven => (shared.unwrap_or(0), false),
        SharedNetwork::Gated => (shared.unwrap_or(n_ff), true),
    };
    if keys.flag(Parameter::ExpertWeightsNorm).is_some_and(|on| on != routing.normalised) {
        return Err(keys.unsupported(Parameter::ExpertWeightsNorm));
    }
    Ok(Some(Mixture { count, used, ff, shared_ff, shared_gate, normalised: routing.normalised }))
}
