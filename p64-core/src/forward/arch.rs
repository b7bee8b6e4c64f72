//! Model families: what differs between them, as data.
//!
//! The forward pass never asks which family it runs; it asks a [`Family`] for a pairing, a scale, a norm that is there or
//! not. A family is added by describing it in one of the files below and giving it a name here.
//!
//! Without the feature `all-families` the list is short. Nothing else asks for the feature to leave out what only other
//! families do: where all in the list do the same, [`Architecture::family`] is a constant to the compiler.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "all-families"),
    allow(dead_code, reason = "the descriptions of families that are not listed")
)]

mod cohere;
mod family;
mod gemma;
mod layernorm;
mod llama;
mod olmo;
mod phi;
mod qwen;

pub use family::{
    AttentionScale, Biases, Block, EmbeddingScale, Family, FeedForwardKind, Gate, HeadNorms, LocalLayers, LocalRope,
    LogitScale, LongRope, NormKind, Positions, Presence, Routing, SharedExperts, Softcap, Window,
};

use super::parameter::Parameter;
use crate::error::{Code, Error, Place, Result};
use crate::metadata::Metadata;

macro_rules! architectures {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $family:path;)*) => {
        /// A family this build runs, by the name that stands in `general.architecture`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum Architecture { $($(#[$doc])* $variant,)* }

        impl Architecture {
            /// Every family this build runs.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Their names, for messages.
            pub const SUPPORTED: &'static [&'static str] = &[$($name,)*];

            /// The name in `general.architecture`, which also begins the family's metadata keys.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What the family does. By value, so that a place in which the families of a build do not differ is a
            /// constant where this is called; functions are therefore given the architecture.
            #[must_use]
            #[inline(always)]
            pub const fn family(self) -> Family {
                match self { $(Self::$variant => $family,)* }
            }
        }
    };
}

/// Whether this build also runs what a file of any family may ask for and those of llama and gemma3 hardly ever do: YaRN,
/// divisors of frequencies by the length of the context, fused projections, a window's pattern as a list. What only other
/// families do needs no such question.
pub(super) const ALL_FAMILIES: bool = cfg!(feature = "all-families");

#[cfg(not(feature = "all-families"))]
architectures! {
    /// LLaMA and what shares its graph: Mistral, SmolLM2, TinyLlama, ...
    Llama = "llama", llama::LLAMA_DENSE;
    /// Gemma 3, text part.
    Gemma3 = "gemma3", gemma::GEMMA3;
}

#[cfg(feature = "all-families")]
architectures! {
    /// LLaMA and what shares its graph: Mistral, SmolLM2, TinyLlama, ..., and Mixtral with experts.
    Llama = "llama", llama::LLAMA;
    /// SmolLM3.
    SmolLm3 = "smollm3", llama::SMOLLM3;
    /// Qwen2 and Qwen2.5.
    Qwen2 = "qwen2", qwen::QWEN2;
    /// Qwen3.
    Qwen3 = "qwen3", qwen::QWEN3;
    /// Qwen1.5 and Qwen2 with experts.
    Qwen2Moe = "qwen2moe", qwen::QWEN2_MOE;
    /// Qwen3 with experts.
    Qwen3Moe = "qwen3moe", qwen::QWEN3_MOE;
    /// Gemma.
    Gemma = "gemma", gemma::GEMMA;
    /// Gemma 2.
    Gemma2 = "gemma2", gemma::GEMMA2;
    /// Gemma 3, text part.
    Gemma3 = "gemma3", gemma::GEMMA3;
    /// Phi-3, Phi-3.5 and Phi-4.
    Phi3 = "phi3", phi::PHI3;
    /// Granite 3.
    Granite = "granite", llama::GRANITE;
    /// Granite 3 with experts.
    GraniteMoe = "granitemoe", llama::GRANITE_MOE;
    /// OLMo 2 and 3.
    Olmo2 = "olmo2", olmo::OLMO2;
    /// StableLM 3B and StableLM 2.
    StableLm = "stablelm", layernorm::STABLELM;
    /// GPT-2.
    Gpt2 = "gpt2", layernorm::GPT2;
    /// BitNet b1.58.
    BitNet = "bitnet", llama::BITNET;
    /// Command R.
    CommandR = "command-r", cohere::COMMAND_R;
    /// Command R7B.
    Cohere2 = "cohere2", cohere::COHERE2;
}

impl Architecture {
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
