//! What llama.cpp takes for keys that a file lacks, per tokenizer model. Nothing is invented beyond that.
//!
//! | `tokenizer.ggml.model` | BOS | EOS | unknown | separator | padding | adds BOS | adds EOS | space prefix |
//! |---|---|---|---|---|---|---|---|---|
//! | `llama` | 1 | 2 | 0 | | | yes | no | yes |
//! | `gpt2`, `hybriddna`, `whitespace` | 11 | 11 | | | | as the pre-tokenizer says | no | never |
//! | `gemma4` | | | | | | always | no | never |
//! | `bert` | 101 | | 100 | 102 | 0 | always, and the separator after the text | no | never |
//! | `t5` | | 1 | 2 | | 0 | no | yes | no |
//! | `rwkv` | | | | | | never | never | never |
//! | `plamo2` | 1 | 2 | 0 | | 3 | never | never | never |

use super::pre::Pre;

/// Special tokens and flags of a tokenizer model whose file does not state them.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Defaults {
    /// The token that begins a sequence.
    pub(crate) bos: Option<u32>,
    /// The token that ends a sequence.
    pub(crate) eos: Option<u32>,
    pub(super) unknown: Option<u32>,
    pub(super) separator: Option<u32>,
    pub(super) padding: Option<u32>,
    add_bos: bool,
    always_add_bos: bool,
    pub(super) add_eos: bool,
    pub(super) space_prefix: bool,
}

impl Defaults {
    /// The defaults of a model, by its name and its pre-tokenizer; of an unknown one, none.
    pub(crate) fn of(model: &str, pre: Option<Pre>) -> Self {
        let none = Self::default();
        match model {
            "llama" => Self { bos: Some(1), eos: Some(2), unknown: Some(0), add_bos: true, space_prefix: true, ..none },
            "gpt2" | "hybriddna" | "whitespace" => Self {
                bos: Some(11).filter(|_| pre.is_none_or(Pre::has_default_bos)),
                eos: Some(11),
                add_bos: pre.is_some_and(Pre::adds_bos),
                always_add_bos: pre.is_some_and(Pre::always_adds_bos),
                ..none
            },
            "gemma4" => Self { always_add_bos: true, ..none },
            "bert" => Self {
                bos: Some(101),
                unknown: Some(100),
                separator: Some(102),
                padding: Some(0),
                add_bos: true,
                ..none
            },
            "t5" => Self { eos: Some(1), unknown: Some(2), padding: Some(0), add_eos: true, ..none },
            "plamo2" => Self { bos: Some(1), eos: Some(2), unknown: Some(0), padding: Some(3), ..none },
            _ => none,
        }
    }

    /// Whether BOS goes before a text, given what the file says.
    pub(crate) fn adds_bos(self, stated: Option<bool>) -> bool {
        self.always_add_bos || stated.unwrap_or(self.add_bos)
    }
}
