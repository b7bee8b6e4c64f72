use super::*;
use crate::tokenizer::tests::{Area, bpe};

#[test]
fn merges_in_the_order_of_the_list_and_from_the_left() {
    let ids = |merges: &[&str], text: &str| {
        let tokenizer = bpe("gpt-2", merges).build().unwrap();
        let ids = tokenizer.encode(text.as_bytes(), false, false);
        ids.iter().map(|&id| String::from_utf8(tokenizer.token_text(id).unwrap().to_vec()).unwrap()).collect::<Vec<_>>()
    };
    // "b c" has the lower rank and takes b from "a b".
    assert_eq!(ids(&["b c", "a b"], "abc"), ["a", "bc"]);
    assert_eq!(ids(&["a b", "b c"], "abc"), ["ab", "c"]);
    assert_eq!(ids(&["a a"], "aaaaa"), ["aa", "aa", "a"]);
    assert_eq!(ids(&["a a", "aa a", "aa aa"], "aaaaaaa"), ["aaaa", "aaa"]);
    // A pair that was queued before a better merge took one of its halves is stale.
    assert_eq!(ids(&["b c", "c d", "a bc"], "abcd"), ["abc", "d"]);
    assert_eq!(ids(&["Ġ h", "Ġh i"], "hi hi"), ["h", "i", "Ġhi"]);
    // Of equal merges the first rank counts.
    assert_eq!(ids(&["a b", "b c", "a b"], "abc"), ["ab", "c"]);
}

#[test]
fn symbols_that_are_no_tokens_are_spelled() {
    let area = |tokens: &[&str], merges: &[&str]| {
        Area::default()
            .str("tokenizer.ggml.model", "gpt2")
            .str("tokenizer.ggml.pre", "gpt-2")
            .strings("tokenizer.ggml.tokens", tokens)
            .strings("tokenizer.ggml.merges", merges)
            .build()
            .unwrap()
    };
    // "ab" is no token, but the way to "abc".
    let pruned = area(&["a", "b", "c", "abc"], &["a b", "ab c"]);
    assert_eq!(pruned.encode(b"abc", false, false), [3]);
    assert_eq!(pruned.encode(b"abab", false, false), [0, 1, 0, 1]);
    // No token says "d".
    assert_eq!(pruned.encode(b"adb", false, false), [0, 1]);
}

#[test]
fn halves_are_split_at_the_first_space_after_the_first_byte() {
    assert_eq!(halves(b"a b"), Some((&b"a"[..], &b"b"[..])));
    assert_eq!(halves(b"a b c"), Some((&b"a"[..], &b"b c"[..])));
    assert_eq!(halves(b"  b"), Some((&b" "[..], &b"b"[..])));
    assert_eq!([halves(b"ab"), halves(b" b"), halves(b"")], [None; 3]);
}

#[test]
fn every_ill_formed_byte_is_one_replacement_character() {
    assert_eq!(lossy(b"a\x80b"), "a\u{fffd}b");
    assert_eq!(lossy(b"A\xe2\x82"), "A\u{fffd}\u{fffd}");
    assert_eq!(lossy(b"\xff\xfeA"), "\u{fffd}\u{fffd}A");
    assert_eq!(lossy(b"\xe2A\x82"), "\u{fffd}A\u{fffd}");
    assert!(matches!(lossy("ä".as_bytes()), std::borrow::Cow::Borrowed("ä")));
}
