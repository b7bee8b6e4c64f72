//! The hyperparameter record from a GGUF's keys (spec §6).

use p64_core::error::{Code, Error, Place};
use p64_core::layout::hparams::RawHParams;
use p64_core::metadata::{Metadata, Value, ValueKind};

const DEFAULT_FREQ_BASE: f32 = 10_000.0;

/// The record; what the keys do not say and no default covers is zero.
///
/// # Errors
/// A key that is there with another type than its meaning needs, by name.
pub(crate) fn read(metadata: &Metadata<'_>) -> Result<RawHParams, (String, Error)> {
    let mut hparams = RawHParams::default();
    let Some(arch) = named("general.architecture", |key| metadata.str(key))? else { return Ok(hparams) };
    let key = |suffix: &str| format!("{arch}.{suffix}");
    let n_head = largest(metadata, &key("attention.head_count"))?;
    hparams.n_layer = largest(metadata, &key("block_count"))?.unwrap_or(0).into();
    hparams.n_embd = largest(metadata, &key("embedding_length"))?.unwrap_or(0).into();
    hparams.n_head = n_head.unwrap_or(0).into();
    hparams.n_kv_head = largest(metadata, &key("attention.head_count_kv"))?.or(n_head).unwrap_or(0).into();
    let tokens = named("tokenizer.ggml.tokens", |key| metadata.array(key))?;
    let tokens = tokens.map(|tokens| u32::try_from(tokens.len()).unwrap_or(u32::MAX));
    hparams.vocab_size = tokens.or(largest(metadata, &key("vocab_size"))?).unwrap_or(0).into();
    let freq_base = named(&key("rope.freq_base"), |key| metadata.f32(key))?;
    hparams.rope_freq_base = freq_base.unwrap_or(DEFAULT_FREQ_BASE).into();
    let scale = named(&key("rope.scaling.factor"), |key| metadata.f32(key))?;
    hparams.rope_scale = scale.unwrap_or(1.0).into();
    Ok(hparams)
}

/// Whether the five integers that a complete model needs are there.
pub(crate) fn is_complete(hparams: &RawHParams) -> bool {
    let needed = [hparams.n_layer, hparams.n_embd, hparams.n_head, hparams.n_kv_head, hparams.vocab_size];
    needed.iter().all(|value| value.get() != 0)
}

pub(super) fn named<T>(
    key: &str,
    read: impl FnOnce(&str) -> Result<Option<T>, Error>,
) -> Result<Option<T>, (String, Error)> {
    read(key).map_err(|error| (key.to_owned(), error))
}

/// A number, or the largest of an array with one number per layer.
fn largest(metadata: &Metadata<'_>, key: &str) -> Result<Option<u32>, (String, Error)> {
    let Some((index, (_, value))) = (0u32..).zip(metadata.iter()).find(|(_, (name, _))| *name == key) else {
        return Ok(None);
    };
    let narrow = |value: Value<'_>| value.as_u64().and_then(|value| u32::try_from(value).ok());
    let found = match value {
        Value::Array(array) => array.iter().map(narrow).collect::<Option<Vec<u32>>>().map(|v| v.into_iter().max()),
        scalar => narrow(scalar).map(Some),
    };
    found.ok_or_else(|| {
        let error = Error::new(Code::MetadataWrongType, Place::Key(index));
        (key.to_owned(), error.values(u64::from(ValueKind::U32.id()), u64::from(value.kind().id())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::Pairs;

    fn read_pairs(pairs: &Pairs) -> Result<RawHParams, (String, Error)> {
        let area = pairs.to_area();
        read(&Metadata::parse(&area, 0).expect("well-formed"))
    }

    #[test]
    fn keys_and_defaults() {
        let mut pairs = Pairs::new();
        pairs.str("general.architecture", "x").u32("x.block_count", 3).u32("x.embedding_length", 8);
        pairs.u32_array("x.attention.head_count", &[2, 4, 3]).str_array("tokenizer.ggml.tokens", &["a", "b"]);
        let hparams = read_pairs(&pairs).expect("typed");
        assert_eq!((hparams.n_layer.get(), hparams.n_embd.get()), (3, 8));
        assert_eq!((hparams.n_head.get(), hparams.n_kv_head.get(), hparams.vocab_size.get()), (4, 4, 2));
        assert_eq!((hparams.rope_freq_base.get(), hparams.rope_scale.get()), (10_000.0, 1.0));
        assert!(is_complete(&hparams));
        assert!(!hparams.has_extension());

        pairs.u32("x.attention.head_count_kv", 1).f32("x.rope.freq_base", 5e5).f32("x.rope.scaling.factor", 8.0);
        let hparams = read_pairs(&pairs).expect("typed");
        assert_eq!(hparams.n_kv_head.get(), 1);
        assert_eq!((hparams.rope_freq_base.get(), hparams.rope_scale.get()), (5e5, 8.0));
    }

    #[test]
    fn without_an_architecture_everything_is_zero() {
        assert_eq!(read_pairs(&Pairs::new()).expect("nothing to go wrong"), RawHParams::default());
    }

    #[test]
    fn another_type_is_named() {
        let mut pairs = Pairs::new();
        pairs.str("general.architecture", "x").str("x.block_count", "3");
        let (key, error) = read_pairs(&pairs).expect_err("a string");
        assert_eq!((key.as_str(), error.code), ("x.block_count", Code::MetadataWrongType));
    }
}
