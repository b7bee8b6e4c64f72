//! The Q42T tokenizer section, version 1 (`docs/spec/q42t.md`).

use p64_core::limits::{MAX_MERGES, MAX_VOCABULARY};
use p64_core::tokenizer::{MAGIC, NO_TOKEN, VERSION};

/// What the section says.
#[derive(Clone, Debug)]
pub struct TokenizerParts<'a> {
    /// Beginning-of-sequence token.
    pub bos: Option<u32>,
    /// End-of-sequence token.
    pub eos: Option<u32>,
    /// Whether a prompt begins with BOS.
    pub add_bos: bool,
    /// The pre-tokenizer's name, or the empty string.
    pub pre: &'a str,
    /// Token texts in the order of their ids.
    pub tokens: Vec<&'a str>,
    /// Merge pairs in the order of their ranks.
    pub merges: Vec<(&'a str, &'a str)>,
}

/// The section's payload without the padding to 64; `None` when a limit of the section is passed.
#[must_use]
pub fn encode(parts: &TokenizerParts<'_>) -> Option<Vec<u8>> {
    let tokens = u32::try_from(parts.tokens.len()).ok().filter(|&count| count <= MAX_VOCABULARY)?;
    let merges = u32::try_from(parts.merges.len()).ok().filter(|&count| count <= MAX_MERGES)?;
    let mut out = Vec::new();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&0u16.to_le_bytes());
    for id in [parts.bos, parts.eos] {
        out.extend_from_slice(&id.filter(|&id| id < tokens).unwrap_or(NO_TOKEN).to_le_bytes());
    }
    out.extend_from_slice(&[u8::from(parts.add_bos), 0, 0, 0]);
    push(&mut out, parts.pre)?;
    out.extend_from_slice(&tokens.to_le_bytes());
    for token in &parts.tokens {
        push(&mut out, token)?;
    }
    out.extend_from_slice(&merges.to_le_bytes());
    for (left, right) in &parts.merges {
        push(&mut out, left)?;
        push(&mut out, right)?;
    }
    Some(out)
}

fn push(out: &mut Vec<u8>, text: &str) -> Option<()> {
    out.extend_from_slice(&u32::try_from(text.len()).ok()?.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use p64_core::tokenizer::Tokenizer;

    /// The worked example of `docs/spec/q42t.md`, byte for byte.
    #[test]
    fn the_worked_example() {
        let parts = TokenizerParts {
            bos: Some(0),
            eos: Some(1),
            add_bos: true,
            pre: "gpt-2",
            tokens: vec!["<s>", "</s>", "a", "b", "ab", "é"],
            merges: vec![("a", "b")],
        };
        let mut expected = Vec::new();
        expected.extend_from_slice(b"Q42T\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x05\0\0\0gpt-2\x06\0\0\0");
        expected.extend_from_slice(b"\x03\0\0\0<s>\x04\0\0\0</s>\x01\0\0\0a\x01\0\0\0b\x02\0\0\0ab");
        expected.extend_from_slice(b"\x02\0\0\0\xc3\xa9\x01\0\0\0\x01\0\0\0a\x01\0\0\0b");
        let mut found = encode(&parts).expect("within the limits");
        assert_eq!(found, expected);
        assert_eq!(found.len(), 84);
        found.resize(128, 0);
        Tokenizer::parse(&found).expect("strict");
    }

    #[test]
    fn an_id_outside_the_vocabulary_is_no_token() {
        let parts =
            TokenizerParts { bos: Some(11), eos: None, add_bos: false, pre: "", tokens: vec!["a"], merges: Vec::new() };
        let mut bytes = encode(&parts).expect("within the limits");
        bytes.resize(64, 0);
        let read = Tokenizer::parse(&bytes).expect("strict");
        assert_eq!((read.bos(), read.eos(), read.add_bos()), (None, None, false));
    }
}
