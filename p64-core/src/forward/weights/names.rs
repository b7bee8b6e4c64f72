//! Names of tensors that have no role, built and judged without allocation.
#![forbid(unsafe_code)]

use super::named_norms;
use crate::forward::dims::Config;
use crate::forward::parameter::Parameter;
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
    if name.starts_with("p64.") || name == Parameter::RopeFreqs.name() {
        return true;
    }
    let suffix = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')).map(|(_, suffix)| suffix);
    let norms = named_norms(config.family());
    suffix.is_some_and(|suffix| norms.iter().any(|(norm, on)| *on && norm.name() == suffix))
        && layer_exists(name, config)
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
