//! Model families: what differs between them, as data.
//!
//! The forward pass never asks which family it runs; it asks a [`Family`] for a pairing, a scale, a norm that is there or
//! not. A family is added by describing it here.
#![forbid(unsafe_code)]

use super::parameter::Parameter;
use crate::error::{Code, Error, Place, Result};
use crate::kernel::generic::activation::{gelu_f16_gate, gelu_gate, silu_gate};
use crate::kernel::generic::rope::Pairing;
use crate::metadata::Metadata;

/// A family this build runs, by the name that stands in `general.architecture`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Architecture {
    /// LLaMA and what shares its graph: Mistral, SmolLM2, TinyLlama, ...
    Llama,
    /// Gemma 3, text part.
    Gemma3,
}

/// What a family does in each place where families differ.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Family {
    /// Which elements of a head the rotary embedding turns together.
    pub pairing: Pairing,
    /// How gate and up projection become one.
    pub gate: Gate,
    /// Factor of the token embedding.
    pub embedding_scale: EmbeddingScale,
    /// Factor of the attention scores.
    pub attention_scale: AttentionScale,
    /// Whether every head of queries and keys is normed before the rotary embedding (`attn_q_norm`, `attn_k_norm`).
    pub head_norms: bool,
    /// Whether what attention and feed-forward add to the stream is normed first (`post_attention_norm`,
    /// `post_ffw_norm`).
    pub post_norms: bool,
    /// The experts its models may have; `None` where a feed-forward network is always whole.
    pub experts: Option<Routing>,
    /// Layers that see only the most recent positions; `None` when every layer sees all.
    pub local: Option<LocalLayers>,
    /// Name of the stream between attention and feed-forward in ggml's graph; probes only.
    pub attention_node: &'static str,
    /// Name of the gated activation in ggml's graph; probes only.
    pub gate_node: &'static str,
}

/// How gate and up projection become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Gate {
    /// `silu(gate) * up`.
    Silu,
    /// `gelu(gate) * up`, the tanh form.
    Gelu,
    /// The same with argument and result of gelu rounded to f16, as GGML's CPU code does through a table.
    GeluF16,
}

impl Gate {
    /// `gate[i] = f(gate[i]) * up[i]`.
    pub(super) fn apply(self, gate: &mut [f32], up: &[f32]) {
        match self {
            Self::Silu => silu_gate(gate, up),
            Self::Gelu => gelu_gate(gate, up),
            Self::GeluF16 => gelu_f16_gate(gate, up),
        }
    }
}

/// Factor of the token embedding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EmbeddingScale {
    /// 1.
    One,
    /// The square root of the embedding's length.
    RootOfLength,
}

/// Factor of the attention scores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AttentionScale {
    /// One over the root of a head's length.
    HeadLength,
    /// One over the root of a head's length, but of `n_embd / n_head` in models with so many layers (Gemma 3 27B has 62,
    /// and its heads are shorter than `n_embd / n_head`).
    HeadLengthExceptAtLayers(u32),
}

/// Sliding-window layers.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct LocalLayers {
    /// Of so many layers the last sees everything, the others only the window.
    pub period: u32,
    /// Base of the local layers' rotary embedding where the file has none.
    pub rope_base: f32,
}

/// How a family's experts are chosen, and what they are besides.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Routing {
    /// Whether every model has experts.
    pub needed: bool,
    /// Whether the weights of the chosen experts are divided by their sum.
    pub normalised: bool,
    /// Length of an expert's inside.
    pub length: ExpertLength,
    /// The network that every token passes as well.
    pub shared: SharedNetwork,
}

/// Length of an expert's inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ExpertLength {
    /// `feed_forward_length`.
    Whole,
    /// `expert_feed_forward_length`, and without it `feed_forward_length` shared among the experts of a token.
    OwnOrShare,
}

/// The network that every token of a mixture of experts passes as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SharedNetwork {
    /// There is none.
    None,
    /// Where `expert_shared_feed_forward_length` is given.
    WhereGiven,
    /// Always, `feed_forward_length` long unless that key says otherwise, its result times a sigmoid of its own.
    Gated,
}

/// Mixtral's.
const MIXTRAL: Routing =
    Routing { needed: false, normalised: true, length: ExpertLength::Whole, shared: SharedNetwork::None };

const LLAMA: Family = Family {
    pairing: Pairing::Adjacent,
    gate: Gate::Silu,
    embedding_scale: EmbeddingScale::One,
    attention_scale: AttentionScale::HeadLength,
    head_norms: false,
    post_norms: false,
    experts: Some(MIXTRAL),
    local: None,
    attention_node: "ffn_inp",
    gate_node: "ffn_swiglu",
};

const GEMMA3: Family = Family {
    pairing: Pairing::Split,
    // Plain gelu is nearer to the formula, but this is what the reference results were computed with: the largest
    // difference of a logit from them is 0.007 with it and 0.018 without (`tests/tests/llama_golden.rs`).
    gate: Gate::GeluF16,
    embedding_scale: EmbeddingScale::RootOfLength,
    attention_scale: AttentionScale::HeadLengthExceptAtLayers(62),
    head_norms: true,
    post_norms: true,
    experts: None,
    local: Some(LocalLayers { period: 6, rope_base: 10_000.0 }),
    attention_node: "sa_out",
    gate_node: "ffn_geglu",
};

impl Architecture {
    /// Every family this build runs.
    pub const ALL: &'static [Self] = &[Self::Llama, Self::Gemma3];

    /// Their names, for messages.
    pub const SUPPORTED: &'static [&'static str] = &[Self::Llama.name(), Self::Gemma3.name()];

    /// The name in `general.architecture`, which also begins the family's metadata keys.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Gemma3 => "gemma3",
        }
    }

    /// What the family does.
    #[must_use]
    pub const fn family(self) -> &'static Family {
        match self {
            Self::Llama => &LLAMA,
            Self::Gemma3 => &GEMMA3,
        }
    }

    /// The family of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|architecture| architecture.name() == name)
    }

    /// The family a model says it is of.
    ///
    /// # Errors
    /// [`Code::MissingKey`] without `general.architecture`, [`Code::MetadataWrongType`] when it is no text,
    /// [`Code::UnsupportedArchitecture`] when it is none of [`Architecture::SUPPORTED`].
    pub fn read(metadata: &Metadata<'_>) -> Result<Self> {
        let parameter = Parameter::Architecture;
        let missing = Error::new(Code::MissingKey, Place::File).values(0, u64::from(parameter.number()));
        let name = metadata.str(parameter.name())?.ok_or(missing)?;
        Self::from_name(name).ok_or(Error::new(Code::UnsupportedArchitecture, Place::File))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_families() {
        for (architecture, name) in Architecture::ALL.iter().zip(Architecture::SUPPORTED) {
            assert_eq!(Architecture::from_name(name), Some(*architecture));
        }
        assert_eq!(Architecture::ALL.len(), Architecture::SUPPORTED.len());
        assert_eq!(Architecture::from_name("LLAMA"), None);
        assert_eq!(Architecture::from_name("llama4"), None);
    }
}
