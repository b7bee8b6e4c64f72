//! What is known by name: pre-tokenizers that split alike, and tokens whose text ends generation. GGUF names at most three
//! such tokens by key, and files often name one; llama.cpp fills the rest in by text (ggml-org/llama.cpp#9606), and so do we.

/// Ends of a turn, a message or a text, whatever type the file gives them.
pub const ENDS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    // Fill-in-the-middle: padding, repository, file separator.
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
];

/// Ends only where the file says that they are control tokens: elsewhere this is the closing tag of struck-out text
/// (Gemma's token 212 is user-defined).
pub const ENDS_IF_CONTROL: &[&str] = &["</s>"];

/// Names of pre-tokenizers with GPT-2's pattern (`tokenizer.ggml.pre`), without those of models whose mask token takes the
/// space before it with it.
pub const GPT2_PRE: &[&str] = &[
    "gpt-2",
    "phi-2",
    "mpt",
    "olmo",
    "jais",
    "trillion",
    "granite-docling",
    "exaone4",
    "gigachat",
    "a.x-4.0",
    "mellum",
    "jina-es",
    "jina-de",
    "jina-v1-en",
    "roberta-bpe",
];

/// Names of pre-tokenizers that take every digit for itself first.
pub const SMOLLM_PRE: &[&str] =
    &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"];
