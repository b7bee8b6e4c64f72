//! What a model's metadata says about its dimensions, read once and checked.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::as_conversions, clippy::unwrap_used)]

mod experts;
mod keys;

use super::arch::{Architecture, AttentionScale, EmbeddingScale, Family};
use super::experts::Mixture;
use super::parameter::Parameter;
#[cfg(doc)]
use crate::error::Code;
use crate::error::Result;
use crate::metadata::Metadata;
use keys::Keys;

/// Upper bounds of the dimensions; several times what public models have, and small enough that the products of any
/// three of them but with the context fit 64 bits.
mod most {
    pub const LENGTH: usize = 1 << 20;
    pub const HEADS: usize = 1 << 14;
    pub const HEAD: usize = 1 << 14;
    pub const CONTEXT: usize = 1 << 30;
    pub const EXPERTS: usize = 1 << 10;
    /// Public models stay below 200; binding looks through the table once per role and layer.
    pub const LAYERS: usize = 1 << 10;
}

/// How the attention of a layer sees positions.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Span {
    /// Most recent positions seen, this one among them; `None` for all.
    pub window: Option<usize>,
    /// Base of the rotary embedding.
    pub rope_base: f32,
    /// Factor of the position before it turns anything: 1, or one over the factor of linear scaling.
    pub rope_scale: f32,
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
    /// Length of the feed-forward network's inside.
    n_ff: usize,
    /// Its experts, where the feed-forward network is chosen token by token.
    mixture: Option<Mixture>,
    /// Positions the model was trained for.
    context: usize,
    /// Elements of a head that the rotary embedding turns; even.
    rope_dims: usize,
    /// Added to the mean square in every norm.
    norm_epsilon: f32,
    /// Factor of the token embedding.
    embedding_scale: f32,
    /// Factor of the attention scores.
    attention_scale: f32,
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
        keys.refuse_unsupported()?;
        let family = architecture.family();

        let n_layer = keys.need(Parameter::BlockCount, most::LAYERS)?;
        let n_embd = keys.need(Parameter::EmbeddingLength, most::LENGTH)?;
        let n_ff = keys.need(Parameter::FeedForwardLength, most::LENGTH)?;
        let context = keys.need(Parameter::ContextLength, most::CONTEXT)?;
        let n_head = keys.need(Parameter::HeadCount, most::HEADS)?;
        let n_head_kv = keys.length(Parameter::HeadCountKv, n_head)?.unwrap_or(n_head);
        if !n_head.is_multiple_of(n_head_kv) {
            return Err(keys.out_of_range(Parameter::HeadCountKv, n_head));
        }
        let width = n_embd.checked_div(n_head).filter(|_| n_embd.is_multiple_of(n_head));
        let head_dim = match keys.length(Parameter::KeyLength, most::HEAD)? {
            Some(length) => length,
            None => width.ok_or(keys.missing(Parameter::KeyLength))?,
        };
        keys.same_if_there(Parameter::ValueLength, head_dim)?;
        keys.same_if_there(Parameter::KeyLengthLocal, head_dim)?;
        keys.same_if_there(Parameter::ValueLengthLocal, head_dim)?;
        let rope_dims = keys.length(Parameter::RopeDimensionCount, head_dim)?.unwrap_or(head_dim);
        if !rope_dims.is_multiple_of(2) {
            return Err(keys.out_of_range(Parameter::RopeDimensionCount, head_dim));
        }
        let norm_epsilon = keys.positive(Parameter::RmsEpsilon)?.ok_or(keys.missing(Parameter::RmsEpsilon))?;

        Ok(Self {
            architecture,
            n_layer,
            n_embd,
            n_head,
            n_head_kv,
            head_dim,
            n_ff,
            mixture: experts::mixture(&keys, family, n_ff)?,
            context,
            rope_dims,
            norm_epsilon,
            embedding_scale: match family.embedding_scale {
                EmbeddingScale::One => 1.0,
                EmbeddingScale::RootOfLength => libm::sqrtf(to_f32(n_embd)),
            },
            attention_scale: match family.attention_scale {
                AttentionScale::HeadLengthExceptAtLayers(n) if usize::try_from(n) == Ok(n_layer) => {
                    1.0 / libm::sqrtf(to_f32(width.ok_or(keys.missing(Parameter::KeyLength))?))
                }
                _ => 1.0 / libm::sqrtf(to_f32(head_dim)),
            },
            global: keys.global_span()?,
            local: local_span(&keys, family)?,
        })
    }

    /// What differs between families.
    #[must_use]
    pub const fn family(&self) -> &'static Family {
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
        match self.mixture {
            Some(Mixture { ff, shared_ff, .. }) if shared_ff > ff => shared_ff,
            Some(Mixture { ff, .. }) => ff,
            None => self.n_ff,
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

/// The local layers' span: only where the family has such layers and the file gives their window.
fn local_span(keys: &Keys<'_>, family: &Family) -> Result<Option<(Span, usize)>> {
    let window = keys.length_or_zero(Parameter::SlidingWindow, most::CONTEXT)?;
    let Some((local, window)) = family.local.zip(window) else {
        return match window {
            None => Ok(None),
            Some(_) => Err(keys.unsupported(Parameter::SlidingWindow)),
        };
    };
    let period = keys.length(Parameter::SlidingWindowPattern, most::LAYERS)?;
    let period = period.or(usize::try_from(local.period).ok()).unwrap_or(1);
    let rope_base = keys.positive(Parameter::RopeBaseLocal)?.unwrap_or(local.rope_base);
    // Linear scaling stretches the global layers only: a window needs none.
    Ok(Some((Span { window: Some(window), rope_base, rope_scale: 1.0 }, period)))
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "lengths are at most 2^20, so exact")]
const fn to_f32(length: usize) -> f32 {
    length as f32
}

#[cfg(test)]
mod tests;
