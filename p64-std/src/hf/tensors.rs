//! The tensors of a folder as those of a GGUF.

use super::adapt::{Cast, Joined, Made, Order, Part, Permuted, Transposed};
use super::family::Model;
use super::json;
use super::names::{self, Found, Step};
use super::rope::Kind;
use crate::error::{Error, Result};
use crate::safetensors::{SafetensorsSet, StoredTensor};
use crate::source::{Payload, SourceTensor};
use p64_core::hash::fnv1a64;
use p64_core::layout::tensor::RawTensorEntry;
use p64_core::{DType, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bits that a name's hash keeps (spec §8).
const HASH_MASK: u64 = 0x0fff_ffff_ffff_ffff;
/// Bytes that two tensors are compared by at a time.
const PIECE: usize = 1 << 20;

/// The embedding and the projection to logits, which may be one.
const EMBEDDING: &str = "token_embd.weight";
const OUTPUT: &str = "output.weight";

/// The tensors of a model, and what was found on the way.
#[derive(Debug, Default)]
pub(super) struct Assembled<'s> {
    pub(super) tensors: Vec<SourceTensor<'s>>,
    /// Whether the projection to logits is the embedding.
    pub(super) tied: bool,
    pub(super) notes: Vec<String>,
}

/// Element type of the matrices: that of the first one.
pub(super) fn file_type(set: &SafetensorsSet) -> u32 {
    let first = set.tensors().find(|tensor| tensor.info().shape.len() > 1 && !names::is_derived(tensor.name()));
    match first.and_then(|tensor| tensor.info().dtype.ggml()) {
        Some(DType::F16) => 1,
        Some(DType::BF16) => 32,
        _ => 0,
    }
}

/// Converts every tensor of the set.
///
/// # Errors
/// A tensor that no rule of the family fits, two that become one, one whose shape its rule does not take; a missing expert.
pub(super) fn assemble<'s>(set: &'s SafetensorsSet, model: &Model<'_>, tied: bool) -> Result<Assembled<'s>> {
    let mut work = Work {
        model,
        set,
        out: Assembled::default(),
        stacks: BTreeMap::new(),
        layers: BTreeSet::new(),
        unused: Vec::new(),
    };
    for (name, factors) in work.made_factors()? {
        let payload = Made::vector(&factors).ok_or_else(|| model.config.refused("the rotary factors are too many"))?;
        work.out.tensors.push(SourceTensor::made(name, payload));
    }
    for stored in set.tensors() {
        work.add(&stored)?;
    }
    work.finish_stacks()?;
    work.tie(tied)?;
    work.check_names()?;
    if let Some(layer) = (0..model.layers).find(|layer| !work.layers.contains(layer)) {
        let layers = model.layers;
        return Err(model.config.refused(format!("it counts {layers} layers, and no tensor is of layer {layer}")));
    }
    if !work.unused.is_empty() {
        let count = work.unused.len();
        let first = work.unused.first().map(|name| json::quoted(name)).unwrap_or_default();
        work.out
            .notes
            .push(format!("{count} tensors that the model does not compute with were left out, first {first}"));
    }
    Ok(work.out)
}

/// Experts or heads that are to be stacked, by their number.
struct Stack<'s> {
    step: Step,
    parts: BTreeMap<u32, Box<dyn Payload + 's>>,
}

struct Work<'s, 'm> {
    model: &'m Model<'m>,
    set: &'s SafetensorsSet,
    out: Assembled<'s>,
    /// Experts and heads that are still apart, by the name of what they become.
    stacks: BTreeMap<String, Stack<'s>>,
    /// Layers that have a tensor.
    layers: BTreeSet<u32>,
    unused: Vec<String>,
}

impl<'s> Work<'s, '_> {
    fn refused(&self, stored: &StoredTensor<'s>, reason: impl Into<String>) -> Error {
        Error::refused(stored.file().path(), reason)
    }

    /// Divisors of frequencies, which transformers has in the configuration and GGUF as tensors.
    fn made_factors(&self) -> Result<Vec<(&'static str, Vec<f32>)>> {
        let rope = &self.model.rope;
        if let Some(factors) = rope.llama3_factors(self.model.turned(self.model.head_width()?)?) {
            return Ok(vec![("rope_freqs.weight", factors)]);
        }
        Ok(match &rope.full.kind {
            Kind::Long { short, long } => {
                vec![("rope_factors_long.weight", long.clone()), ("rope_factors_short.weight", short.clone())]
            }
            _ => Vec::new(),
        })
    }

    fn add(&mut self, stored: &StoredTensor<'s>) -> Result<()> {
        let name = stored.name();
        if names::is_derived(name) {
            self.unused.push(name.to_owned());
            return Ok(());
        }
        let Some(name) = names::text_part(name) else {
            self.unused.push(name.to_owned());
            return Ok(());
        };
        let family = self.model.family;
        let found = names::find(family.rules, &name)
            // GPT-2's first files have no prefix.
            .or_else(|| names::find(family.rules, &format!("transformer.{name}")).filter(|_| family.arch == "gpt2"));
        let Some(found) = found else {
            return Err(self.refused(stored, names::unknown(stored.name(), family.arch)));
        };
        if found.layer.is_some_and(|layer| layer >= self.model.layers) {
            let (layers, name) = (self.model.layers, json::quoted(stored.name()));
            return Err(self.refused(stored, format!("{name}: config.json counts {layers} layers")));
        }
        self.layers.extend(found.layer);
        self.place(stored, &found)
    }

    fn place(&mut self, stored: &StoredTensor<'s>, found: &Found) -> Result<()> {
        let model = self.model;
        let misshaped = || self.refused(stored, misshaped(stored));
        let payload: Box<dyn Payload + 's> = Box::new(stored.payload()?);
        let payload: Box<dyn Payload + 's> = match found.step {
            Step::Queries | Step::Keys if model.family.interleaves => {
                let heads = if found.step == Step::Queries { model.heads } else { model.kv_heads };
                Box::new(Permuted::new(payload, heads, Order::Interleave).ok_or_else(misshaped)?)
            }
            Step::Norm if found.suffix == ".weight" && model.family.norm_offset != 0.0 => {
                Box::new(Cast::new(payload, model.family.norm_offset).ok_or_else(misshaped)?)
            }
            Step::Transposed if found.suffix == ".weight" => Box::new(Transposed::new(payload).ok_or_else(misshaped)?),
            Step::Same | Step::Queries | Step::Keys | Step::Norm | Step::Transposed => payload,
            Step::Expert | Step::Head => {
                let place = found.expert.unwrap_or_default();
                let empty = Stack { step: found.step, parts: BTreeMap::new() };
                let stack = self.stacks.entry(found.to.clone()).or_insert(empty);
                if stack.parts.insert(place, payload).is_some() {
                    let reason = format!("two tensors become part {place} of {}", json::quoted(&found.to));
                    return Err(self.refused(stored, reason));
                }
                return Ok(());
            }
            Step::Halves(second) | Step::ExpertHalves(second) => {
                let (first_half, second_half) = halves(payload).ok_or_else(misshaped)?;
                self.push(found.to.clone(), None, first_half);
                self.push(found.name_of(second), None, second_half);
                return Ok(());
            }
        };
        self.push(found.to.clone(), Some(stored), payload);
        Ok(())
    }

    /// Adds a tensor in the type that GGUF has it in.
    fn push(&mut self, name: String, stored: Option<&StoredTensor<'s>>, payload: Box<dyn Payload + 's>) {
        let payload = if is_always_f32(&name, payload.shape().rank()) { Cast::to_f32(payload) } else { payload };
        let mut tensor = SourceTensor {
            name,
            source_offset: RawTensorEntry::NO_SOURCE,
            source_name_hash: None,
            role: None,
            payload,
        };
        if let Some(stored) = stored {
            tensor.source_offset = stored.info().begin;
            tensor.source_name_hash = Some(fnv1a64(stored.name().as_bytes()) & HASH_MASK);
        }
        self.out.tensors.push(tensor);
    }

    /// Joins experts and heads, of which none may be missing.
    fn finish_stacks(&mut self) -> Result<()> {
        for (name, Stack { step, parts: stack }) in std::mem::take(&mut self.stacks) {
            let folder = self.model.config;
            let expected = match step {
                Step::Expert => match folder.u32_if("num_local_experts")? {
                    Some(experts) => experts,
                    None => folder.u32("num_experts")?,
                },
                _ if name.contains("attn_q") => self.model.heads,
                _ => self.model.kv_heads,
            };
            let missing = (0..expected).find(|place| !stack.contains_key(place));
            let count = stack.len();
            if let (Some(place), _) | (None, Some((&place, _))) = (missing, stack.range(expected..).next()) {
                let kind = if step == Step::Expert { "experts" } else { "heads" };
                return Err(folder.refused(format!(
                    "{}: the tensors hold {count} {kind}, config.json counts {expected}; see number {place}",
                    json::quoted(&name)
                )));
            }
            let shape = stack.values().next().and_then(|first| {
                let mut dims = first.shape().dims().to_vec();
                dims.push(expected);
                Shape::new(&dims)
            });
            let same = stack.values().next().map(|first| first.shape());
            let alike = stack.values().all(|part| Some(part.shape()) == same);
            let joined = shape.filter(|_| alike).and_then(|shape| Joined::new(shape, stack.into_values().collect()));
            let joined = joined.ok_or_else(|| {
                folder.refused(format!("{}: its {count} parts differ in shape or type", json::quoted(&name)))
            })?;
            self.push(name, None, Box::new(joined));
        }
        Ok(())
    }

    /// Drops a projection to logits that is the embedding.
    fn tie(&mut self, tied: bool) -> Result<()> {
        let find = |name: &str| self.out.tensors.iter().position(|tensor| tensor.name == name);
        let (embedding, output) = (find(EMBEDDING), find(OUTPUT));
        let (Some(embedding), Some(output)) = (embedding, output) else {
            // Of GPT-2, Gemma and others there is never one.
            self.out.tied = output.is_none();
            if output.is_none() && !tied {
                let reason = "tie_word_embeddings is false, and there is no lm_head.weight: the files are not complete";
                return Err(self.model.config.refused(reason));
            }
            return Ok(());
        };
        // One that only happens to be equal stays, so that the folder comes back as it was.
        if !tied {
            return Ok(());
        }
        let pair = self.out.tensors.get(embedding).zip(self.out.tensors.get(output));
        if !pair.map_or(Ok(true), |(a, b)| are_equal(&*a.payload, &*b.payload))? {
            // transformers ties them whatever the file holds.
            self.out
                .notes
                .push("lm_head.weight was left out: tie_word_embeddings puts the embedding in its place".to_owned());
        }
        self.out.tensors.remove(output);
        self.out.tied = true;
        Ok(())
    }

    fn check_names(&self) -> Result<()> {
        let mut names: Vec<&str> = self.out.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        names.sort_unstable();
        if let Some(name) =
            names.windows(2).find_map(|pair| (pair.first() == pair.last()).then(|| pair.first())).flatten()
        {
            let reason = format!("two tensors become {}", json::quoted(name));
            return Err(Error::refused(
                self.set.files().first().map_or_else(|| std::path::Path::new(""), |f| f.path()),
                reason,
            ));
        }
        Ok(())
    }
}

fn misshaped(stored: &StoredTensor<'_>) -> String {
    let info = stored.info();
    format!(
        "{}: its shape {:?} or its type {} does not fit config.json",
        json::quoted(stored.name()),
        info.shape,
        info.dtype
    )
}

/// Whether llama.cpp keeps a tensor in f32 whatever the others are.
fn is_always_f32(name: &str, rank: usize) -> bool {
    let stem = name.strip_suffix(".weight").unwrap_or_default();
    let kept = ["_norm", ".ffn_gate_inp", ".ffn_gate_inp_shexp"].iter().any(|end| stem.ends_with(end));
    rank == 1 || kept || stem == "position_embd" || stem.is_empty()
}

/// The two halves of a tensor's rows, of every matrix where there are several.
fn halves<'s>(payload: Box<dyn Payload + 's>) -> Option<(Box<dyn Payload + 's>, Box<dyn Payload + 's>)> {
    let shape = payload.shape();
    let (width, rows, matrices) = match *shape.dims() {
        [width, rows] => (width, rows, 1),
        [width, rows, matrices] => (width, rows, matrices),
        _ => return None,
    };
    // Without elements any number of matrices would do.
    if rows % 2 != 0 || shape.elements()? == 0 {
        return None;
    }
    let whole: Arc<dyn Payload + 's> = Arc::from(payload);
    let half = Shape::new(&[width, rows / 2])?;
    let len = whole.dtype().byte_len(&half).ok().flatten()?;
    let half_of_all = |second: u64| -> Option<Box<dyn Payload + 's>> {
        let parts: Option<Vec<Box<dyn Payload + 's>>> = (0..u64::from(matrices))
            .map(|matrix| {
                let offset = matrix.checked_mul(2)?.checked_add(second)?.checked_mul(len)?;
                Some(Box::new(Part::new(Arc::clone(&whole), offset, half)?) as Box<dyn Payload + 's>)
            })
            .collect();
        let dims = [width, rows / 2, matrices];
        let shape = Shape::new(if shape.rank() == 2 { dims.get(..2)? } else { &dims })?;
        Some(Box::new(Joined::new(shape, parts?)?))
    };
    Some((half_of_all(0)?, half_of_all(1)?))
}

fn are_equal(a: &dyn Payload, b: &dyn Payload) -> Result<bool> {
    if (a.dtype(), a.shape(), a.len()) != (b.dtype(), b.shape(), b.len()) {
        return Ok(false);
    }
    let (mut one, mut other) = (Vec::new(), Vec::new());
    let mut at = 0u64;
    while at < a.len() {
        let len = usize::try_from(a.len().saturating_sub(at)).unwrap_or(PIECE).min(PIECE);
        one.resize(len, 0);
        other.resize(len, 0);
        a.read_at(at, &mut one)?;
        b.read_at(at, &mut other)?;
        if one != other {
            return Ok(false);
        }
        at = at.saturating_add(len as u64);
    }
    Ok(true)
}
