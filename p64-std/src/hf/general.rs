//! What a model is called and how it is meant to be sampled: the keys of `general.*`.

use super::json;
use super::keys::Keys;
use crate::error::Result;
use crate::source::SourceTensor;
use serde_json::{Map, Value};
use std::path::Path;

/// The keys in front of a family's.
pub(super) fn write(folder: &Path, arch: &str, tensors: &[SourceTensor<'_>], keys: &mut Keys) -> Result<()> {
    keys.set("general.architecture", arch).set("general.type", "model");
    if let Some(generation) = json::object_if(&folder.join("generation_config.json"))? {
        sampling(&generation, keys);
    }
    keys.set("general.name", title(&name_of(folder)));
    if let Some(label) = size_label(tensors) {
        keys.set("general.size_label", label);
    }
    Ok(())
}

fn sampling(generation: &Map<String, Value>, keys: &mut Keys) {
    let float = |names: &[&str]| {
        names.iter().find_map(|name| generation.get(*name)).and_then(Value::as_f64).map(super::config::to_f32)
    };
    let whole = |name: &str| generation.get(name).and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
    if let Some(value) = whole("top_k") {
        keys.set("general.sampling.top_k", value);
    }
    for (names, key) in [
        (&["top_p"][..], "top_p"),
        (&["min_p"], "min_p"),
        (&["xtc_probability"], "xtc_probability"),
        (&["xtc_threshold"], "xtc_threshold"),
        (&["temperature"], "temp"),
    ] {
        if let Some(value) = float(names) {
            keys.set(format!("general.sampling.{key}"), value);
        }
    }
    if let Some(value) = whole("penalty_last_n") {
        keys.set("general.sampling.penalty_last_n", value);
    }
    if let Some(value) = float(&["penalty_repeat", "repetition_penalty"]) {
        keys.set("general.sampling.penalty_repeat", value);
    }
}

/// The name of a folder, also of one that is named by `.`.
fn name_of(folder: &Path) -> String {
    let whole = folder.canonicalize();
    let whole = whole.as_deref().unwrap_or(folder);
    whole.file_name().map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// A name as a title: words apart, their first letters large unless they say something by their letters already.
fn title(name: &str) -> String {
    let words = name.split(|c: char| c == '-' || c.is_whitespace()).filter(|word| !word.is_empty());
    let words = words.map(|word| {
        let version = word.strip_prefix('v').is_some_and(|rest| {
            rest.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        });
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        let lower = word.chars().any(char::is_lowercase) && !word.chars().any(char::is_uppercase);
        if !lower || version || number {
            return word.to_owned();
        }
        let mut out = String::with_capacity(word.len());
        let mut inside = false;
        for c in word.chars() {
            if inside {
                out.push(c);
            } else {
                out.extend(c.to_uppercase());
            }
            inside = c.is_alphabetic();
        }
        out
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The number of parameters in two digits or more: `135M`, `8x7B` with experts.
fn size_label(tensors: &[SourceTensor<'_>]) -> Option<String> {
    let (mut shared, mut experts, mut count) = (0u64, 0u64, (0u64, 0u64));
    for tensor in tensors {
        let shape = tensor.payload.shape();
        let size = shape.elements()?;
        match (tensor.name.contains("_exps."), shape.dims().get(2)) {
            (true, Some(&number)) => {
                experts = experts.checked_add(size.checked_div(number.into())?)?;
                count = (count.0.checked_add(number.into())?, count.1.saturating_add(1));
            }
            _ => shared = shared.checked_add(size)?,
        }
    }
    let number = rounded(shared.checked_add(experts)?);
    match count.0.checked_div(count.1) {
        Some(experts) => Some(format!("{experts}x{number}")),
        None if shared == 0 => None,
        None => Some(number),
    }
}

fn rounded(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a number of two or three digits is made of it")]
    let count = count as f64;
    let (scaled, unit) = [(1e12, 'T'), (1e9, 'B'), (1e6, 'M')]
        .into_iter()
        .find(|(scale, _)| count > *scale)
        .map_or((count / 1e3, 'K'), |(scale, unit)| (count / scale, unit));
    let digits = if scaled.round_ties_even() == 0.0 { 2 } else { usize::from(scaled.round_ties_even() < 10.0) };
    format!("{scaled:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_labels() {
        for (name, expected) in [
            ("SmolLM2-135M-Instruct", "SmolLM2 135M Instruct"),
            ("gemma-3-270m", "Gemma 3 270m"),
            ("my_model-v1.5--chat", "My_Model v1.5 Chat"),
        ] {
            assert_eq!(title(name), expected);
        }
        let cases =
            [(134_515_008, "135M"), (1_500_000_000, "1.5B"), (31_456, "31K"), (70_000_000_000, "70B"), (400, "0.40K")];
        for (count, expected) in cases {
            assert_eq!(rounded(count), expected);
        }
    }
}
