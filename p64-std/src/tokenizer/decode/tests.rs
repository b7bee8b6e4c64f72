use super::*;
use crate::tokenizer::tests::{bpe, spm};
use proptest::prelude::*;

#[test]
fn characters_wait_until_they_are_complete() {
    let mut stream = Utf8Stream::new();
    let mut text = String::new();
    let mut push = |bytes: &[u8]| {
        text.clear();
        stream.push(bytes, &mut text);
        text.clone()
    };
    assert_eq!(push(b"a\xf0"), "a");
    assert_eq!(push(b"\x9f\x99"), "");
    assert_eq!(push(b"\x82b"), "🙂b");
    assert_eq!(push(b"\xe2\x82"), "");
    assert_eq!(push(b"x"), "\u{fffd}x");
    assert_eq!(push(b"\xff\xc3"), "\u{fffd}");
    assert_eq!(stream.held(), b"\xc3");
    let mut end = String::new();
    stream.finish(&mut end);
    stream.finish(&mut end);
    assert_eq!(end, "\u{fffd}");
}

proptest! {
    /// However the bytes are cut, the text is that of the whole.
    #[test]
    fn equals_the_whole(
        pieces in proptest::collection::vec(
            prop_oneof![proptest::collection::vec(any::<u8>(), 0..4), "\\PC{0,3}".prop_map(String::into_bytes)], 0..12),
        cut in 1_usize..5,
    ) {
        let bytes = pieces.concat();
        let (mut stream, mut text) = (Utf8Stream::new(), String::new());
        for piece in bytes.chunks(cut) {
            stream.push(piece, &mut text);
            prop_assert!(stream.held().len() <= 3);
        }
        stream.finish(&mut text);
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn types_decide_what_a_token_stands_for() {
    let spm = spm(&[("▁a▁", -1.0)]).build().unwrap();
    assert_eq!(spm.token_bytes(259, false), b" a ");
    assert_eq!(spm.token_bytes(3 + 0xff, false), [0xff]);
    assert_eq!((spm.token_bytes(0, false), spm.token_bytes(0, true)), (vec![], b"<unk>".to_vec()));
    let bpe = bpe("gpt-2", &["Ġ a"]).build().unwrap();
    assert_eq!(bpe.token_bytes(259, false), b" a");
    // A character outside the byte alphabet stands for itself.
    let mut out = Vec::new();
    spell_out("Ġ世\u{ad}".as_bytes(), &mut out);
    assert_eq!(out, " 世\u{ad}".as_bytes());
}

/// By hand from the three passes of llama.cpp's detokeniser.
#[test]
fn cleaning_up() {
    let cases = [
        ("Hello , world . Yes ! No ?", "Hello, world. Yes! No?"),
        (" , a", ", a"),
        ("a  .", "a ."),
        ("it 's we 've I 'm you 're", "it's we've I'm you're"),
        ("I 'll don 't he 'd 'x", "I 'll don 't he 'd 'x"),
        ("a ' b", "a'b"),
        ("a ' ' b", "a'' b"),
        ("' s", "' s"),
        ("", ""),
        ("a : ;", "a : ;"),
    ];
    for (text, cleaned) in cases {
        assert_eq!(String::from_utf8(clean_up(text.as_bytes())).unwrap(), cleaned, "{text:?}");
    }
}
