use proptest::prelude::*;

use super::*;
use crate::tokenizer::Merging;
use crate::tokenizer::tests::{Area, spm};

fn pieces(pieces: &[(&str, f32)], text: &[u8]) -> Vec<String> {
    let tokenizer = spm(pieces).bool("tokenizer.ggml.add_space_prefix", false).build().unwrap();
    let ids = tokenizer.encode(text, false, false);
    ids.iter().map(|&id| String::from_utf8(tokenizer.token_text(id).unwrap().to_vec()).unwrap()).collect()
}

#[test]
fn the_highest_score_joins_first_and_of_equals_the_leftmost() {
    assert_eq!(pieces(&[("ab", -2.0), ("bc", -1.0)], b"abc"), ["<0x61>", "bc"]);
    assert_eq!(pieces(&[("ab", -1.0), ("bc", -1.0)], b"abc"), ["ab", "<0x63>"]);
    assert_eq!(pieces(&[("ab", 0.0), ("bc", -0.0)], b"abc"), ["ab", "<0x63>"]);
    assert_eq!(pieces(&[("aa", -1.0), ("aaaa", -2.0)], b"aaaaa"), ["aaaa", "<0x61>"]);
    assert_eq!(pieces(&[("ab", -1.0), ("abc", f32::NEG_INFINITY)], b"abc"), ["abc"]);
    // A longer token without a way of pairs to it is not reached.
    assert_eq!(pieces(&[("abc", -1.0)], b"abc"), ["<0x61>", "<0x62>", "<0x63>"]);
}

#[test]
fn characters_without_a_token_are_bytes() {
    assert_eq!(pieces(&[("ä", -1.0)], "äö".as_bytes()), ["ä", "<0xC3>", "<0xB6>"]);
    assert_eq!(pieces(&[("▁", -1.0)], b" \n"), ["▁", "<0x0A>"]);
    // Ill-formed: a first byte takes what follows into its character.
    assert_eq!(pieces(&[("b", -1.0)], b"\x80b\xe2b"), ["<0x80>", "b", "<0xE2>", "<0x62>"]);
}

#[test]
fn without_byte_tokens_the_unknown_token_stands_in() {
    let area = Area::default()
        .str("tokenizer.ggml.model", "llama")
        .strings("tokenizer.ggml.tokens", &["<unk>", "a", "b"])
        .f32s("tokenizer.ggml.scores", &[0.0; 3])
        .bool("tokenizer.ggml.add_bos_token", false)
        .bool("tokenizer.ggml.add_space_prefix", false);
    assert_eq!(area.build().unwrap().encode("aöb".as_bytes(), false, false), [1, 0, 0, 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// Tokens that reach across a space, spaces in a row, and joins of equal score on both sides of a cut.
    #[test]
    fn a_text_in_parts_has_the_same_tokens(
        parts in proptest::collection::vec(proptest::sample::select(&["a", "b", "c", " ", "\n", "\u{2581}", "\u{e9}"][..]), 0..30),
        broken in proptest::option::weighted(0.1, 0..30usize),
        prefix: bool,
    ) {
        let tokens = [
            ("\u{2581}", -1.0), ("ab", -2.0), ("bc", -2.0), ("\u{2581}a", -2.0), ("\u{2581}ab", -4.0), ("\u{2581}\u{2581}", -3.0),
            ("\u{2581}\u{2581}\u{2581}", -5.0), ("c\u{2581}", -2.0), ("c\u{2581}a", -1.0), ("\u{e9}\n", -2.0), ("a", -9.0), ("b", -9.0),
        ];
        let tokenizer = spm(&tokens).build().unwrap();
        let Merging::Spm(spm) = &tokenizer.merging else { panic!("SPM") };
        let mut text = parts.concat().into_bytes();
        if let Some(at) = broken.filter(|&at| at <= text.len()) {
            text.insert(at, 0xe2);
        }
        let cuts = Cuts::new(&tokenizer.vocabulary);
        let [whole, in_parts] = [None, Some(&cuts)].map(|cuts| {
            let mut ids = vec![7];
            spm.encode_parts(&text, prefix, cuts, &tokenizer.vocabulary, &mut Scratch::default(), &mut ids);
            ids
        });
        prop_assert_eq!(whole, in_parts);
    }
}

#[test]
fn no_cut_where_a_token_reaches_across() {
    let tokenizer = spm(&[("c\u{2581}", -1.0), ("\u{2581}\u{2581}", -1.0)]).build().unwrap();
    let cuts = Cuts::new(&tokenizer.vocabulary);
    let first = |text: &str| cuts.first(text.as_bytes());
    assert_eq!(first("a\u{2581}b"), 1);
    assert_eq!(first("c\u{2581}b"), 5);
    assert_eq!(first("\u{2581}\u{2581}x\u{2581}"), 7);
    assert_eq!([first("a"), first("\u{2581}")], [1, 3]);
}
