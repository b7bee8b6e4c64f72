use super::*;
use crate::tokenizer::tests::{Area, bpe, spm};

const P: &str = "tokenizer.ggml.";

fn key(name: &str) -> String {
    format!("{P}{name}")
}

/// A small BPE area without one key's worth of content, for the errors.
fn area(tokens: &[&str]) -> Area {
    Area::default()
        .str(&key("model"), "gpt2")
        .str(&key("pre"), "gpt-2")
        .strings(&key("tokens"), tokens)
        .strings(&key("merges"), &["a b"])
}

fn error(area: &Area) -> String {
    area.build().unwrap_err().to_string()
}

#[test]
fn defaults_are_those_of_the_model() {
    let spm = spm(&[]).build().unwrap();
    let v = spm.vocabulary();
    assert_eq!((v.bos(), v.eos(), v.unknown(), v.eot(), v.padding()), (Some(1), Some(2), Some(0), None, None));
    assert!(v.add_bos() && !v.add_eos() && v.add_space_prefix);
    // Eleven tokens: BPE's default id 11 is out of reach and counts as absent.
    let tokens: Vec<String> = (0..11).map(|i| format!("t{i}")).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let small = area(&tokens).build().unwrap();
    assert_eq!((small.bos(), small.eos(), small.vocabulary().unknown()), (None, None, None));
    let bpe = area(&[&tokens[..], &["x"]].concat()).build().unwrap();
    assert_eq!((bpe.bos(), bpe.eos(), bpe.vocabulary().add_bos()), (Some(11), Some(11), false));
}

#[test]
fn errors_name_the_key() {
    let two = area(&["a", "b"]);
    let cases = [
        (Area::default(), "tokenizer.ggml.model is missing: it says how text becomes tokens"),
        (
            Area::default().str(&key("model"), "bart"),
            "tokenizer.ggml.model is \"bart\", this build has gpt2, gemma4, hybriddna, whitespace (byte-pair encoding), \
             llama (SPM), bert (WordPiece), t5 (unigram), rwkv, plamo2",
        ),
        (Area::default().u32(&key("model"), 1), "tokenizer.ggml.model is of type u32, it must be UTF-8 text"),
        (Area::default().str(&key("model"), "llama"), "tokenizer.ggml.tokens is missing: it is the vocabulary"),
        (
            Area::default().str(&key("model"), "llama").strings(&key("tokens"), &["a", "b"]),
            "tokenizer.ggml.scores is missing: the model chooses tokens by score",
        ),
        (area(&[]), "tokenizer.ggml.tokens, element 0: the vocabulary has no token"),
        (
            two.clone().i32s(&key("token_type"), &[1, 1, 1]),
            "tokenizer.ggml.token_type has 3 elements, tokenizer.ggml.tokens has 2",
        ),
        (
            two.clone().f32s(&key("token_type"), &[1.0, 1.0]),
            "tokenizer.ggml.token_type is of type f32, it must be an array of i32",
        ),
        (two.clone().u32(&key("eos_token_id"), 2), "tokenizer.ggml.eos_token_id is 2, the vocabulary has 2 tokens"),
        (
            two.clone().str(&key("bos_token_id"), "0"),
            "tokenizer.ggml.bos_token_id is of type string, it must be an unsigned integer",
        ),
        (
            two.clone().bool(&key("add_bos_token"), true),
            "tokenizer.ggml.add_bos_token is true, but tokenizer.ggml.bos_token_id is not set",
        ),
        (
            two.clone().bool(&key("add_eos_token"), true),
            "tokenizer.ggml.add_eos_token is true, but tokenizer.ggml.eos_token_id is not set",
        ),
        (
            two.clone().i32s(&key("token_type"), &[1, 6]),
            "tokenizer.ggml.tokens, element 1: the token is of type byte but its text is not <0xNN>",
        ),
        (spm(&[("x", f32::NAN)]), "tokenizer.ggml.scores, element 259: the score is not a number"),
        (bpe("gpt-2", &["ab"]), "tokenizer.ggml.merges, element 0: not two texts with a space between"),
        (
            area(&["a", &"x".repeat(70_000)]),
            "tokenizer.ggml.tokens: the longest token's length is 70000, the limit is 65535",
        ),
    ];
    for (area, text) in cases {
        assert_eq!(error(&area), text);
    }
    let scores = Area::default().str(&key("model"), "llama").strings(&key("tokens"), &["a", "b"]);
    let text = error(&scores.f32s(&key("scores"), &[0.0]));
    assert_eq!(text, "tokenizer.ggml.scores has 1 elements, tokenizer.ggml.tokens has 2");
    let no_merges =
        Area::default().str(&key("model"), "gpt2").str(&key("pre"), "gpt-2").strings(&key("tokens"), &["a"]);
    assert_eq!(error(&no_merges), "tokenizer.ggml.merges is missing: byte-pair encoding merges by it");
    let no_pre = Area::default().str(&key("model"), "gpt2").strings(&key("tokens"), &["a"]);
    assert!(error(&no_pre).starts_with("tokenizer.ggml.pre is missing: "));
}

/// What stands in no test vocabulary: each model's own needs.
#[test]
fn what_other_models_need() {
    let of = |model: &str| Area::default().str(&key("model"), model).strings(&key("tokens"), &["a", "b"]);
    let cases = [
        (of("bert"), "tokenizer.ggml.add_bos_token is true, but tokenizer.ggml.bos_token_id is not set"),
        (
            of("bert").u32(&key("bos_token_id"), 0),
            "tokenizer.ggml.seperator_token_id is missing: WordPiece puts it after a text",
        ),
        (
            of("bert").u32(&key("bos_token_id"), 0).u32(&key("seperator_token_id"), 0),
            "tokenizer.ggml.unknown_token_id is missing: WordPiece writes it for words that it cannot spell",
        ),
        (of("t5"), "tokenizer.ggml.scores is missing: the model chooses tokens by score"),
        (
            of("t5").f32s(&key("scores"), &[0.0, 0.0]),
            "tokenizer.ggml.unknown_token_id is missing: the unigram model writes it for what it cannot spell",
        ),
        (
            of("plamo2").f32s(&key("scores"), &[0.0, 0.0]),
            "tokenizer.ggml.tokens is missing: the vocabulary lacks one of the 256 tokens <0xNN> of type byte",
        ),
        (of("gemma4"), "tokenizer.ggml.add_bos_token is true, but tokenizer.ggml.bos_token_id is not set"),
    ];
    for (area, text) in cases {
        assert_eq!(error(&area), text);
    }
    // Kimi-K2 alone goes without merges.
    assert!(of("gpt2").str(&key("pre"), "kimi-k2").build().is_ok());
    // The pre-tokenizer of gemma4 adds BOS whatever the file says.
    let stubborn = of("gemma4").u32(&key("bos_token_id"), 1).bool(&key("add_bos_token"), false);
    let stubborn = stubborn.strings(&key("merges"), &["a b"]).build().unwrap();
    assert_eq!(stubborn.encode(b"b", true, false), [1, 1]);
}

#[test]
fn parts_of_an_answer_do_not_end_it() {
    let texts = ["<|end|>", "<|return|>", "<|call|>", "<|channel|>", "</s>", "<|tool_response>"];
    let harmony = area(&texts).i32s(&key("token_type"), &[3, 3, 3, 3, 3, 3]).build().unwrap();
    assert_eq!(harmony.vocabulary().end_of_generation(), [1, 2, 5]);
    let types: Vec<_> = (0..6).map(|id| harmony.vocabulary().token_type(id).unwrap()).collect();
    use TokenType::{Control, Normal, UserDefined};
    assert_eq!(types, [UserDefined, Control, Control, UserDefined, Normal, Control]);
}

#[test]
fn tokens_that_strip_go_by_names() {
    let texts = ["<mask>", "[MASK]", "<s>", "</s>", "<|x|>", "a"];
    let strips = |pre: &str, name: &str, architecture: &str| {
        let area = Area::default()
            .str(&key("model"), "gpt2")
            .str(&key("pre"), pre)
            .str("general.name", name)
            .str("general.architecture", architecture)
            .strings(&key("tokens"), &texts)
            .i32s(&key("token_type"), &[3, 3, 3, 3, 4, 1])
            .strings(&key("merges"), &["a b"]);
        let Strips { before, after } = area.build().unwrap().vocabulary().strips.clone();
        (before, after)
    };
    assert_eq!(strips("gpt-2", "x", "y"), (vec![], vec![]));
    assert_eq!(strips("jina-v2-es", "x", "y"), (vec![0], vec![]));
    assert_eq!(strips("gpt-2", "x", "nomic-bert-moe"), (vec![0], vec![]));
    assert_eq!(strips("gpt-2", "My-Modern-BERT", "y"), (vec![1], vec![]));
    assert_eq!(strips("gpt-2", "Phi-3 mini", "y"), (vec![], vec![0, 1, 3, 4]));
}

#[test]
fn ends_of_generation_by_text() {
    let texts = ["x", "<|im_end|>", "</s>", "<end_of_turn>", "<|eot|>"];
    // The file calls them all normal text.
    let plain = area(&texts).u32(&key("eot_token_id"), 4).build().unwrap();
    assert_eq!(plain.vocabulary().end_of_generation(), [1, 3, 4]);
    assert_eq!(plain.vocabulary().token_type(1), Some(TokenType::Control));
    assert_eq!(plain.vocabulary().token_type(2), Some(TokenType::Normal));
    let control = area(&texts).i32s(&key("token_type"), &[1, 4, 3, 3, 1]).build().unwrap();
    assert_eq!(control.vocabulary().end_of_generation(), [1, 2, 3]);
}

#[test]
fn byte_tokens_are_two_hexadecimal_digits() {
    assert_eq!(
        [&b"<0x0A>"[..], b"<0xff>", b"<0xF>", b"<0x+1>", b"0x0A", b""].map(parse_byte),
        [Some(10), Some(255), None, None, None, None]
    );
}

/// Names come from the file: a message stays one short line whatever they hold.
#[test]
fn names_in_messages_are_one_short_line() {
    let long = format!("a\nb\u{1b}[2J{}", "x".repeat(1_000_000));
    let model = Area::default().str(&key("model"), &long);
    let pre = Area::default().str(&key("model"), "gpt2").str(&key("pre"), &long);
    for message in [error(&model), error(&pre)] {
        assert!(message.len() < 4000 && !message.contains(char::is_control), "{message:?}");
    }
}
