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
