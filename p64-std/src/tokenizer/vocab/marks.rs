//! What tokens are by their text or by the model's name, where files do not say: ends of generation, marks of
//! fill-in-the-middle, tokens that take the white space beside them with them. The rules are llama.cpp's.

use p64_core::tokenizer::well_known::{ENDS, ENDS_IF_CONTROL};

use super::TokenType;
use crate::tokenizer::texts::Texts;

/// What precedes the text to fill in.
pub(super) const FIM_PRE: &[&str] = &[
    "<|fim_prefix|>",
    "<fim-prefix>",
    "<fim_prefix>",
    "<｜fim▁begin｜>",
    "<PRE>",
    "▁<PRE>",
    "<|code_prefix|>",
    "<|prefix|>",
];
/// What follows it.
pub(super) const FIM_SUF: &[&str] = &[
    "<|fim_suffix|>",
    "<fim-suffix>",
    "<fim_suffix>",
    "<｜fim▁hole｜>",
    "<SUF>",
    "▁<SUF>",
    "<|code_suffix|>",
    "<|suffix|>",
];
/// Where it goes.
pub(super) const FIM_MID: &[&str] = &[
    "<|fim_middle|>",
    "<fim-middle>",
    "<fim_middle>",
    "<｜fim▁end｜>",
    "<MID>",
    "▁<MID>",
    "<|code_middle|>",
    "<|middle|>",
];
/// Parts of gpt-oss's answers, which are shown.
const SHOWN: &[&str] = &["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

fn set(types: &mut [TokenType], id: u32, to: TokenType) {
    if let Some(kind) = usize::try_from(id).ok().and_then(|id| types.get_mut(id)) {
        *kind = to;
    }
}

/// Makes the first of `names` that is a token a control token. Some converters mark it as text; then it would be spelled out
/// and never matched in a prompt.
pub(super) fn mark_first(names: &[&str], texts: &Texts, types: &mut [TokenType]) {
    if let Some(id) = names.iter().find_map(|name| texts.find(name.as_bytes())) {
        set(types, id, TokenType::Control);
    }
}

/// Completes the tokens that end generation from those that the file states, and gives them the type of control tokens.
/// Ascending.
pub(super) fn mark_ends(texts: &Texts, types: &mut [TokenType], mut ends: Vec<u32>) -> Vec<u32> {
    let find = |name: &str| texts.find(name.as_bytes());
    for id in ENDS.iter().filter_map(|name| find(name)) {
        set(types, id, TokenType::Control);
        ends.push(id);
    }
    for id in SHOWN.iter().filter_map(|name| find(name)) {
        set(types, id, TokenType::UserDefined);
    }
    let is = |ends: &[u32], name: &str| find(name).is_some_and(|id| ends.contains(&id));
    // Where an answer has parts, the end of a part is not the end of the answer.
    let calls = is(&ends, "<|call|>") || is(&ends, "<|calls|>");
    if let Some(id) = find("<|end|>")
        && calls
        && (is(&ends, "<|return|>") || is(&ends, "<|flush|>"))
    {
        ends.retain(|&end| end != id);
        set(types, id, TokenType::UserDefined);
    }
    let plain = is(&ends, "<|tool_response>") || is(&ends, "<|plamo:eos|>");
    for id in ENDS_IF_CONTROL.iter().filter_map(|name| find(name)) {
        if plain {
            set(types, id, TokenType::Normal);
            ends.retain(|&end| end != id);
        } else if types.get(id as usize) == Some(&TokenType::Control) {
            ends.push(id);
        }
    }
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// Tokens that take the white space before or after them with them, ascending. GGUF has no key for it; it goes by names.
#[derive(Clone, Default, Debug)]
pub(in crate::tokenizer) struct Strips {
    pub(in crate::tokenizer) before: Vec<u32>,
    pub(in crate::tokenizer) after: Vec<u32>,
}

/// What says which tokens strip.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::tokenizer) struct Source<'a> {
    /// The pre-tokenizer is one whose `<mask>` strips.
    pub(super) mask: bool,
    /// `general.name`.
    pub(super) name: &'a str,
    /// `general.architecture`.
    pub(super) architecture: &'a str,
}

impl Strips {
    pub(super) fn find(source: &Source<'_>, texts: &Texts, types: &[TokenType]) -> Self {
        let name = source.name.to_ascii_lowercase();
        let find = |text: &str| texts.find(text.as_bytes());
        let mut strips = Self::default();
        if source.mask || ["nomic-bert-moe", "jina-bert-v3"].iter().any(|part| source.architecture.contains(part)) {
            strips.before.extend(find("<mask>"));
        } else if name.contains("phi-3") || name.contains("phi3") {
            let special =
                |kind: &TokenType| matches!(kind, TokenType::Control | TokenType::UserDefined | TokenType::Unknown);
            strips.after = (0..).zip(types).filter(|(_, kind)| special(kind)).map(|(id, _)| id).collect();
            strips.after.extend(find("</s>"));
            let others = ["<unk>", "<s>", "<|endoftext|>"].map(find);
            strips.after.retain(|&id| !others.contains(&Some(id)));
            strips.after.sort_unstable();
            strips.after.dedup();
        } else if name.contains("modern-bert") {
            strips.before.extend(find("[MASK]"));
        }
        strips
    }
}
