//! A tokenizer: what a key-value area describes, given a text. Its ids are of the vocabulary, and any ids have bytes.
//!
//! The input is the area's length (16 bits), the area, and the text.

use p64_core::metadata::Metadata;
use p64_std::tokenizer::Tokenizer;

/// Longer texts take longer without reaching more.
const MOST_TEXT: usize = 4096;

/// The target's body.
pub fn run(data: &[u8]) {
    let Some((len, rest)) = data.split_first_chunk() else { return };
    let Some((area, text)) = rest.split_at_checked(usize::from(u16::from_le_bytes(*len))) else { return };
    let text = &text[..text.len().min(MOST_TEXT)];
    let Ok(metadata) = Metadata::parse(area, 0) else { return };
    let tokenizer = match Tokenizer::from_metadata(&metadata) {
        Ok(tokenizer) => tokenizer,
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n'), "a person reads one line: {text:?}");
            return;
        }
    };
    for (add_special, parse_special) in [(false, false), (true, true)] {
        let ids = tokenizer.encode(text, add_special, parse_special);
        assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()), "an id past the vocabulary");
        assert_eq!(ids, tokenizer.encode(text, add_special, parse_special));
        for render_special in [false, true] {
            // Cleaning up only takes away.
            let plain = if render_special { tokenizer.decode_special(&ids) } else { tokenizer.decode(&ids) };
            assert!(tokenizer.detokenize(&ids, render_special).len() <= plain.len());
        }
    }
    let (any, _) = text.as_chunks();
    let any: Vec<u32> = any.iter().map(|id| u32::from_le_bytes(*id)).chain(0..8).collect();
    let _ = (tokenizer.decode(&any), tokenizer.detokenize(&any, true));
    for id in any {
        let _ = (tokenizer.token_bytes(id, true), tokenizer.token_text(id), tokenizer.is_end_of_generation(id));
    }
}
