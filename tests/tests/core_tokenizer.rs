//! The tokenizer without allocation against `p64-std`'s, whose ids are llama.cpp's: every golden string, random texts, the
//! bundled model and both real ones, with an index and without.

use std::fs::File;
use std::io::Read;

use p64_core::Code;
use p64_core::forward::subject;
use p64_core::metadata::Metadata;
use p64_core::tokenizer::encode::{Options, Slot, encode, required_len};
use p64_core::tokenizer::{Vocabulary, decode};
use p64_std::tokenizer::Tokenizer;
use p64_tests::data::{data, model};
use p64_tests::toy::Area;
use serde_json::Value;

const TINY: &str = "tiny/tiny-stories-q8_0.gguf";

/// The head of a GGUF in which the key-value area ends.
struct Head(Vec<u8>);

impl Head {
    fn read(path: &std::path::Path) -> Self {
        let mut file = File::open(path).expect("there");
        let mut bytes = Vec::new();
        for step in [1_u64 << 24, 1 << 25, 1 << 26, u64::MAX] {
            file.by_ref().take(step).read_to_end(&mut bytes).expect("readable");
            if Self::parse(&bytes).is_some() {
                return Self(bytes);
            }
        }
        panic!("{}: the key-value area does not parse", path.display());
    }

    fn parse(bytes: &[u8]) -> Option<Metadata<'_>> {
        let count = u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes"));
        Metadata::parse_pairs(&bytes[24..], count, 24).ok().map(|(metadata, _)| metadata)
    }

    fn metadata(&self) -> Metadata<'_> {
        Self::parse(&self.0).expect("parsed before")
    }
}

fn ids(vocabulary: &Vocabulary<'_>, text: &[u8], options: Options) -> Vec<u32> {
    let mut scratch = vec![Slot::default(); required_len(vocabulary, text)];
    let mut ids = vec![0; scratch.len() + 2];
    let count = encode(vocabulary, text, options, &mut scratch, &mut ids).expect("enough of both");
    ids.truncate(count);
    ids
}

fn bytes(vocabulary: &Vocabulary<'_>, id: u32, render_special: bool) -> Vec<u8> {
    let mut out = [0; 1024];
    let len = decode::decode(vocabulary, id, render_special, &mut out).expect("in the vocabulary");
    out[..len].to_vec()
}

fn sequence(vocabulary: &Vocabulary<'_>, ids: &[u32], render_special: bool) -> Vec<u8> {
    let mut stream = decode::Stream::new(vocabulary, render_special);
    let mut out = [0; 1024];
    let next = |id: &u32| {
        let len = stream.next(vocabulary, *id, &mut out).expect("in the vocabulary");
        out[..len].to_vec()
    };
    ids.iter().flat_map(next).collect()
}

fn golden_texts() -> Vec<Vec<u8>> {
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("hex")).collect()
    };
    let mut texts = Vec::new();
    for name in ["smollm2-135m-q4_1", "gemma3-270m-q4_k_m"] {
        let json = std::fs::read(data(&format!("llama/tok_{name}.json"))).expect("in the repository");
        let golden: Value = serde_json::from_slice(&json).expect("well-formed");
        let cases = golden["cases"].as_array().expect("cases");
        texts.extend(cases.iter().map(|case| hex(case["bytes_hex"].as_str().expect("hex"))));
    }
    let json = std::fs::read(data("tiny/tiny-stories-q8_0.json")).expect("in the repository");
    let golden: Value = serde_json::from_slice(&json).expect("well-formed");
    let strings = golden["strings"].as_array().expect("strings");
    texts.extend(strings.iter().map(|case| case["text"].as_str().expect("text").as_bytes().to_vec()));
    texts.sort();
    texts.dedup();
    assert!(texts.len() > 47, "{}", texts.len());
    texts
}

/// Texts of parts that touch the rules: spaces, digits, apostrophes, scripts, broken UTF-8, special tokens.
fn random_texts(count: usize) -> Vec<Vec<u8>> {
    const PARTS: [&[u8]; 34] = [
        b" ",
        b"  ",
        b"\n",
        b"\r\n",
        b"\t",
        b"a",
        b"The",
        b" cat",
        b"'s",
        b"'ll",
        b"'",
        b"12",
        b"3456789",
        b"!?",
        b"...",
        b"$+<",
        b"_",
        "é".as_bytes(),
        "नमस्ते".as_bytes(),
        "ไทย".as_bytes(),
        "漢字".as_bytes(),
        "٣".as_bytes(),
        "½".as_bytes(),
        "「".as_bytes(),
        "\u{a0}".as_bytes(),
        "\u{3000}".as_bytes(),
        "🙂".as_bytes(),
        "▁".as_bytes(),
        b"\xff",
        b"\xe2\x82",
        b"<|im_end|>",
        b"<|im_start|>",
        b"<eos>",
        b"<0x41>",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    (0..count).map(|_| (0..next(12)).flat_map(|_| PARTS[next(PARTS.len())].to_vec()).collect()).collect()
}

const OPTIONS: [Options; 4] = [
    Options { add_special: false, parse_special: false },
    Options { add_special: false, parse_special: true },
    Options { add_special: true, parse_special: false },
    Options { add_special: true, parse_special: true },
];

fn check(vocabulary: &Vocabulary<'_>, expected: &Tokenizer, texts: &[Vec<u8>]) {
    for text in texts {
        for options in OPTIONS {
            let wanted = expected.encode(text, options.add_special, options.parse_special);
            assert_eq!(ids(vocabulary, text, options), wanted, "{:?}, {options:?}", text.escape_ascii().to_string());
            for render in [false, true] {
                let whole = if render { expected.decode_special(&wanted) } else { expected.decode(&wanted) };
                assert_eq!(sequence(vocabulary, &wanted, render), whole, "{:?}", text.escape_ascii().to_string());
            }
        }
    }
}

fn check_vocabulary(vocabulary: &Vocabulary<'_>, expected: &Tokenizer) {
    assert_eq!(vocabulary.token_count() as usize, expected.vocab_size());
    assert_eq!((vocabulary.bos(), vocabulary.eos()), (expected.bos(), expected.eos()));
    for id in 0..vocabulary.token_count() {
        assert_eq!(vocabulary.text(id), expected.token_text(id), "{id}");
        assert_eq!(vocabulary.is_end_of_generation(id), expected.is_end_of_generation(id), "{id}");
        for render in [false, true] {
            assert_eq!(bytes(vocabulary, id, render), expected.token_bytes(id, render), "{id}");
        }
    }
    let past = decode::decode(vocabulary, vocabulary.token_count(), true, &mut []);
    assert_eq!(past.expect_err("past the vocabulary").code, Code::TokenRange);
}

#[test]
fn the_bundled_model_with_and_without_an_index() {
    let head = Head::read(&data(TINY));
    let expected = Tokenizer::from_metadata(&head.metadata()).expect("known");
    let plain = Vocabulary::read(&head.metadata()).expect("known");
    let mut memory = vec![0; plain.index_len()];
    let index = plain.build_index(&mut memory).expect("enough");
    let indexed = plain.with_index(index).expect("its own");
    let texts = [golden_texts(), random_texts(300)].concat();
    for vocabulary in [&plain, &indexed] {
        check_vocabulary(vocabulary, &expected);
        check(vocabulary, &expected, &texts);
    }
}

fn real(name: &str) {
    let head = Head::read(&model(&format!("{name}.gguf")));
    let expected = Tokenizer::from_metadata(&head.metadata()).expect("known");
    let plain = Vocabulary::read(&head.metadata()).expect("known");
    let mut memory = vec![0; plain.index_len()];
    let indexed = plain.with_index(plain.build_index(&mut memory).expect("enough")).expect("its own");
    check_vocabulary(&indexed, &expected);
    check(&indexed, &expected, &[golden_texts(), random_texts(200)].concat());
    // Without an index every look-up is a walk.
    check(&plain, &expected, &[b"It's 10 <|im_end|>".to_vec()]);
}

#[test]
fn smollm2_with_an_index() {
    real("smollm2-135m-q4_1");
}

#[test]
fn gemma3_with_an_index() {
    real("gemma3-270m-q4_k_m");
}

#[test]
fn buffers_that_are_too_small_say_what_they_lack() {
    let head = Head::read(&data(TINY));
    let vocabulary = Vocabulary::read(&head.metadata()).expect("known");
    let text = b"Once upon a time there was a cat.";
    let wanted = ids(&vocabulary, text, Options::default());
    let mut scratch = vec![Slot::default(); required_len(&vocabulary, text)];
    for len in 0..wanted.len() {
        let mut few = vec![0; len];
        let error = encode(&vocabulary, text, Options::default(), &mut scratch, &mut few).expect_err("too few");
        assert_eq!((error.code, error.expected, error.found), (Code::BufferTooSmall, wanted.len() as u64, len as u64));
        assert_eq!(few, wanted[..len]);
    }
    let mut out = vec![0; wanted.len()];
    // The longest word is " there"; with its six slots the text passes.
    let error = encode(&vocabulary, text, Options::default(), &mut scratch[..5], &mut out).expect_err("too short");
    assert_eq!((error.code, error.expected, error.found), (Code::BufferTooSmall, 6, 5));
    assert_eq!(encode(&vocabulary, text, Options::default(), &mut scratch[..6], &mut out), Ok(wanted.len()));
    let id = wanted.iter().copied().find(|&id| bytes(&vocabulary, id, false).len() > 1).expect("a long token");
    let error = decode::decode(&vocabulary, id, false, &mut [0]).expect_err("too short");
    assert_eq!((error.code, error.found), (Code::BufferTooSmall, 1));
    let len = vocabulary.index_len();
    let error = vocabulary.build_index(&mut vec![0; len - 1]).expect_err("too short");
    assert_eq!((error.code, error.expected), (Code::BufferTooSmall, len as u64));
    assert_eq!(vocabulary.with_index(&[0; 8]).expect_err("too short").code, Code::LengthMismatch);
}

/// An index that is not the vocabulary's may give wrong ids, not a panic.
#[test]
fn a_foreign_index_does_no_harm() {
    let head = Head::read(&data(TINY));
    let vocabulary = Vocabulary::read(&head.metadata()).expect("known");
    for fill in [0, 1, 7, 1023, 1024, u32::MAX] {
        let index = vec![fill; vocabulary.index_len()];
        let vocabulary = vocabulary.with_index(&index).expect("the length passes");
        for text in random_texts(20) {
            let mut scratch = vec![Slot::default(); required_len(&vocabulary, &text)];
            let _ = encode(&vocabulary, &text, OPTIONS[3], &mut scratch, &mut [0; 64]);
            let _ = decode::decode(&vocabulary, 5, true, &mut [0; 8]);
        }
    }
}

/// What this tokenizer would not do exactly it refuses, and says by which key.
#[test]
fn other_tokenizers_are_refused() {
    let head = Head::read(&data(TINY));
    let vocabulary = |from: &[u8], to: &[u8]| {
        assert_eq!(from.len(), to.len());
        let mut bytes = head.0.clone();
        let at = bytes.windows(from.len()).position(|window| window == from).expect("the head has it");
        bytes[at..at + to.len()].copy_from_slice(to);
        let error = Vocabulary::read(&Head::parse(&bytes).expect("still well-formed")).expect_err("refused");
        (error.code, subject(&error))
    };
    assert_eq!(vocabulary(b"gpt-2", b"qwen2"), (Code::UnsupportedFeature, Some("tokenizer.ggml.pre")));
    assert_eq!(vocabulary(b"gpt2", b"bert"), (Code::UnsupportedFeature, Some("tokenizer.ggml.model")));
    assert_eq!(vocabulary(b"ggml.merges", b"ggml.mergez"), (Code::MissingKey, Some("tokenizer.ggml.merges")));
    assert_eq!(vocabulary(b"ggml.tokens", b"ggml.tokenz"), (Code::MissingKey, Some("tokenizer.ggml.tokens")));
    assert_eq!(vocabulary(b"ggml.pre", b"ggml.prf"), (Code::MissingKey, Some("tokenizer.ggml.pre")));
}

/// Phi-3's special tokens strip white space, by the name of the model.
#[test]
fn phi3_is_refused() {
    let tokens = ["<unk>", "<s>", "</s>", "a"];
    let gguf = |name: &str| {
        let mut area = Area::default();
        area.str("general.name", name).str("tokenizer.ggml.model", "llama").strs("tokenizer.ggml.tokens", &tokens);
        // An array of four f32.
        let scores = [&6_u32.to_le_bytes()[..], &4_u64.to_le_bytes(), &[0; 16]].concat();
        area.raw("tokenizer.ggml.scores", 9, &scores).bytes()
    };
    let read = |name: &str| {
        let area = gguf(name);
        Vocabulary::read(&Metadata::parse(&area, 0).expect("well-formed")).map(|_| ()).map_err(|error| subject(&error))
    };
    assert_eq!(read("Llama"), Ok(()));
    assert_eq!(read("Microsoft Phi-3 mini"), Err(Some("tokenizer.ggml.model")));
    assert_eq!(read("phi3"), Err(Some("tokenizer.ggml.model")));
}
