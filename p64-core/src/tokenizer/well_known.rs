//! Tokens known by their text to end generation. GGUF names at most three such tokens by key, and files often name one;
//! llama.cpp fills the rest in by text (ggml-org/llama.cpp#9606), and so do we.

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
