//! One layer's tensors.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::as_conversions, clippy::unwrap_used)]

mod experts;

pub(in crate::forward) use experts::Expert;
pub use experts::ExpertTensors;

use super::{Vector, Weight, WeightSource, matrix, missing, names, wide};
use crate::error::{Code, Error, Place, Result};
use crate::forward::arch::{ALL_FAMILIES, Architecture, Block, FeedForwardKind, HeadNorms, Presence};
use crate::forward::dims::Config;
use crate::forward::parameter::Parameter;
use crate::kernel::Matrix;
use crate::layout::role::Role;

/// A projection: `y = scale * (W x + bias)`. No family has both scale and bias.
#[derive(Clone, Copy, Debug)]
pub struct Linear<'w> {
    pub(in crate::forward) weight: Matrix<'w>,
    pub(in crate::forward) bias: Option<Vector<'w>>,
    pub(in crate::forward) scale: f32,
}

/// The weights of a norm.
#[derive(Clone, Copy, Debug)]
pub struct Norm<'w> {
    pub(in crate::forward) weight: Vector<'w>,
    pub(in crate::forward) bias: Option<Vector<'w>>,
}

/// What a feed-forward network is made of.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FeedForward<'w> {
    /// `down(act(gate(x)) * up(x))`.
    Gated {
        /// `[n_ff, n_embd]`.
        gate: Linear<'w>,
        /// `[n_ff, n_embd]`.
        up: Linear<'w>,
        /// `[n_embd, n_ff]`.
        down: Linear<'w>,
    },
    /// `down(act(up(x)))`.
    Plain {
        /// `[n_ff, n_embd]`.
        up: Linear<'w>,
        /// `[n_embd, n_ff]`.
        down: Linear<'w>,
    },
    /// Several of the first kind, chosen by the position.
    Experts(ExpertTensors<'w>),
}

/// The tensors of one layer.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'w> {
    pub(in crate::forward) attn_norm: Option<Norm<'w>>,       // n_embd
    pub(in crate::forward) attn_q: Linear<'w>,                // [n_head * head_dim, n_embd]
    pub(in crate::forward) attn_k: Linear<'w>,                // [n_head_kv * head_dim, n_embd]
    pub(in crate::forward) attn_v: Linear<'w>,                // [n_head_kv * head_dim, n_embd]
    pub(in crate::forward) attn_q_norm: Option<Vector<'w>>,   // head_dim or n_head * head_dim
    pub(in crate::forward) attn_k_norm: Option<Vector<'w>>,   // head_dim or n_head_kv * head_dim
    pub(in crate::forward) attn_sub_norm: Option<Vector<'w>>, // n_head * head_dim
    pub(in crate::forward) attn_output: Linear<'w>,           // [n_embd, n_head * head_dim]
    pub(in crate::forward) post_attention_norm: Option<Vector<'w>>, // n_embd
    pub(in crate::forward) ffn_norm: Option<Norm<'w>>,        // n_embd
    pub(in crate::forward) feed_forward: FeedForward<'w>,
    pub(in crate::forward) ffn_sub_norm: Option<Vector<'w>>, // n_ff
    pub(in crate::forward) post_ffw_norm: Option<Vector<'w>>, // n_embd
    /// How many tensors of the file all this is.
    pub(super) tensors: u16,
}

impl<'w> Layer<'w> {
    /// Binds the tensors of layer `index`.
    ///
    /// # Errors
    /// [`Code::MissingTensor`] at the layer; [`Code::WrongShape`] and [`Code::UnsupportedDType`] at the tensor;
    /// [`Code::LengthMismatch`] for an index past the last layer; those of the source.
    pub fn bind(source: &impl WeightSource<'w>, config: &Config, index: usize) -> Result<Self> {
        let beyond = Error::new(Code::LengthMismatch, Place::File).values(wide(config.n_layer), wide(index));
        let layer = u32::try_from(index).ok().filter(|_| index < config.n_layer).ok_or(beyond)?;
        let (embd, query, kv, family) = (config.n_embd, config.query_len(), config.kv_len(), config.family());
        let architecture = config.architecture;
        let mut places = Places { source, layer, architecture, tensors: 0 };
        let always = |on| if on { Presence::Always } else { Presence::Never };

        let attn_norm = places.norm(Role::AttnNorm, Parameter::AttentionNormBias, embd, reads_norm(architecture))?;
        let [attn_q, attn_k, attn_v] = places.query_key_value(embd, query, kv)?;
        let (head_norms, query_norm, key_norm) = match family.head_norms {
            HeadNorms::None => (Presence::Never, 0, 0),
            HeadNorms::Shared => (Presence::Always, config.head_dim, config.head_dim),
            HeadNorms::OwnIfThere => (Presence::Maybe, query, kv),
            HeadNorms::Whole => (Presence::Always, query, kv),
        };
        let attention = family.biases.attention;
        let (post, sub) = (always(family.post_norms), always(family.sub_norms));
        Ok(Self {
            attn_norm,
            attn_q,
            attn_k,
            attn_v,
            attn_q_norm: places.vector(Parameter::QueryNorm, query_norm, head_norms)?,
            attn_k_norm: places.vector(Parameter::KeyNorm, key_norm, head_norms)?,
            attn_sub_norm: places.role_vector(Role::AttnSubNorm, query, sub)?,
            attn_output: places.linear(&ATTENTION_OUTPUT, attention, embd, query)?,
            post_attention_norm: places.vector(Parameter::PostAttentionNorm, embd, post)?,
            ffn_norm: places.norm(Role::FfnNorm, Parameter::FfnNormBias, embd, reads_second_norm(architecture))?,
            feed_forward: places.feed_forward(config)?,
            ffn_sub_norm: places.role_vector(Role::FfnSubNorm, config.n_ff, sub)?,
            post_ffw_norm: places.vector(Parameter::PostFfnNorm, embd, post)?,
            tensors: places.tensors,
        })
    }

    /// Whether the feed-forward network reads what attention read.
    pub(in crate::forward) const fn is_parallel(&self, architecture: Architecture) -> bool {
        match architecture.family().block {
            Block::Sequential | Block::PostNormOnly => false,
            Block::Parallel => true,
            Block::ParallelWithoutNorm => self.ffn_norm.is_none(),
        }
    }
}

/// Whether the layers of a family have `attn_norm`.
pub(super) const fn reads_norm(architecture: Architecture) -> Presence {
    match architecture.family().block {
        Block::PostNormOnly => Presence::Never,
        Block::Sequential | Block::Parallel | Block::ParallelWithoutNorm => Presence::Always,
    }
}

/// Whether the layers of a family have `ffn_norm`.
pub(super) const fn reads_second_norm(architecture: Architecture) -> Presence {
    match architecture.family().block {
        Block::PostNormOnly | Block::Parallel => Presence::Never,
        Block::ParallelWithoutNorm => Presence::Maybe,
        Block::Sequential => Presence::Always,
    }
}

/// What a projection's tensors are called.
struct Names {
    weight: Role,
    bias: Parameter,
    scale: Parameter,
}

const QUERY: Names = Names { weight: Role::AttnQ, bias: Parameter::QueryBias, scale: Parameter::QueryScale };
const KEY: Names = Names { weight: Role::AttnK, bias: Parameter::KeyBias, scale: Parameter::KeyScale };
const VALUE: Names = Names { weight: Role::AttnV, bias: Parameter::ValueBias, scale: Parameter::ValueScale };
const ATTENTION_OUTPUT: Names =
    Names { weight: Role::AttnOutput, bias: Parameter::AttentionOutputBias, scale: Parameter::AttentionOutputScale };
const GATE: Names = Names { weight: Role::FfnGate, bias: Parameter::FfnGateBias, scale: Parameter::FfnGateScale };
const UP: Names = Names { weight: Role::FfnUp, bias: Parameter::FfnUpBias, scale: Parameter::FfnUpScale };
const DOWN: Names = Names { weight: Role::FfnDown, bias: Parameter::FfnDownBias, scale: Parameter::FfnDownScale };

/// Where the tensors of one layer are looked up.
struct Places<'s, S> {
    source: &'s S,
    layer: u32,
    architecture: Architecture,
    tensors: u16,
}

impl<'w, S: WeightSource<'w>> Places<'_, S> {
    /// A tensor by its role, if it may be there.
    fn role(&mut self, role: Role, presence: Presence) -> Result<Option<Weight<'w>>> {
        if presence == Presence::Never {
            return Ok(None);
        }
        let weight = self.source.by_role(role, Some(self.layer))?;
        self.tensors = self.tensors.saturating_add(u16::from(weight.is_some()));
        match weight {
            None if presence == Presence::Always => Err(missing(u64::from(role.id()), Some(self.layer))),
            weight => Ok(weight),
        }
    }

    /// A tensor without a role, if it may be there.
    fn named(&mut self, parameter: Parameter, presence: Presence) -> Result<Option<Weight<'w>>> {
        if presence == Presence::Never {
            return Ok(None);
        }
        let weight = self.source.by_name(names::layer(self.layer, parameter.name()).as_str())?;
        self.tensors = self.tensors.saturating_add(u16::from(weight.is_some()));
        match weight {
            None if presence == Presence::Always => Err(missing(parameter.tensor(), Some(self.layer))),
            weight => Ok(weight),
        }
    }

    fn vector(&mut self, parameter: Parameter, len: usize, presence: Presence) -> Result<Option<Vector<'w>>> {
        self.named(parameter, presence)?.map(|weight| Vector::new(&weight, len)).transpose()
    }

    fn role_vector(&mut self, role: Role, len: usize, presence: Presence) -> Result<Option<Vector<'w>>> {
        self.role(role, presence)?.map(|weight| Vector::new(&weight, len)).transpose()
    }

    fn norm(&mut self, role: Role, bias: Parameter, len: usize, presence: Presence) -> Result<Option<Norm<'w>>> {
        let Some(weight) = self.role_vector(role, len, presence)? else { return Ok(None) };
        let bias_presence = if self.architecture.family().norm_biases { Presence::Always } else { Presence::Never };
        Ok(Some(Norm { weight, bias: self.vector(bias, len, bias_presence)? }))
    }

    /// A projection from `cols` to `rows` values.
    fn linear(&mut self, names: &Names, bias: Presence, rows: usize, cols: usize) -> Result<Linear<'w>> {
        let weight = self.weight(names, rows, cols)?;
        self.with_bias(weight, names, bias, &mut None)
    }

    fn weight(&mut self, names: &Names, rows: usize, cols: usize) -> Result<Matrix<'w>> {
        let weight = self.role(names.weight, Presence::Always)?;
        matrix(&weight.ok_or(missing(u64::from(names.weight.id()), Some(self.layer)))?, rows, cols)
    }

    /// The projection of a weight. Its bias is the front of `fused`, which then lacks it, or else a tensor of its own.
    fn with_bias(
        &mut self,
        weight: Matrix<'w>,
        names: &Names,
        bias: Presence,
        fused: &mut Option<Vector<'w>>,
    ) -> Result<Linear<'w>> {
        let scale = if self.architecture.family().scales { Presence::Maybe } else { Presence::Never };
        let scale = self.vector(names.scale, 1, scale)?.and_then(|scale| scale.values().next());
        let bias = match fused {
            Some(rest) => {
                let (bias, after) = rest.split_at(weight.rows());
                *rest = after;
                Some(bias)
            }
            None => self.vector(names.bias, weight.rows(), bias)?,
        };
        Ok(Linear { weight, bias, scale: scale.unwrap_or(1.0) })
    }

    /// The projections to queries, keys and values, which a file may hold as the rows of one matrix, and so their biases.
    fn query_key_value(&mut self, embd: usize, query: usize, kv: usize) -> Result<[Linear<'w>; 3]> {
        let (bias, rows) = (self.architecture.family().biases.qkv, [query, kv, kv]);
        let may = if ALL_FAMILIES { Presence::Maybe } else { Presence::Never };
        let fused = self.named(Parameter::QueryKeyValue, may)?;
        let fused_bias = if fused.is_none() || bias == Presence::Never { Presence::Never } else { Presence::Maybe };
        let [query, key, value] = match fused {
            Some(fused) => split(&fused, rows, embd)?,
            None => [self.weight(&QUERY, query, embd)?, self.weight(&KEY, kv, embd)?, self.weight(&VALUE, kv, embd)?],
        };
        let rest = &mut self.vector(Parameter::QueryKeyValueBias, sum(&rows), fused_bias)?;
        Ok([
            self.with_bias(query, &QUERY, bias, rest)?,
            self.with_bias(key, &KEY, bias, rest)?,
            self.with_bias(value, &VALUE, bias, rest)?,
        ])
    }

    fn feed_forward(&mut self, config: &Config) -> Result<FeedForward<'w>> {
        if let Some(experts) = &config.experts {
            return self.experts(config, experts).map(FeedForward::Experts);
        }
        let (bias, embd, n_ff) = (self.architecture.family().biases.feed_forward, config.n_embd, config.n_ff);
        Ok(match self.architecture.family().feed_forward {
            FeedForwardKind::Gated => FeedForward::Gated {
                gate: self.linear(&GATE, bias, n_ff, embd)?,
                up: self.linear(&UP, bias, n_ff, embd)?,
                down: self.linear(&DOWN, bias, embd, n_ff)?,
            },
            FeedForwardKind::GatedInUp => {
                let fused = self.role(Role::FfnUp, Presence::Always)?;
                let fused = fused.ok_or(missing(u64::from(Role::FfnUp.id()), Some(self.layer)))?;
                let plain = |weight| Linear { weight, bias: None, scale: 1.0 };
                let [gate, up] = split(&fused, [n_ff, n_ff], embd)?.map(plain);
                FeedForward::Gated { gate, up, down: self.linear(&DOWN, bias, embd, n_ff)? }
            }
            FeedForwardKind::Plain => FeedForward::Plain {
                up: self.linear(&UP, bias, n_ff, embd)?,
                down: self.linear(&DOWN, bias, embd, n_ff)?,
            },
        })
    }
}

fn sum(rows: &[usize]) -> usize {
    rows.iter().fold(0, |sum, rows| sum.saturating_add(*rows))
}

/// A tensor that holds the rows of several matrices one after the other.
fn split<'w, const N: usize>(weight: &Weight<'w>, rows: [usize; N], cols: usize) -> Result<[Matrix<'w>; N]> {
    let all = matrix(weight, sum(&rows), cols)?;
    let mut first = 0usize;
    let mut parts = [all; N];
    for (part, rows) in parts.iter_mut().zip(rows) {
        let unsupported = Error::new(Code::UnsupportedDType, Place::Tensor(weight.index));
        let range = first..first.saturating_add(rows);
        *part = all.rows_of(range).ok_or(unsupported.values(0, u64::from(weight.dtype.id())))?;
        first = first.saturating_add(rows);
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Firmware keeps a model's layers in static memory: growth is a decision. It is 336 bytes where a pointer is 4.
    #[test]
    fn a_layer_stays_small() {
        assert!(size_of::<Layer<'_>>() <= 84 * size_of::<usize>(), "{}", size_of::<Layer<'_>>());
        assert!(size_of::<ExpertTensors<'_>>() <= 3 * size_of::<Linear<'_>>());
    }
}
