//! How the keys say that heads are turned.
#![forbid(unsafe_code)]

use super::keys::Keys;
use crate::error::Result;
use crate::forward::arch::{ALL_FAMILIES, Architecture, LocalRope, LongRope, Positions};
use crate::forward::parameter::Parameter;
use crate::kernel::generic::rope::Yarn;

/// Base of the rotary embedding where a file has none.
const BASE: f32 = 10_000.0;

/// Turns of a pair over the original context: pairs with as many as the first are left alone, those with at most the second
/// are slowed down to the full. Keys that say otherwise (`rope.scaling.yarn_*`) llama.cpp reads in other families alone.
const YARN_TURNS: (f32, f32) = (32.0, 1.0);

/// How the heads of a layer are turned.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Rotation {
    /// Base of the frequencies.
    pub base: f32,
    /// Factor of the position before it turns anything: 1, or one over the factor of a scaling.
    pub scale: f32,
    /// Factor of what was turned.
    pub magnitude: f32,
    /// The pairs that `scale` is for, where it is not for all.
    pub yarn: Option<Yarn>,
}

/// The kinds of `rope.scaling.type`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    None,
    Linear,
    Yarn,
    Long,
}

/// What the keys say about the rotary embedding.
pub(super) struct Rope {
    kind: Kind,
    base: f32,
    factor: Option<f32>,
    attention_factor: f32,
    dims: f32,
    original_context: f32,
}

impl Rope {
    pub(super) fn read(keys: &Keys<'_>, dims: f32, original_context: f32) -> Result<Self> {
        let kind = match keys.get(Parameter::RopeScalingType).map(|(_, value)| value.as_str()) {
            Some(Some("none")) => Kind::None,
            None | Some(Some("linear")) => Kind::Linear,
            Some(Some("yarn")) if ALL_FAMILIES => Kind::Yarn,
            Some(Some("longrope")) if ALL_FAMILIES => Kind::Long,
            _ => return Err(keys.unsupported(Parameter::RopeScalingType)),
        };
        let factor = match keys.get(Parameter::RopeScalingFactor) {
            Some(_) => keys.positive_or_zero(Parameter::RopeScalingFactor)?,
            None => keys.positive_or_zero(Parameter::RopeScaleLinear)?,
        };
        Ok(Self {
            kind,
            base: keys.positive(Parameter::RopeBase)?.unwrap_or(BASE),
            factor: factor.filter(|_| kind != Kind::None),
            attention_factor: keys.positive_or_zero(Parameter::RopeScalingAttention)?.unwrap_or(1.0),
            dims,
            original_context,
        })
    }

    /// Base of the layers that see everything.
    pub(super) const fn base(&self) -> f32 {
        self.base
    }

    /// Whether the divisors of the frequencies are chosen by the length of the context.
    pub(super) fn is_long(&self, architecture: Architecture) -> bool {
        match architecture.family().long_rope {
            LongRope::Never => false,
            LongRope::ByType => self.kind == Kind::Long,
            LongRope::Always => true,
        }
    }

    /// How the layers that see everything turn their heads; `None` when nothing is turned.
    pub(super) fn global(&self, keys: &Keys<'_>, architecture: Architecture) -> Option<Rotation> {
        let family = architecture.family();
        let on = keys.get(Parameter::RopeFinetuned).and_then(|(_, value)| value.as_bool()) != Some(false);
        let rotary = matches!(family.positions, Positions::Rotary(_)) && (on || !family.rope_switch);
        rotary.then(|| self.rotation(self.base))
    }

    /// How local layers turn their heads.
    pub(super) fn local(&self, keys: &Keys<'_>, rope: LocalRope) -> Result<Rotation> {
        let plain = Rotation { base: self.base, scale: 1.0, magnitude: 1.0, yarn: None };
        Ok(match rope {
            LocalRope::Same => self.rotation(self.base),
            LocalRope::Unscaled => plain,
            LocalRope::OwnBase => self.rotation(keys.positive(Parameter::RopeBaseLocal)?.unwrap_or(self.base)),
            LocalRope::OwnBaseUnscaled(base) => {
                let base = keys.positive(Parameter::RopeBaseLocal)?.unwrap_or(base);
                Rotation { base, magnitude: self.attention_factor, ..plain }
            }
        })
    }

    fn rotation(&self, base: f32) -> Rotation {
        let scale = self.factor.map_or(1.0, |factor| 1.0 / factor);
        let yarn = (ALL_FAMILIES && self.kind == Kind::Yarn).then(|| self.yarn(base));
        // A factor below 1 compresses nothing, and its attention is not sharpened.
        let magnitude = if yarn.is_some() { 1.0 + 0.1 * libm::logf(1.0 / scale).max(0.0) } else { 1.0 };
        Rotation { base, scale, magnitude: magnitude * self.attention_factor, yarn }
    }

    /// The pairs at which the two numbers of turns over the original context are reached.
    fn yarn(&self, base: f32) -> Yarn {
        let pair = |turns: f32| {
            let trained = libm::logf(self.original_context / (turns * 2.0 * core::f32::consts::PI));
            self.dims * trained / (2.0 * libm::logf(base))
        };
        let (low, high) = YARN_TURNS;
        Yarn { low: libm::floorf(pair(low)).max(0.0), high: libm::ceilf(pair(high)).min(self.dims - 1.0) }
    }
}
