//! Model families: what differs between them, as data.
//!
//! The forward pass never asks which family it runs; it asks a [`Family`] for a pairing, a scale, a norm that is there or
//! not. A family is added by describing it in one of the files below and giving it a name here.
#![forbid(unsafe_code)]

mod family;
mod gemma;
mod llama;

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

            /// What the family does.
            #[must_use]
            pub const fn family(self) -> &'static Family {
                match self { $(Self::$variant => &$family,)* }
            }
        }
    };
}

architectures! {
    /// LLaMA and what shares its graph: Mistral, SmolLM2, TinyLlama, ...
    Llama = "llama", llama::LLAMA;
    /// Gemma 3, text part.
    Gemma3 = "gemma3", gemma::GEMMA3;
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
