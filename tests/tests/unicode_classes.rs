//! The table of character classes in p64-core against the `regex` crate, which p64-std's pre-tokenizers run on.

use p64_core::tokenizer::unicode::{Class, class};
use p64_tests::data::{bless, workspace};
use regex::Regex;

const TABLE: &str = "p64-core/src/tokenizer/classes.bin";

fn characters() -> impl Iterator<Item = char> {
    '\0'..=char::MAX
}

/// The class of every code point, in order; surrogates are no characters and have none.
fn classes() -> Vec<Class> {
    let [letter, number, punctuation] = [r"^\p{L}$", r"^\p{N}$", r"^\p{P}$"].map(|p| Regex::new(p).expect("a pattern"));
    let mut classes = vec![Class::Other; 0x11_0000];
    let mut buffer = [0; 4];
    for c in characters() {
        let text: &str = c.encode_utf8(&mut buffer);
        classes[c as usize] = if letter.is_match(text) {
            Class::Letter
        } else if number.is_match(text) {
            Class::Number
        } else if punctuation.is_match(text) {
            Class::Punctuation
        } else {
            Class::Other
        };
    }
    classes
}

/// Runs as `unicode.rs` describes them; the last one of no class is left out.
fn encode(classes: &[Class]) -> Vec<u8> {
    let mut out = Vec::new();
    for run in classes.chunk_by(|a, b| a == b) {
        let code = match run[0] {
            Class::Other => 0,
            Class::Letter => 1,
            Class::Number => 2,
            Class::Punctuation => 3,
        };
        let mut value = run.len() << 2 | code;
        while value > 0x7f {
            out.push((value & 0x7f | 0x80) as u8);
            value >>= 7;
        }
        out.push(value as u8);
    }
    out
}

#[test]
fn the_table_is_the_one_of_the_regex_crate() {
    let expected = encode(&classes());
    let path = workspace(TABLE);
    if bless() {
        std::fs::write(&path, &expected).expect("written");
    }
    assert!(std::fs::read(&path).expect("there") == expected, "{TABLE} is stale: run with P64_BLESS=1");
    println!("{} bytes of runs", expected.len());
}

#[test]
fn every_character_has_its_class() {
    let classes = classes();
    // A walk through the table for each of a million characters takes long: every run's ends, and all of the first plane.
    let is_end =
        |at: usize| classes.get(at.wrapping_sub(1)) != Some(&classes[at]) || classes.get(at + 1) != Some(&classes[at]);
    let mut seen = 0;
    for c in characters().filter(|&c| c < '\u{10000}' || is_end(c as usize)) {
        assert_eq!(class(c), classes[c as usize], "U+{:04X}", u32::from(c));
        seen += 1;
    }
    assert!(seen > 60_000, "{seen}");
}

#[test]
fn white_space_is_the_standard_librarys() {
    let space = Regex::new(r"^\s$").expect("a pattern");
    let mut buffer = [0; 4];
    assert!(characters().all(|c| space.is_match(c.encode_utf8(&mut buffer)) == c.is_whitespace()));
}
