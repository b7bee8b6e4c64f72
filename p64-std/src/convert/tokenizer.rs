//! The Q42T section from a GGUF's keys (`docs/spec/q42t.md`).

use super::hparams::named;
use crate::tokenizer::{Defaults, Pre};
use crate::write::{TokenizerParts, encode_tokenizer};
use p64_core::metadata::Metadata;

/// The section's payload, or `None` for a GGUF without tokens.
///
/// # Errors
/// Why the keys make no tokenizer, as a sentence that names the key.
pub(crate) fn read(metadata: &Metadata<'_>) -> Result<Option<Vec<u8>>, String> {
    let typed = |(key, error): (String, p64_core::Error)| format!("{key}: {error}");
    let Some(tokens) = named("tokenizer.ggml.tokens", |key| metadata.array(key)).map_err(typed)? else {
        return Ok(None);
    };
    let count = tokens.len();
    let texts: Option<Vec<&str>> = tokens.iter().map(|token| token.as_str()).collect();
    let texts = texts.ok_or("tokenizer.ggml.tokens: an element is not text")?;
    for key in ["tokenizer.ggml.scores", "tokenizer.ggml.token_type"] {
        if let Some(found) = named(key, |key| metadata.array(key)).map_err(typed)?
            && found.len() != count
        {
            return Err(format!("{key} has {} elements, the vocabulary has {count}", found.len()));
        }
    }

    let model = named("tokenizer.ggml.model", |key| metadata.str(key)).map_err(typed)?.unwrap_or("");
    let pre = named("tokenizer.ggml.pre", |key| metadata.str(key)).map_err(typed)?.unwrap_or("");
    let defaults = Defaults::of(model, Pre::from_name(pre).ok());
    let special = |key: &str, default: Option<u32>| match named(key, |key| metadata.u32(key)).map_err(typed)? {
        Some(id) if u64::from(id) >= count => Err(format!("{key} is {id}, the vocabulary has {count} tokens")),
        Some(id) => Ok(Some(id)),
        None => Ok(default.filter(|&id| u64::from(id) < count)),
    };
    let bos = special("tokenizer.ggml.bos_token_id", defaults.bos)?;
    let eos = special("tokenizer.ggml.eos_token_id", defaults.eos)?;
    let add_bos = named("tokenizer.ggml.add_bos_token", |key| metadata.bool(key)).map_err(typed)?;

    let mut merges = Vec::new();
    if let Some(array) = named("tokenizer.ggml.merges", |key| metadata.array(key)).map_err(typed)? {
        for (index, merge) in array.iter().enumerate() {
            let pair = merge.as_str().and_then(split_merge);
            merges.push(pair.ok_or_else(|| format!("tokenizer.ggml.merges: element {index} is no pair of two texts"))?);
        }
    }
    let parts = TokenizerParts { bos, eos, add_bos: defaults.adds_bos(add_bos), pre, tokens: texts, merges };
    encode_tokenizer(&parts).map(Some).ok_or_else(|| {
        format!("{count} tokens and {} merges: the tokenizer section holds 1000000 and 5000000", parts.merges.len())
    })
}

/// The two sides of a merge: cut at the first space from the second byte on, so that a left side may begin with one.
fn split_merge(merge: &str) -> Option<(&str, &str)> {
    let at = merge.bytes().skip(1).position(|byte| byte == b' ')?.checked_add(1)?;
    Some((merge.get(..at)?, merge.get(at.checked_add(1)?..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::Pairs;
    use p64_core::tokenizer::Tokenizer;

    fn section(pairs: &Pairs) -> Result<Option<Vec<u8>>, String> {
        let area = pairs.to_area();
        let bytes = read(&Metadata::parse(&area, 0).expect("well-formed"))?;
        Ok(bytes.map(|mut bytes| {
            bytes.resize(bytes.len().next_multiple_of(64), 0);
            Tokenizer::parse(&bytes).expect("strict");
            bytes
        }))
    }

    fn twenty() -> Pairs {
        let tokens: Vec<String> = (0..20).map(|i| format!("t{i}")).collect();
        let mut pairs = Pairs::new();
        pairs.str_array("tokenizer.ggml.tokens", &tokens);
        pairs
    }

    #[test]
    fn defaults_follow_the_model() {
        let cases = [
            ("llama", "", Some(1), Some(2), true),
            ("gpt2", "smollm", Some(11), Some(11), false),
            ("gpt2", "llama-bpe", Some(11), Some(11), true),
            ("gpt2", "tekken", Some(11), Some(11), true),
            ("gpt2", "glm4", None, Some(11), false),
            // Names that this build does not know are kept all the same.
            ("gpt2", "next-year", Some(11), Some(11), false),
            ("gemma4", "", None, None, true),
            // Its BOS is past the vocabulary of this test: none is invented.
            ("bert", "", None, None, true),
            ("t5", "", None, Some(1), false),
            ("something", "", None, None, false),
        ];
        for (model, pre, bos, eos, add_bos) in cases {
            let mut pairs = twenty();
            pairs.str("tokenizer.ggml.model", model).str("tokenizer.ggml.pre", pre);
            let bytes = section(&pairs).expect("a tokenizer").expect("tokens");
            let read = Tokenizer::parse(&bytes).expect("strict");
            assert_eq!((read.bos(), read.eos(), read.add_bos(), read.pre()), (bos, eos, add_bos, pre), "{model}");
        }
    }

    #[test]
    fn keys_come_before_defaults() {
        let mut pairs = twenty();
        pairs.str("tokenizer.ggml.model", "llama").u32("tokenizer.ggml.bos_token_id", 7);
        pairs.u32("tokenizer.ggml.eos_token_id", 19).bool("tokenizer.ggml.add_bos_token", false);
        pairs.str_array("tokenizer.ggml.merges", &["a b", "  c", "Ġ Ġx y"]);
        let bytes = section(&pairs).expect("a tokenizer").expect("tokens");
        let read = Tokenizer::parse(&bytes).expect("strict");
        assert_eq!((read.bos(), read.eos(), read.add_bos()), (Some(7), Some(19), false));
        assert_eq!(read.merges().collect::<Vec<_>>(), [("a", "b"), (" ", "c"), ("Ġ", "Ġx y")]);
    }

    #[test]
    fn what_makes_no_tokenizer() {
        assert_eq!(section(&Pairs::new()), Ok(None));
        let refused = |edit: &dyn Fn(&mut Pairs)| {
            let mut pairs = twenty();
            edit(&mut pairs);
            section(&pairs).expect_err("refused")
        };
        let text = refused(&|pairs| {
            pairs.u32("tokenizer.ggml.bos_token_id", 20);
        });
        assert_eq!(text, "tokenizer.ggml.bos_token_id is 20, the vocabulary has 20 tokens");
        let text = refused(&|pairs| {
            pairs.u32_array("tokenizer.ggml.scores", &[1]);
        });
        assert_eq!(text, "tokenizer.ggml.scores has 1 elements, the vocabulary has 20");
        let text = refused(&|pairs| {
            pairs.str_array("tokenizer.ggml.merges", &["a b", "ab"]);
        });
        assert_eq!(text, "tokenizer.ggml.merges: element 1 is no pair of two texts");
        let text = refused(&|pairs| {
            pairs.str("tokenizer.ggml.add_bos_token", "yes");
        });
        assert!(text.starts_with("tokenizer.ggml.add_bos_token: "), "{text}");
    }
}
