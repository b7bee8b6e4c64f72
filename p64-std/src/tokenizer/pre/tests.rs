use super::*;

fn words<'t>(pre: &str, text: &'t str) -> Vec<&'t str> {
    let mut words = Vec::new();
    Pre::from_name(pre).unwrap().splitter().split(text, &mut |word| words.push(word));
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

/// The patterns that are code, against themselves run by `regex`: on every pair of characters of each kind in context, and on
/// texts drawn from those.
mod code_is_the_pattern {
    use super::super::patterns::{Spaces, Step, Words};
    use super::super::stage::{Stage, split};
    use super::super::words::{GPT2, LLAMA3, NUMBER, QWEN2};
    use proptest::prelude::*;

    const PARTS: &[&str] = &[
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "\u{a0}",
        "\u{3000}",
        "\u{85}",
        "\u{1c}",
        "'",
        "'s",
        "'S",
        "'ll",
        "'lL",
        "'re",
        "'v",
        "'D",
        "s",
        "e",
        "l",
        "Ab",
        "\u{e9}",
        "\u{4e16}",
        "\u{301}",
        "\u{e01}",
        "1",
        "23",
        "\u{bd}",
        "\u{664}",
        "!",
        "-",
        "\u{20ac}",
        "\u{1f600}",
        "_",
        "\u{17f}",
        "\u{212a}",
        "\u{fffd}",
        "\u{10ffff}",
        "\u{200b}",
    ];

    fn words(step: &Step, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        split(&[Stage::compile(step)], text, &mut |word| words.push(word.to_owned()));
        words
    }

    fn agrees(text: &str) {
        for (code, pattern, spaces) in [
            (Words::Gpt2, GPT2, Spaces::LastGoesOn),
            (Words::Number, NUMBER, Spaces::Kept),
            (Words::Llama3, LLAMA3, Spaces::LastGoesOnUnlessLineBreak),
            (Words::Qwen2, QWEN2, Spaces::LastGoesOnUnlessLineBreak),
            (Words::Lines, r"[^\n]+|\n+", Spaces::Kept),
        ] {
            let [code, pattern] = [Step::Words(code), Step::Pattern(pattern, spaces)].map(|step| words(&step, text));
            assert_eq!(code, pattern, "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn on_drawn_texts(parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..40)) {
            agrees(&parts.concat());
        }
    }
}

#[test]
fn marks_stay_with_their_letters_in_qwen35_only() {
    assert_eq!(words("qwen35", "e\u{301}a"), ["e\u{301}a"]);
    assert_eq!(words("qwen2", "e\u{301}a"), ["e", "\u{301}a"]);
}

/// `\s{512}(?!\S)|...|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`.
#[test]
fn jais_cuts_white_space_by_powers_of_two() {
    let lengths = |text: &str| words("jais-2", text).iter().map(|word| word.len()).collect::<Vec<_>>();
    assert_eq!(lengths(&" ".repeat(1031)), [512, 512, 4, 2, 1]);
    assert_eq!(lengths(&(" ".repeat(10) + "x")), [8, 1, 2]);
    assert_eq!(lengths(" x"), [2]);
    assert_eq!(lengths("  1"), [1, 1, 1]);
    assert_eq!(words("jais-2", "a  \n  b"), ["a", "  \n", " ", " b"]);
}

#[test]
fn digits_are_grouped_from_the_right() {
    assert_eq!(words("superbpe", "x1234567y12"), ["x", "1", "234", "567", "y", "12"]);
    assert_eq!(words("superbpe", "123456"), ["123", "456"]);
    // The digits before the first full group stay with what is before them, until a later step parts the two.
    assert_eq!(words("tiny_aya", "ab1234 567"), ["ab", "1", "234", " ", "567"]);
    assert_eq!(words("afmoe", "１２３４"), ["１", "２３４"]);
}

#[test]
fn case_may_change_once() {
    assert_eq!(words("tekken", "fooBar BAZqux's"), ["foo", "Bar", " BAZqux", "'s"]);
    assert_eq!(words("gpt-4o", "fooBar BAZqux's"), ["foo", "Bar", " BAZqux's"]);
}

#[test]
fn every_name_splits_and_unknown_names_are_refused() {
    let text = "Hello, 世界 12!  \n ไทย \u{3000}'LL IMGIMGAZ <dna> 1234567 \r\n\n\u{301}a";
    for name in Pre::names() {
        assert_eq!(words(name, text).concat(), text, "{name}");
        assert!(words(name, text).iter().all(|word| !word.is_empty()), "{name}");
        assert!(words(name, "").is_empty());
    }
    let error = Pre::from_name("tikken").unwrap_err().to_string();
    assert!(error.starts_with("tokenizer.ggml.pre is \"tikken\", this build has default, gpt-2, "), "{error}");
    assert!(error.contains("smollm") && error.contains("llama-bpe") && error.contains("tekken"), "{error}");
}

#[test]
fn no_name_stands_twice() {
    let mut names: Vec<&str> = Pre::names().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), count), (91, 91));
}

/// The tokenizer without allocation splits alike where it knows a name.
#[test]
fn the_cores_names_have_the_same_steps() {
    use p64_core::tokenizer::well_known::{GPT2_PRE, SMOLLM_PRE};
    for (names, steps) in [(GPT2_PRE, patterns::GPT2), (SMOLLM_PRE, patterns::SMOLLM)] {
        for name in names {
            let Pre(row) = Pre::from_name(name).unwrap();
            assert_eq!(format!("{:?}", row.steps), format!("{steps:?}"), "{name}");
            assert!(!row.ignores_merges && !row.adds_bos && row.has_default_bos && !row.strips_before_mask, "{name}");
        }
    }
}

/// The table of `docs/tokenizers.md` is written from the table of names (`P64_BLESS=1`).
#[test]
fn the_document_lists_every_name() {
    let mut table =
        String::from("| `tokenizer.ggml.pre` | steps | whole words | BOS | clean-up |\n|---|---:|---|---|---|\n");
    for row in names::ROWS {
        let names: Vec<String> = row.names.iter().map(|name| format!("`{name}`")).collect();
        let bos = match (row.always_adds_bos, row.adds_bos, row.has_default_bos) {
            (true, ..) => "always",
            (_, true, _) => "yes",
            (_, _, true) => "no",
            _ => "no, and no default id",
        };
        let yes = |flag| if flag { "yes" } else { "no" };
        let (whole, clean) = (yes(row.ignores_merges), yes(row.cleans_spaces));
        table += &format!("| {} | {} | {whole} | {bos} | {clean} |\n", names.join(", "), row.steps.len());
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tokenizers.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once("<!-- pre-tokenizers -->\n").unwrap();
    let (block, after) = rest.split_once("<!-- end -->").unwrap();
    if std::env::var_os("P64_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(path, format!("{before}<!-- pre-tokenizers -->\n{table}<!-- end -->{after}")).unwrap();
    } else {
        assert!(block == table, "the table of docs/tokenizers.md is stale: run with P64_BLESS=1");
    }
}
