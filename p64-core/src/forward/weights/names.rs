//! Names of tensors that have no role, built and judged without allocation.
#![forbid(unsafe_code)]

use super::layer::{reads_norm, reads_second_norm};
use crate::forward::arch::{Biases, FeedForwardKind, HeadNorms, Positions, Presence};
use crate::forward::dims::Config;
use crate::forward::parameter::Parameter;
use crate::layout::role::Role;
use core::fmt::{self, Write};

/// A name on the stack.
pub(super) struct Name {
    bytes: [u8; Self::CAPACITY],
    len: usize,
}

impl Name {
    /// `blk.4294967295.` and the longest name of a [`Parameter`] fit.
    const CAPACITY: usize = 64;

    pub(super) fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|bytes| core::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl fmt::Write for Name {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let rest = self.bytes.get_mut(self.len..).ok_or(fmt::Error)?;
        rest.get_mut(..part.len()).ok_or(fmt::Error)?.copy_from_slice(part.as_bytes());
        self.len = self.len.saturating_add(part.len());
        Ok(())
    }
}

/// `blk.<layer>.<suffix>`.
pub(super) fn layer(layer: u32, suffix: &str) -> Name {
    let mut name = Name { bytes: [0; Name::CAPACITY], len: 0 };
    // A name cut short names no tensor, so the failure shows as a missing one.
    let _ = write!(name, "blk.{layer}.{suffix}");
    name
}

/// Whether the forward pass has a place for the tensor of this name, or may leave it out.
pub(super) fn is_known(name: &str, config: &Config) -> bool {
    // What describes a model rather than being part of it.
    if name.starts_with("p64.") {
        return true;
    }
    match name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
        Some((_, suffix)) => in_layers(config).any(|p| p.name() == suffix) && layer_exists(name, config),
        None => global(config).any(|parameter| parameter.name() == name),
    }
}

/// Whether a model of these dimensions has tensors of a role.
pub(super) fn has_role(role: Role, config: &Config) -> bool {
    let family = config.family();
    match role {
        Role::TokenEmbd | Role::Output | Role::OutputNorm | Role::AttnOutput => true,
        Role::AttnQ | Role::AttnK | Role::AttnV => true,
        Role::AttnNorm => reads_norm(family) != Presence::Never,
        Role::FfnNorm => reads_second_norm(family) != Presence::Never,
        Role::FfnUp | Role::FfnDown => config.experts.is_none(),
        Role::FfnGate => config.experts.is_none() && family.feed_forward == FeedForwardKind::Gated,
        Role::Router | Role::GateExperts | Role::UpExperts | Role::DownExperts => config.experts.is_some(),
        Role::SharedGate | Role::SharedUp | Role::SharedDown => {
            config.experts.is_some_and(|experts| experts.shared_n_ff > 0)
        }
        Role::AttnSubNorm | Role::FfnSubNorm => family.sub_norms,
        _ => false,
    }
}

/// Those of `parameters` whose switch is on.
fn those_on<const N: usize>(parameters: [(bool, &'static [Parameter]); N]) -> impl Iterator<Item = Parameter> {
    parameters.into_iter().filter(|(on, _)| *on).flat_map(|(_, parameters)| parameters.iter().copied())
}

/// The tensors without a role that a family's layers may have.
fn in_layers(config: &Config) -> impl Iterator<Item = Parameter> {
    use Parameter as P;
    let family = config.family();
    let whole = config.experts.is_none();
    let Biases { qkv, attention, feed_forward, .. } = family.biases;
    let may = |presence| presence != Presence::Never;
    those_on([
        (true, &[P::QueryKeyValue]),
        (family.head_norms != HeadNorms::None, &[P::QueryNorm, P::KeyNorm]),
        (family.post_norms, &[P::PostAttentionNorm, P::PostFfnNorm]),
        (family.norm_biases, &[P::AttentionNormBias, P::FfnNormBias]),
        (may(qkv), &[P::QueryKeyValueBias, P::QueryBias, P::KeyBias, P::ValueBias]),
        (may(attention), &[P::AttentionOutputBias]),
        (whole && may(feed_forward), &[P::FfnUpBias, P::FfnDownBias]),
        (whole && may(feed_forward) && family.feed_forward == FeedForwardKind::Gated, &[P::FfnGateBias]),
        (family.scales, &[P::QueryScale, P::KeyScale, P::ValueScale, P::AttentionOutputScale]),
        (whole && family.scales, &[P::FfnGateScale, P::FfnUpScale, P::FfnDownScale]),
        (config.experts.is_some_and(|experts| experts.shared_gate), &[P::SharedExpertGate]),
    ])
}

/// The tensors without a role outside of layers that a model of these dimensions may have.
fn global(config: &Config) -> impl Iterator<Item = Parameter> {
    use Parameter as P;
    let (family, long) = (config.family(), config.short_context.is_some());
    let rotary = matches!(family.positions, Positions::Rotary(_));
    those_on([
        (rotary && !long, &[P::RopeFreqs]),
        (rotary && long, &[P::RopeFactorsLong, P::RopeFactorsShort]),
        (!rotary, &[P::PositionEmbedding]),
        (family.norm_biases, &[P::OutputNormBias]),
        (family.biases.output != Presence::Never, &[P::OutputBias]),
    ])
}

/// Whether a layer's tensor is of a layer that the model has. True for names that do not begin with `blk.`.
pub(super) fn layer_exists(name: &str, config: &Config) -> bool {
    let Some((number, _)) = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) else { return true };
    number.parse::<usize>().is_ok_and(|number| number < config.n_layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_built_on_the_stack() {
        assert_eq!(layer(0, "attn_q_norm.weight").as_str(), "blk.0.attn_q_norm.weight");
        for parameter in Parameter::ALL.iter().filter(|p| p.number() >= Parameter::RopeFreqs.number()) {
            let name = layer(u32::MAX, parameter.name());
            assert!(*parameter == Parameter::OtherTensor || name.as_str().ends_with(parameter.name()));
        }
    }
}
