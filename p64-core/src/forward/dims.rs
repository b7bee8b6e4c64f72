//! What a model's metadata says about its dimensions, read once and checked.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::as_conversions, clippy::unwrap_used)]

mod experts;
mod keys;
mod rope;

pub(in crate::forward) use experts::Built;
pub use experts::Experts;
pub use rope::Rotation;

use super::arch::{
    Architecture, AttentionScale, EmbeddingScale, Family, LogitScale, LongRope, NormKind, Positions, Softcap, Window,
};
use super::parameter::Parameter;
#[cfg(doc)]
use crate::error::Code;
use crate::error::Result;
use crate::metadata::Metadata;
use keys::Keys;
use rope::Rope;

/// Upper bounds of the dimensions; several times what public models have, and small enough that the products of any
/// three of them but with the context fit 64 bits.
mod most {
    pub const LENGTH: usize = 1 << 20;
    pub const HEADS: usize = 1 << 14;
    pub const HEAD: usize = 1 << 14;
    pub const CONTEXT: usize = 1 << 30;
    /// Public models stay below 200; binding looks through the table once per role and layer.
    pub const LAYERS: usize = 1 << 10;
    pub const EXPERTS: usize = 1 << 12;
}

/// How the attention of a layer sees positions.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Span {
    /// Most recent positions seen, this one among them; `None` for all.
    pub window: Option<usize>,
    /// How queries and keys are turned; `None` when they are not.
    pub rope: Option<Rotation>,
}

macro_rules! config {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// The dimensions and constants of a model. Only [`Config::read`] makes one, so its numbers have been checked:
        /// no dimension is zero, heads divide, and no sum or product that a batch within memory leads to overflows.
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct Config { $(pub(super) $field: $type,)* }

        impl Config {
            $($(#[$doc])* #[must_use] pub const fn $field(&self) -> $type { self.$field })*
        }
    };
}

config! {
    /// The family.
    architecture: Architecture,
    /// Layers.
    n_layer: usize,
    /// Length of the stream between layers.
    n_embd: usize,
    /// Query heads.
    n_head: usize,
    /// Key and value heads; each serves `n_head / n_head_kv` query heads.
    n_head_kv: usize,
    /// Length of a head.
    head_dim: usize,
    /// Length of the feed-forward network's inside, of one expert's where there are experts.
    n_ff: usize,
    /// The experts, in models that have them.
    experts: Option<Experts>,
    /// Positions the model was trained for.
    context: usize,
    /// Elements of a head that the rotary embedding turns; even.
    rope_dims: usize,
    /// Base of the rotary embedding in the layers that see everything, whether they turn anything or not.
    rope_base: f32,
    /// Longest context for which the short divisors of the frequencies are taken, where there are short and long ones.
    short_context: Option<usize>,
    /// Positions of the sliding window that the file names, followed or not; 0 for none.
    sliding_window: usize,
    /// Added to the mean square or the variance in every norm.
    norm_epsilon: f32,
    /// Factor of the token embedding.
    embedding_scale: f32,
    /// Factor of the attention scores.
    attention_scale: f32,
    /// Soft-cap of the attention scores.
    attention_softcap: Option<f32>,
    /// Factor of what attention and feed-forward network add to the stream.
    residual_scale: f32,
    /// Factor of the logits.
    logit_scale: f32,
    /// Soft-cap of the logits.
    final_softcap: Option<f32>,
    /// Span of the layers that see everything.
    global: Span,
    /// Span of the layers that see a window, and of how many layers the last is global instead.
    local: Option<(Span, usize)>,
}

impl Config {
    /// Reads a model's configuration. The metadata is walked twice: up to the architecture, then once for the rest.
    ///
    /// # Errors
    /// As [`Architecture::read`]; [`Code::MissingKey`] and [`Code::UnsupportedFeature`] with the number of the
    /// [`Parameter`]; [`Code::MetadataWrongType`] and [`Code::MetadataRange`] with the key's position, the latter with
    /// the limit and the value ([`f32::to_bits`] for floats).
    pub fn read(metadata: &Metadata<'_>) -> Result<Self> {
        let architecture = Architecture::read(metadata)?;
        let keys = Keys::collect(metadata, architecture.name());
        let family = architecture.family();
        keys.refuse_unsupported(architecture)?;

        let n_layer = keys.need(Parameter::BlockCount, most::LAYERS)?;
        let n_embd = keys.need(Parameter::EmbeddingLength, most::LENGTH)?;
        let experts = experts::read(&keys, architecture)?;
        let n_ff = match experts {
            Some(experts) => experts.n_ff,
            None => keys.need(Parameter::FeedForwardLength, most::LENGTH)?,
        };
        let context = keys.need(Parameter::ContextLength, most::CONTEXT)?;
        let n_head = keys.need(Parameter::HeadCount, most::HEADS)?;
        let n_head_kv = keys.length(Parameter::HeadCountKv, n_head)?.unwrap_or(n_head);
        if !n_head.is_multiple_of(n_head_kv) {
            return Err(keys.out_of_range(Parameter::HeadCountKv, n_head));
        }
        let width = n_embd.checked_div(n_head).filter(|_| n_embd.is_multiple_of(n_head));
        let width = width.ok_or(keys.missing(Parameter::KeyLength));
        let head_dim = match keys.length(Parameter::KeyLength, most::HEAD)? {
            Some(length) => length,
            None => width?,
        };
        keys.same_if_there(Parameter::ValueLength, head_dim)?;
        keys.same_if_there(Parameter::KeyLengthLocal, head_dim)?;
        keys.same_if_there(Parameter::ValueLengthLocal, head_dim)?;
        let rope_dims = keys.length(Parameter::RopeDimensionCount, head_dim)?.unwrap_or(head_dim);
        if !rope_dims.is_multiple_of(2) && matches!(family.positions, Positions::Rotary(_)) {
            return Err(keys.out_of_range(Parameter::RopeDimensionCount, head_dim));
        }
        keys.same_if_there(Parameter::RopeDimensionCountLocal, rope_dims)?;
        let original_context = keys.length_or_zero(Parameter::RopeOriginalContext, most::CONTEXT)?.unwrap_or(context);
        let rope = Rope::read(&keys, to_f32(rope_dims), to_f32(original_context))?;
        let epsilon = match family.norm {
            NormKind::Rms => Parameter::RmsEpsilon,
            NormKind::Layer => Parameter::LayerEpsilon,
        };
        let head_scale = |length| 1.0 / libm::sqrtf(to_f32(length));

        Ok(Self {
            architecture,
            n_layer,
            n_embd,
            n_head,
            n_head_kv,
            head_dim,
            n_ff,
            experts,
            context,
            rope_dims,
            rope_base: rope.base(),
            short_context: rope.is_long(architecture).then_some(original_context),
            sliding_window: keys.length_or_zero(Parameter::SlidingWindow, most::CONTEXT)?.unwrap_or(0),
            norm_epsilon: keys.positive(epsilon)?.ok_or(keys.missing(epsilon))?,
            embedding_scale: match family.embedding_scale {
                EmbeddingScale::One => 1.0,
                EmbeddingScale::RootOfLength => libm::sqrtf(to_f32(n_embd)),
                EmbeddingScale::FromFile => keys.positive_or_zero(Parameter::EmbeddingScale)?.unwrap_or(1.0),
            },
            attention_scale: match family.attention_scale {
                AttentionScale::HeadLengthExceptAtLayers(n) if usize::try_from(n) == Ok(n_layer) => head_scale(width?),
                AttentionScale::FromFile => {
                    keys.positive_or_zero(Parameter::AttentionScale)?.unwrap_or(head_scale(head_dim))
                }
                AttentionScale::HeadLength | AttentionScale::HeadLengthExceptAtLayers(_) => head_scale(head_dim),
            },
            attention_softcap: softcap(&keys, family.attention_softcap, Parameter::AttentionSoftcap)?,
            residual_scale: match family.residual_scale {
                true => keys.positive_or_zero(Parameter::ResidualScale)?.unwrap_or(1.0),
                false => 1.0,
            },
            logit_scale: logit_scale(&keys, architecture)?,
            final_softcap: softcap(&keys, family.final_softcap, Parameter::FinalSoftcap)?,
            global: Span {
                window: None,
                rope: rope.global(&keys, architecture).filter(|_| rotates_globally(architecture)),
            },
            local: local_span(&keys, architecture, n_layer, &rope)?,
        })
    }

    /// What differs between families.
    #[must_use]
    #[inline(always)]
    pub const fn family(&self) -> Family {
        self.architecture.family()
    }

    /// Length of a position's queries, and of what attention gives: `n_head * head_dim`.
    #[must_use]
    pub const fn query_len(&self) -> usize {
        self.n_head.saturating_mul(self.head_dim)
    }

    /// Length of a position's keys, and of its values: `n_head_kv * head_dim`.
    #[must_use]
    pub const fn kv_len(&self) -> usize {
        self.n_head_kv.saturating_mul(self.head_dim)
    }

    /// Length of the longest inside of a feed-forward network.
    #[must_use]
    pub const fn inside_len(&self) -> usize {
        match self.experts {
            Some(Experts { shared_n_ff, .. }) if shared_n_ff > self.n_ff => shared_n_ff,
            _ => self.n_ff,
        }
    }

    /// [`Config::short_context`] in families that have one.
    pub(super) const fn long_from(&self) -> Option<usize> {
        match self.family().long_rope {
            LongRope::Never => None,
            LongRope::ByType | LongRope::Always => self.short_context,
        }
    }

    /// What the attention of a layer sees.
    #[must_use]
    pub const fn span(&self, layer: usize) -> Span {
        match self.local {
            Some((span, period)) if !layer.saturating_add(1).is_multiple_of(period) => span,
            _ => self.global,
        }
    }
}

/// Whether the layers that see everything turn their heads.
const fn rotates_globally(architecture: Architecture) -> bool {
    match architecture.family().local {
        Some(local) => local.global_rope,
        None => true,
    }
}

/// The local layers' span, and of how many layers the last is global instead.
fn local_span(
    keys: &Keys<'_>,
    architecture: Architecture,
    n_layer: usize,
    rope: &Rope,
) -> Result<Option<(Span, usize)>> {
    let family = architecture.family();
    let window = keys.length_or_zero(Parameter::SlidingWindow, most::CONTEXT)?;
    let Some(local) = family.local else {
        return match window {
            Some(_) if !family.ignores_window => Err(keys.unsupported(Parameter::SlidingWindow)),
            _ => Ok(None),
        };
    };
    let window = match (local.window, window) {
        (Window::IfThere, None) => return Ok(None),
        (Window::Needed, None) => return Err(keys.missing(Parameter::SlidingWindow)),
        (Window::Or(length), None) => usize::try_from(length).ok(),
        (Window::All, None) => None,
        (Window::All, Some(_)) => return Err(keys.unsupported(Parameter::SlidingWindow)),
        (_, window) => window,
    };
    let period = keys.period(Parameter::SlidingWindowPattern, n_layer, most::LAYERS)?;
    let period = period.or(usize::try_from(local.period).ok()).unwrap_or(1);
    Ok(Some((Span { window, rope: Some(rope.local(keys, local.rope)?) }, period)))
}

/// The soft-cap that a key says, where the family has one.
fn softcap(keys: &Keys<'_>, softcap: Softcap, parameter: Parameter) -> Result<Option<f32>> {
    match softcap {
        Softcap::Never => Ok(None),
        Softcap::FromFile => keys.positive_or_zero(parameter),
        Softcap::Or(cap) => Ok(Some(keys.positive(parameter)?.unwrap_or(cap))),
    }
}

fn logit_scale(keys: &Keys<'_>, architecture: Architecture) -> Result<f32> {
    let parameter = Parameter::LogitScale;
    let scale = match architecture.family().logit_scale {
        LogitScale::One => None,
        LogitScale::FromFile => keys.positive_or_zero(parameter)?,
        LogitScale::Needed => Some(keys.positive(parameter)?.ok_or(keys.missing(parameter))?),
        LogitScale::OneOver => Some(1.0 / keys.positive(parameter)?.ok_or(keys.missing(parameter))?),
    };
    Ok(scale.unwrap_or(1.0))
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "lengths are at most 2^20, so exact; a context is rounded"
)]
const fn to_f32(length: usize) -> f32 {
    length as f32
}

#[cfg(test)]
mod tests;
