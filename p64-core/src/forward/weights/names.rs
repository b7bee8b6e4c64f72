//! Names of tensors that have no role, built and judged without allocation.
#![forbid(unsafe_code)]

use super::layer::{reads_norm, reads_second_norm};
use crate::forward::arch::{ALL_FAMILIES, Biases, FeedForwardKind, HeadNorms, Positions, Presence};
use crate::forward::dims::Config;
use crate::forward::parameter::Parameter;
use crate::layout::role::Role;

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

/// `blk.<layer>.<suffix>`. By hand, because firmware has no other use for a formatter, and that is 1.4 KB.
pub(super) fn layer(layer: u32, suffix: &str) -> Name {
    let mut digits = [b'0'; 10];
    let mut rest = layer;
    for digit in digits.iter_mut().rev() {
        *digit |= u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    let zeros = digits.iter().take(9).take_while(|digit| **digit == b'0');
    let digits = digits.get(zeros.count()..).unwrap_or_default();

    let mut name = Name { bytes: [0; Name::CAPACITY], len: 0 };
    let parts = [b"blk.", digits, b".", suffix.as_bytes()];
    // A name cut short names no tensor, so that shows as a missing one.
    for (to, byte) in name.bytes.iter_mut().zip(parts.into_iter().flatten()) {
        *to = *byte;
        name.len = name.len.saturating_add(1);
    }
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
    let (architecture, family) = (config.architecture, config.family());
    match role {
        Role::TokenEmbd | Role::Output | Role::OutputNorm | Role::AttnOutput => true,
        Role::AttnQ | Role::AttnK | Role::AttnV => true,
        Role::AttnNorm => reads_norm(architecture) != Presence::Never,
        Role::FfnNorm => reads_second_norm(architecture) != Presence::Never,
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
        (ALL_FAMILIES, &[P::QueryKeyValue]),
        (family.head_norms != HeadNorms::None, &[P::QueryNorm, P::KeyNorm]),
        (family.post_norms, &[P::PostAttentionNorm, P::PostFfnNorm]),
        (family.norm_biases, &[P::AttentionNormBias, P::FfnNormBias]),
        (ALL_FAMILIES && may(qkv), &[P::QueryKeyValueBias]),
        (may(qkv), &[P::QueryBias, P::KeyBias, P::ValueBias]),
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
    let (family, long) = (config.family(), config.long_from().is_some());
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
        for number in [0, 1, 9, 10, 47, 100, 1_000_000_000, u32::MAX] {
            assert_eq!(layer(number, "attn_q_norm.weight").as_str(), std::format!("blk.{number}.attn_q_norm.weight"));
        }
        for parameter in Parameter::ALL.iter().filter(|p| p.number() >= Parameter::RopeFreqs.number()) {
            let name = layer(u32::MAX, parameter.name());
            assert!(*parameter == Parameter::OtherTensor || name.as_str().ends_with(parameter.name()));
        }
    }
}
