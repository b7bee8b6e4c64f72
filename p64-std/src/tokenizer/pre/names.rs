//! The names of pre-tokenizers and what comes with each: llama.cpp's of the commit that the goldens are from.

use super::patterns::{self as p, Step};

/// Pre-tokenizers that differ in name alone.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) names: &'static [&'static str],
    pub(super) steps: &'static [Step],
    pub(super) ignores_merges: bool,
    pub(super) adds_bos: bool,
    pub(super) always_adds_bos: bool,
    pub(super) has_default_bos: bool,
    pub(super) cleans_spaces: bool,
    pub(super) strips_before_mask: bool,
    pub(super) keeps_line_breaks: bool,
    pub(super) units: Units,
}

/// The symbols that merging begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tokenizer) enum Units {
    /// Bytes, in GPT-2's alphabet of bytes.
    Bytes,
    /// Characters; those that are no token are written as `<0xNN>`.
    Characters,
    /// The same, and a space is written as U+2581, as in SPM.
    CharactersAndSpaces,
}

const fn row(names: &'static [&'static str], steps: &'static [Step]) -> Row {
    Row {
        names,
        steps,
        ignores_merges: false,
        adds_bos: false,
        always_adds_bos: false,
        has_default_bos: true,
        cleans_spaces: true,
        strips_before_mask: false,
        keeps_line_breaks: false,
        units: Units::Bytes,
    }
}

impl Row {
    const fn whole_words(mut self) -> Self {
        self.ignores_merges = true;
        self
    }

    const fn bos(mut self) -> Self {
        self.adds_bos = true;
        self
    }

    const fn no_bos(mut self) -> Self {
        self.has_default_bos = false;
        self
    }

    /// Detokenised text stays as it is.
    const fn uncleaned(mut self) -> Self {
        self.cleans_spaces = false;
        self
    }

    const fn mask(mut self) -> Self {
        self.strips_before_mask = true;
        self
    }

    const fn units(mut self, units: Units) -> Self {
        self.units = units;
        self
    }

    const fn gemma4(mut self) -> Self {
        self.always_adds_bos = true;
        self.keeps_line_breaks = true;
        self
    }
}

/// Every name that this build knows. `docs/tokenizers.md` is checked against it.
pub(super) const ROWS: &[Row] = &[
    row(&["default"], p::DEFAULT),
    row(
        &[
            "gpt-2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "exaone4",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "jina-es",
            "jina-de",
            "jina-v1-en",
            "roberta-bpe",
        ],
        p::GPT2,
    ),
    row(&["jina-v2-es", "jina-v2-de", "jina-v2-code"], p::GPT2).mask(),
    row(&["trillion", "granite-docling"], p::GPT2).uncleaned(),
    row(&["starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"], p::SMOLLM),
    row(&["smollm", "command-r"], p::SMOLLM).uncleaned(),
    row(&["falcon"], p::FALCON),
    row(
        &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"],
        p::LLAMA3,
    )
    .whole_words()
    .bos(),
    row(&["dbrx", "smaug-bpe"], p::LLAMA3),
    row(&["chatglm-bpe"], p::LLAMA3).no_bos(),
    row(&["glm4", "glm5"], p::LLAMA3).no_bos().whole_words(),
    row(&["jais-2"], p::JAIS2),
    row(&["stablelm2", "megrez"], p::QWEN2),
    row(&["qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "hunyuan", "solar-open", "grok-2"], p::QWEN2).uncleaned(),
    row(&["qwen35"], p::QWEN35).uncleaned(),
    row(&["laguna"], p::LAGUNA).uncleaned(),
    row(&["ufakzeka"], p::UFAKZEKA).uncleaned(),
    row(&["minicpm5"], p::MINICPM5).whole_words(),
    row(&["bailingmoe", "bailingmoe2", "llada-moe"], p::BAILING).uncleaned(),
    row(&["seed-coder"], p::SEED_CODER).uncleaned(),
    row(&["exaone-moe"], p::EXAONE_MOE),
    row(&["tekken"], p::TEKKEN).uncleaned().whole_words().bos(),
    row(&["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"], p::GPT4O).uncleaned(),
    row(&["granite-embed-multi-97m"], p::GRANITE_EMBEDDING).uncleaned().whole_words(),
    row(&["tiny_aya", "cohere2moe"], p::TINY_AYA).uncleaned(),
    row(&["youtu"], p::YOUTU).uncleaned().whole_words(),
    row(&["deepseek-llm"], p::DEEPSEEK_LLM).uncleaned(),
    row(&["deepseek-coder"], p::DEEPSEEK_CODER).uncleaned(),
    row(&["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"], p::DEEPSEEK3).uncleaned(),
    row(&["spark2_5"], p::SPARK).uncleaned(),
    row(&["afmoe"], p::AFMOE).uncleaned(),
    row(&["kimi-k2"], p::KIMI).uncleaned(),
    row(&["bloom", "gpt3-finnish"], p::BLOOM),
    row(&["poro-chat"], p::BLOOM).uncleaned(),
    row(&["viking"], p::VIKING).uncleaned(),
    row(&["chameleon"], p::CHAMELEON).uncleaned().bos(),
    row(&["superbpe"], p::SUPERBPE).uncleaned(),
    row(&["gemma4", "granite-embed-multi-311m"], p::WHOLE_LINES).units(Units::CharactersAndSpaces).gemma4(),
    row(&["sarvam-moe"], p::WHOLE_LINES).units(Units::CharactersAndSpaces).uncleaned(),
    row(&["whitespace"], p::WHITESPACE).units(Units::Characters),
];
