//! The way back: tensors under GGUF's names as those of a Hugging Face folder, and a `config.json` for them.
//!
//! Rows, sums and stacks of `tensors` are undone by the same rules, read from right to left. A model that came
//! from a folder has that folder's `config.json` in its provenance; of another one it is made from the keys.

mod config;

use super::adapt::{Cast, Joined, Narrowed, Order, Part, Permuted, Transposed};
use super::family::{self, Family};
use super::json;
use super::names::{Rule, Step, fit};
use crate::error::{Error, Result};
use crate::source::{Payload, SourceTensor};
use p64_core::metadata::Metadata;
use p64_core::{DType, Shape};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A model as a Hugging Face folder has it.
#[derive(Debug)]
pub struct Folder<'s> {
    /// The tensors under transformers' names, rows in transformers' order.
    pub tensors: Vec<SourceTensor<'s>>,
    /// The text of `config.json`.
    pub config: String,
}

/// Undoes what makes a GGUF of a folder. `metadata` are the keys of the model, `config` is the text that `p64.source.config` of its
/// provenance has. Payloads must be plain floats: quantised ones are decoded before.
///
/// # Errors
/// [`Error::Refused`] with `path` for a family that is not known, a tensor that its folders do not have, a tensor that is still
/// quantised, a shape that does not fit the keys, and keys that no `config.json` can say.
pub fn folder<'s>(
    path: &Path,
    metadata: &Metadata<'_>,
    config: Option<&str>,
    tensors: Vec<SourceTensor<'s>>,
) -> Result<Folder<'s>> {
    let refused = |reason: String| Error::refused(path, reason);
    let arch = metadata.str("general.architecture").ok().flatten().unwrap_or("");
    let families: Vec<&'static Family> = family::all().filter(|family| family.arch == arch).collect();
    let has = |part: &str| tensors.iter().any(|tensor| tensor.name.contains(part));
    // Mixtral shares its name with LLaMA and has experts.
    let family = families.iter().find(|family| {
        let experts = family.rules.iter().flat_map(|rules| rules.iter()).any(|rule| rule.to.contains("_exps"));
        experts == has("_exps.")
    });
    let Some(family) = family else {
        let arches: std::collections::BTreeSet<&str> = family::all().map(|family| family.arch).collect();
        let known: Vec<&str> = arches.into_iter().collect();
        return Err(refused(format!(
            "models of the family {} have no known form in safetensors; known are {}",
            json::quoted(arch),
            known.join(", ")
        )));
    };
    let number = |key: &str| {
        let value = metadata.get(&format!("{arch}.{key}")).and_then(|value| value.as_u64());
        value.and_then(|value| u32::try_from(value).ok())
    };
    let heads =
        number("attention.head_count").ok_or_else(|| refused(format!("{arch}.attention.head_count is missing")))?;
    let kv_heads = number("attention.head_count_kv").unwrap_or(heads);
    let config_text = match config {
        Some(text) => text.to_owned(),
        None => config::make(path, metadata, family, &tensors)?,
    };
    let element = config.and_then(element_type);
    let mut work = Work { path, family, heads, kv_heads, out: Vec::new(), halves: BTreeMap::new(), element };
    for tensor in tensors {
        work.add(tensor)?;
    }
    if let Some(name) = work.halves.keys().next() {
        return Err(refused(format!("{}: only one of its halves is there", json::quoted(name))));
    }
    Ok(Folder { tensors: work.out, config: config_text })
}

/// The type that a configuration says the weights are of.
fn element_type(config: &str) -> Option<DType> {
    let root: serde_json::Value = serde_json::from_str(config).ok()?;
    let nested = root.get("text_config");
    let stated = |key: &str| root.get(key).or_else(|| nested?.get(key))?.as_str();
    match stated("dtype").or_else(|| stated("torch_dtype"))? {
        "bfloat16" => Some(DType::BF16),
        "float16" => Some(DType::F16),
        _ => None,
    }
}

struct Work<'s, 'p> {
    path: &'p Path,
    family: &'static Family,
    heads: u32,
    kv_heads: u32,
    out: Vec<SourceTensor<'s>>,
    /// Halves that wait for the other one, by the whole's name; the flag is for the second.
    halves: BTreeMap<String, (bool, Box<dyn Payload + 's>)>,
    /// Type of vectors that were widened on the way in.
    element: Option<DType>,
}

impl<'s> Work<'s, '_> {
    fn add(&mut self, tensor: SourceTensor<'s>) -> Result<()> {
        let SourceTensor { name, payload, .. } = tensor;
        if ["rope_freqs.", "rope_factors_long.", "rope_factors_short."].iter().any(|made| name.starts_with(made)) {
            return Ok(());
        }
        let refused = |reason: String| Error::refused(self.path, format!("{}: {reason}", json::quoted(&name)));
        if !matches!(payload.dtype(), DType::F32 | DType::F16 | DType::BF16) {
            return Err(refused(format!(
                "its type {} has no safetensors form; decode it first",
                payload.dtype().name()
            )));
        }
        let found = find(self.family.rules, &name);
        let Some((from, step, second)) = found else {
            return Err(refused(format!("folders of the family {} have no such tensor", self.family.arch)));
        };
        let misshaped = || refused("its shape does not fit the keys".to_owned());
        let weight = name.ends_with(".weight");
        let payload: Box<dyn Payload + 's> = match step {
            Step::Queries | Step::Keys if self.family.interleaves => {
                let heads = if step == Step::Queries { self.heads } else { self.kv_heads };
                Box::new(Permuted::new(payload, heads, Order::Separate).ok_or_else(misshaped)?)
            }
            Step::Norm if weight && self.family.norm_offset != 0.0 => {
                Box::new(Cast::new(payload, -self.family.norm_offset).ok_or_else(misshaped)?)
            }
            Step::Transposed if weight => Box::new(Transposed::new(payload).ok_or_else(misshaped)?),
            Step::Same | Step::Queries | Step::Keys | Step::Norm | Step::Transposed => payload,
            Step::Expert | Step::Head => {
                for (place, part) in slices(payload).ok_or_else(misshaped)?.into_iter().enumerate() {
                    self.push(from.replace("{e}", &place.to_string()), part, false)?;
                }
                return Ok(());
            }
            Step::Halves(_) | Step::ExpertHalves(_) => {
                let Some((other_is_second, other)) = self.halves.remove(&from) else {
                    self.halves.insert(from, (second, payload));
                    return Ok(());
                };
                let (first, last) = if other_is_second { (payload, other) } else { (other, payload) };
                let joined = (other_is_second != second).then(|| join_halves(first, last)).flatten();
                let joined = joined.ok_or_else(misshaped)?;
                return self.push(from, joined, false);
            }
        };
        let is_shifted = step == Step::Norm && weight && self.family.norm_offset != 0.0;
        self.push(from, payload, is_shifted)
    }

    /// Adds a tensor. One of f32 was widened on the way in, unless it has values that the model's own type has not: then it
    /// was f32 before, or its values were asked for in f32. What was shifted was rounded, so it is rounded back.
    fn push(&mut self, name: String, payload: Box<dyn Payload + 's>, is_shifted: bool) -> Result<()> {
        let payload = match self.element {
            Some(dtype) if payload.dtype() == DType::F32 && (is_shifted || Narrowed::is_exact(&*payload, dtype)?) => {
                Box::new(Narrowed::new(payload, dtype))
            }
            _ => payload,
        };
        self.out.push(SourceTensor {
            name,
            source_offset: p64_core::layout::tensor::RawTensorEntry::NO_SOURCE,
            source_name_hash: None,
            role: None,
            payload,
        });
        Ok(())
    }
}

/// The name on the other side, the step, and whether it is the second half of two.
fn find(rules: &[&[Rule]], name: &str) -> Option<(String, Step, bool)> {
    let (stem, suffix) = match (name.strip_suffix(".weight"), name.strip_suffix(".bias")) {
        (Some(stem), _) => (stem, ".weight"),
        (_, Some(stem)) => (stem, ".bias"),
        _ => return None,
    };
    rules.iter().flat_map(|rules| rules.iter()).find_map(|rule| {
        let second = match rule.step {
            Step::Halves(second) | Step::ExpertHalves(second) => Some(second),
            _ => None,
        };
        let (layer, is_second) = match (fit(rule.to, stem), second.and_then(|second| fit(second, stem))) {
            (Some((layer, _)), _) => (layer, false),
            (None, Some((layer, _))) => (layer, true),
            (None, None) => return None,
        };
        // Of experts, transformers writes one by one what it can also read whole.
        let from = match layer {
            Some(layer) => rule.from.replace("{}", &layer.to_string()),
            None => rule.from.to_owned(),
        };
        Some((format!("{from}{suffix}"), rule.step, is_second))
    })
}

/// The parts along the last dimension.
fn slices<'s>(payload: Box<dyn Payload + 's>) -> Option<Vec<Box<dyn Payload + 's>>> {
    let shape = payload.shape();
    if shape.elements()? == 0 {
        return None;
    }
    let (&count, dims) = shape.dims().split_last()?;
    let part = Shape::new(dims)?;
    let len = payload.dtype().byte_len(&part).ok().flatten()?;
    let whole: Arc<dyn Payload + 's> = Arc::from(payload);
    (0..u64::from(count))
        .map(|place| {
            Some(Box::new(Part::new(Arc::clone(&whole), place.checked_mul(len)?, part)?) as Box<dyn Payload + 's>)
        })
        .collect()
}

/// Two tensors as the halves of the rows of one, matrix by matrix.
fn join_halves<'s>(first: Box<dyn Payload + 's>, last: Box<dyn Payload + 's>) -> Option<Box<dyn Payload + 's>> {
    let shape = first.shape();
    if shape != last.shape() || shape.elements()? == 0 {
        return None;
    }
    let (width, rows, matrices) = match *shape.dims() {
        [width, rows] => (width, rows, 1),
        [width, rows, matrices] => (width, rows, matrices),
        _ => return None,
    };
    let half = Shape::new(&[width, rows])?;
    let len = first.dtype().byte_len(&half).ok().flatten()?;
    let wholes: [Arc<dyn Payload + 's>; 2] = [Arc::from(first), Arc::from(last)];
    let mut parts: Vec<Box<dyn Payload + 's>> = Vec::new();
    for matrix in 0..u64::from(matrices) {
        for whole in &wholes {
            parts.push(Box::new(Part::new(Arc::clone(whole), matrix.checked_mul(len)?, half)?));
        }
    }
    let dims = [width, rows.checked_mul(2)?, matrices];
    let shape = Shape::new(if shape.rank() == 2 { dims.get(..2)? } else { &dims })?;
    Some(Box::new(Joined::new(shape, parts)?))
}
