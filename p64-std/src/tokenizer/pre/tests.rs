use super::*;

fn words<'t>(pre: &str, text: &'t str) -> Vec<&'t str> {
    let mut words = Vec::new();
    Pre::from_name(pre).unwrap().split(text, &mut |word| words.push(word));
    words
}

/// Expected words by hand from the published patterns.
#[test]
fn splits_as_the_patterns_say() {
    let text = "I'm HE'LL  be\n\n there,ok?! 1234 \t";
    let gpt2 = ["I", "'m", " HE", "'", "LL", " ", " be", "\n\n", " there", ",", "ok", "?!", " 1234", " \t"];
    assert_eq!(words("gpt-2", text), gpt2);
    let smollm =
        ["I", "'m", " HE", "'", "LL", " ", " be", "\n\n", " there", ",", "ok", "?!", " ", "1", "2", "3", "4", " \t"];
    assert_eq!(words("smollm", text), smollm);
    let llama = ["I", "'m", " HE", "'LL", " ", " be", "\n\n", " there", ",ok", "?!", " ", "123", "4", " \t"];
    assert_eq!(words("llama-bpe", text), llama);
    let qwen = ["I", "'m", " HE", "'LL", " ", " be", "\n\n", " there", ",ok", "?!", " ", "1", "2", "3", "4", " \t"];
    assert_eq!(words("qwen2", text), qwen);
    let default =
        ["I", "'", "m", " HE", "'", "LL", " ", " be", "\n\n", " there", ",", "ok", "?!", " ", "123", "4", " \t"];
    assert_eq!(words("default", text), default);
}

/// `\s+(?!\S)`: all but the last of a run before a word, all of it at the end.
#[test]
fn runs_of_white_space_give_back_their_last_character() {
    assert_eq!(words("gpt-2", "a   b"), ["a", "  ", " b"]);
    assert_eq!(words("gpt-2", "a\n\n\nb"), ["a", "\n\n", "\n", "b"]);
    assert_eq!(words("gpt-2", "a \u{3000}\u{3000}b"), ["a", " \u{3000}", "\u{3000}", "b"]);
    assert_eq!(words("gpt-2", "a   "), ["a", "   "]);
    // Line breaks are kept whole where `\s*[\r\n]+` comes first.
    assert_eq!(words("llama-bpe", "a \n\n  b"), ["a", " \n\n", " ", " b"]);
    assert_eq!(words("llama-bpe", "!\n\nb"), ["!\n\n", "b"]);
    // The end of a piece that an earlier pattern left is an end.
    assert_eq!(words("smollm", "a  1"), ["a", "  ", "1"]);
}

#[test]
fn marks_stay_with_their_letters_in_qwen35_only() {
    assert_eq!(words("qwen35", "e\u{301}a"), ["e\u{301}a"]);
    assert_eq!(words("qwen2", "e\u{301}a"), ["e", "\u{301}a"]);
}

#[test]
fn every_name_splits_and_unknown_names_are_refused() {
    for name in NAMES.iter().flat_map(|(_, names)| *names) {
        assert_eq!(words(name, "Hello, 世界 12!  \n").concat(), "Hello, 世界 12!  \n", "{name}");
        assert!(words(name, "").is_empty());
    }
    let error = Pre::from_name("tekken").unwrap_err().to_string();
    assert!(error.starts_with("tokenizer.ggml.pre is \"tekken\", this build has default, gpt-2, "), "{error}");
    assert!(error.contains("smollm") && error.contains("llama-bpe") && error.contains("qwen2"), "{error}");
}
