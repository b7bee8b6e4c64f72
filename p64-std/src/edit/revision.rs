//! The edited container, planned: everything that follows from the changed keys and names.

use super::keys::{self, KeyChange};
use super::request::Edits;
use super::source::{Source, Stored};
use crate::chat::ChatTemplate;
use crate::convert::{hparams, tokenizer};
use crate::error::{Error, Result};
use crate::map::checksum;
use crate::tokenizer::Tokenizer;
use crate::write::{LayoutOptions, Model, Pairs, Plan, TensorDescription};
use p64_core::container::{METADATA_NAME, PROVENANCE_NAME};
use p64_core::forward::{Config, subject};
use p64_core::layout::flags::Flags;
use p64_core::layout::hparams::RawHParams;
use p64_core::metadata::{Metadata, Value};
use p64_core::{Code, Role};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Key of the provenance that lists what an edit has changed.
pub(crate) const EDITED: &str = "p64.edited";
const ORDER: &str = "p64.source.tensor_order";
const SCALARS: &str = "p64.source.safetensors.scalars";
const ALIAS: &str = "p64.alias.";
const TEMPLATE: &str = "tokenizer.chat_template";

/// Old and new names of tensors.
type Renamed = Vec<(String, String)>;

/// A container that differs from its source in keys and names.
pub(super) struct Revision {
    pub plan: Plan,
    /// Of each tensor of the planned model: its place among the source's tensors, or its bytes.
    pub payloads: Vec<Payload>,
    pub keys: Vec<KeyChange>,
    pub renamed: Renamed,
    pub rebuilt: Vec<&'static str>,
    pub warnings: Vec<String>,
}

pub(super) enum Payload {
    Stored(usize),
    Made(Vec<u8>),
}

/// One blob of the new file.
pub(super) enum Blob<'r> {
    /// Bytes of the old file.
    Stored(&'r Stored),
    /// The keys.
    Made(&'r [u8]),
}

impl Revision {
    pub fn new(source: &Source, edits: &Edits, path: &Path) -> Result<Self> {
        let refused = |reason: String| Error::refused(path, reason);
        let core = |error| Error::core(path, error);
        let before = area_of(source.metadata.as_deref()).map_err(core)?;
        let origin = area_of(source.provenance.as_deref()).map_err(core)?;
        refuse_part(&origin).map_err(refused)?;

        let (pairs, keys) = keys::apply(&before, &edits.changes).map_err(refused)?;
        let area = pairs.to_area();
        let after =
            Metadata::parse(&area, 0).map_err(|error| refused(format!("the edited keys are not valid: {error}")))?;
        let mut rebuilt = Vec::new();
        let hparams = new_hparams(source, &before, &after, &mut rebuilt).map_err(refused)?;
        let section = new_tokenizer(source, &before, &after, &keys, &mut rebuilt).map_err(refused)?;
        let raw_transcode = is_raw(source, &hparams, section.is_some()).map_err(refused)?;
        let mut warnings = Vec::new();
        check_runs(source, (&before, &after), &hparams, &mut warnings).map_err(refused)?;
        check_template(&after, &keys, &mut warnings);

        let (own, renamed) = rename(source, edits, hparams.n_layer.get()).map_err(refused)?;
        for (tensor, Stored { description, .. }) in own.iter().zip(&source.tensors) {
            if tensor.role != description.role && matches!(tensor.role, Role::Unknown(_)) {
                let (old, new, role) = (&description.name, &tensor.name, description.role);
                warnings.push(format!("tensor {old} had the role {role}; under the name {new} it has none"));
            }
        }
        if let Some(tensor) = own.iter().find(|tensor| tensor.dtype.byte_len(&tensor.shape).ok().flatten().is_none()) {
            let reason = format!("tensor {} has a type of unknown size ({})", tensor.name, tensor.dtype.id());
            return Err(refused(format!("{reason}, which this build does not write")));
        }
        let flags = source.header.flags();
        let options = LayoutOptions {
            page_size: source.header.page_size.get(),
            layer_major: flags.contains(Flags::LAYER_MAJOR),
            pack: flags.contains(Flags::LAYER_PACK),
            schedule: flags.contains(Flags::LAYER_SCHEDULE),
        };
        let is_changed = !keys.is_empty() || !renamed.is_empty();
        let provenance = if is_changed {
            let order = crate::write::file_order(&own, options.layer_major);
            Some(new_provenance(source, &origin, &order, &keys, &renamed).to_area())
        } else {
            source.provenance.clone()
        };
        let mut payloads: Vec<Payload> = (0..own.len()).map(Payload::Stored).collect();
        let mut tensors = own;
        let metadata = (source.metadata.is_some() || !pairs.is_empty()).then(|| area.clone());
        for (name, bytes) in [(METADATA_NAME, metadata), (PROVENANCE_NAME, provenance)] {
            let Some(bytes) = bytes else { continue };
            let size = bytes.len() as u64;
            let added = TensorDescription::added(name, size);
            tensors.push(added.ok_or_else(|| Error::TooLarge { path: path.to_owned(), bytes: size })?);
            payloads.push(Payload::Made(bytes));
        }
        let model = Model { hparams, raw_transcode, tokenizer: section, tensors };
        let mut plan = Plan::new(&model, &options).map_err(|error| error.about(path))?;
        // Coordinates need not be the projection's; with another number of layers they are.
        plan.replace_manifold(&source.manifold);
        Ok(Self { plan, payloads, keys, renamed, rebuilt, warnings })
    }

    pub const fn is_changed(&self) -> bool {
        !self.keys.is_empty() || !self.renamed.is_empty()
    }

    /// The blobs in file order, each with its range in the new file.
    pub fn blobs<'r>(&'r self, source: &'r Source) -> Vec<(Blob<'r>, std::ops::Range<u64>)> {
        let blob = |index: usize| match self.payloads.get(index)? {
            Payload::Stored(place) => source.tensors.get(*place).map(Blob::Stored),
            Payload::Made(bytes) => Some(Blob::Made(bytes)),
        };
        self.plan.blobs().filter_map(|(index, range)| Some((blob(index)?, range))).collect()
    }

    /// Everything before the first blob: the sections and the checksum table.
    pub fn front(&self, source: &Source) -> Vec<u8> {
        let mut front = self.plan.front().to_vec();
        let own = checksum(&front);
        front.extend_from_slice(&own.to_le_bytes());
        for (blob, _) in self.blobs(source) {
            let crc = match blob {
                Blob::Stored(stored) => stored.crc,
                Blob::Made(bytes) => checksum(bytes),
            };
            front.extend_from_slice(&crc.to_le_bytes());
        }
        front
    }
}

fn area_of(area: Option<&[u8]>) -> p64_core::Result<Metadata<'_>> {
    area.map_or(Ok(Metadata::EMPTY), |area| Metadata::parse(area, 0))
}

/// A file of a set says the same of the model as the others do; an edit of it alone would end that.
fn refuse_part(provenance: &Metadata<'_>) -> std::result::Result<(), String> {
    match provenance.get("split.count").and_then(Value::as_u64) {
        Some(count) if count > 1 => Err(format!(
            "this is one of the {count} files of a set; merge them (p64 merge), edit the result, split it again"
        )),
        _ => Ok(()),
    }
}

fn about_key((key, error): (String, p64_core::Error)) -> String {
    format!("{key}: {error}")
}

/// The record, with the fields that follow from a changed key.
fn new_hparams(
    source: &Source,
    before: &Metadata<'_>,
    after: &Metadata<'_>,
    rebuilt: &mut Vec<&'static str>,
) -> std::result::Result<RawHParams, String> {
    // Keys that were of no use before are of no use now; only what an edit breaks is its fault.
    let Ok(old) = hparams::read(before) else { return Ok(source.hparams) };
    let new = hparams::read(after).map_err(about_key)?;
    let mut own = source.hparams;
    macro_rules! follow {
        ($($field:ident)*) => { $(if old.$field != new.$field { own.$field = new.$field; })* };
    }
    follow!(n_layer n_embd n_head n_kv_head vocab_size rope_freq_base rope_scale);
    if own != source.hparams {
        rebuilt.push("hyperparameters");
    }
    Ok(own)
}

/// The section, built anew when a key changed that it is made of.
fn new_tokenizer(
    source: &Source,
    before: &Metadata<'_>,
    after: &Metadata<'_>,
    keys: &[KeyChange],
    rebuilt: &mut Vec<&'static str>,
) -> std::result::Result<Option<Vec<u8>>, String> {
    if !keys.iter().any(|change| change.key.starts_with("tokenizer.")) {
        return Ok(source.tokenizer.clone());
    }
    let new = tokenizer::read(after)?;
    let old = tokenizer::read(before).ok();
    if old.is_some_and(|old| old == new) {
        return Ok(source.tokenizer.clone());
    }
    rebuilt.push("tokenizer");
    if Tokenizer::from_metadata(before).is_ok() {
        Tokenizer::from_metadata(after).map_err(|error| format!("the edited tokenizer cannot be used: {error}"))?;
    }
    Ok(new)
}

/// Flag bit 1 of the new container.
fn is_raw(source: &Source, hparams: &RawHParams, has_tokenizer: bool) -> std::result::Result<bool, String> {
    let was_raw = source.header.flags().contains(Flags::RAW_TRANSCODE);
    let was_complete = source.tokenizer.is_some() && hparams::is_complete(&source.hparams);
    let is_complete = has_tokenizer && hparams::is_complete(hparams);
    if !was_raw && !is_complete {
        let reason = "the edit would leave the container without a tokenizer or without one of the numbers that a complete \
                      model has (layers, width, heads, vocabulary); those follow from general.architecture and its keys";
        return Err(reason.to_owned());
    }
    Ok(was_raw && (was_complete || !is_complete))
}

/// A model that this build can configure stays one.
fn check_runs(
    source: &Source,
    (before, after): (&Metadata<'_>, &Metadata<'_>),
    hparams: &RawHParams,
    warnings: &mut Vec<String>,
) -> std::result::Result<(), String> {
    let configure = |metadata: &Metadata<'_>, hparams: &RawHParams| {
        Config::read(metadata).and_then(|config| config.check_hparams(hparams))
    };
    if configure(before, &source.hparams).is_err() {
        return Ok(());
    }
    let Err(error) = configure(after, hparams) else { return Ok(()) };
    let key = subject(&error).map_or_else(String::new, |key| format!(" ({key})"));
    if error.code == Code::UnsupportedArchitecture {
        warnings.push("this build does not run the architecture that the model has now".to_owned());
        return Ok(());
    }
    Err(format!("the edit would make a model that does not run: {error}{key}"))
}

fn check_template(after: &Metadata<'_>, keys: &[KeyChange], warnings: &mut Vec<String>) {
    if !keys.iter().any(|change| change.key == TEMPLATE) {
        return;
    }
    if let Some(template) = after.get(TEMPLATE).and_then(Value::as_str)
        && let Err(error) = ChatTemplate::new(template, "", "")
    {
        warnings.push(error.to_string());
    }
}

/// The tensors under their new names. A renamed one has the role of its new name.
fn rename(
    source: &Source,
    edits: &Edits,
    n_layer: u32,
) -> std::result::Result<(Vec<TensorDescription>, Renamed), String> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    for (old, new) in &edits.renames {
        if [old, new].iter().any(|name| name.starts_with("p64.")) {
            return Err(format!("{old}={new}: names that begin with \"p64.\" are reserved for what a container adds"));
        }
        if names.insert(old, new).is_some() {
            return Err(format!("{old}: two new names for one tensor"));
        }
    }
    let same_layers = n_layer == source.hparams.n_layer.get();
    let mut renamed = Vec::new();
    let mut tensors = Vec::new();
    for Stored { description, .. } in &source.tensors {
        let new = names.remove(description.name.as_str());
        let mut tensor = description.clone();
        let name = new.unwrap_or(&description.name);
        if name != description.name || !same_layers {
            let by_name = TensorDescription::from_gguf(
                name,
                n_layer,
                tensor.dtype,
                tensor.shape,
                tensor.size,
                tensor.source_offset,
            );
            // The name in the source is still what it was.
            tensor = TensorDescription { source_name_hash: tensor.source_name_hash, ..by_name };
        }
        if name != description.name {
            renamed.push((description.name.clone(), name.to_owned()));
        }
        tensors.push(tensor);
    }
    match names.into_keys().min() {
        Some(missing) => Err(format!("{missing}: there is no such tensor; p64 inspect --tensors lists them")),
        None => Ok((tensors, renamed)),
    }
}

/// The keys of the conversion, and what was changed since.
fn new_provenance(
    source: &Source,
    before: &Metadata<'_>,
    order: &[usize],
    keys: &[KeyChange],
    renamed: &[(String, String)],
) -> Pairs {
    // Place in the new table by place in the old one.
    let mut places: HashMap<u32, u32> = HashMap::new();
    for (place, old) in (0u32..).zip(order.iter().filter_map(|&old| source.tensors.get(old))) {
        places.insert(old.index, place);
    }
    let names: HashMap<&str, &str> = renamed.iter().map(|(old, new)| (old.as_str(), new.as_str())).collect();
    let mut edited: BTreeSet<String> = BTreeSet::new();
    let mut pairs = Pairs::new();
    let mut has_order = false;
    for (key, value) in before.iter() {
        match (key, value) {
            (EDITED, Value::Array(list)) => {
                edited.extend(list.iter().filter_map(|text| text.as_str().map(str::to_owned)))
            }
            (ORDER, Value::Array(old)) => {
                let moved = |index: Value<'_>| {
                    let index = index.as_u64().and_then(|index| u32::try_from(index).ok())?;
                    places.get(&index).copied()
                };
                let moved: Option<Vec<u32>> = old.iter().map(moved).collect();
                has_order = true;
                match moved {
                    Some(moved) => pairs.u32_array(ORDER, &moved),
                    // It made no sense before either.
                    None => pairs.value(key, value),
                };
            }
            (SCALARS, Value::Array(list)) => {
                let list = list.strings().map(|name| std::str::from_utf8(name).unwrap_or_default());
                pairs
                    .str_array(SCALARS, &list.map(|name| names.get(name).copied().unwrap_or(name)).collect::<Vec<_>>());
            }
            (key, Value::String(target)) if key.starts_with(ALIAS) => {
                let name = key.strip_prefix(ALIAS).unwrap_or_default();
                let name = names.get(name).copied().unwrap_or(name);
                let target = std::str::from_utf8(target).unwrap_or_default();
                pairs.str(&format!("{ALIAS}{name}"), names.get(target).copied().unwrap_or(target));
            }
            _ => {
                pairs.value(key, value);
            }
        }
    }
    if !has_order && before.get("p64.source.format").is_some() {
        let sorted = |stored: Vec<(u32, &Stored)>| {
            let mut keys: Vec<_> = stored
                .into_iter()
                .map(|(place, stored)| {
                    (stored.description.source_offset, !stored.range.is_empty(), place, stored.index)
                })
                .collect();
            keys.sort_unstable();
            keys.into_iter().map(|(_, _, place, old)| (place, old)).collect::<Vec<_>>()
        };
        let old = sorted(source.tensors.iter().map(|stored| (stored.index, stored)).collect());
        let new = order.iter().filter_map(|&index| source.tensors.get(index));
        let new = sorted((0u32..).zip(new).collect());
        // A rename can change the order of entries of equal offset.
        if !old.iter().map(|(_, old)| old).eq(new.iter().map(|(_, old)| old)) {
            let order: Vec<u32> = old.iter().filter_map(|(_, old)| places.get(old).copied()).collect();
            pairs.u32_array(ORDER, &order);
        }
    }
    edited.extend(keys.iter().map(|change| change.key.clone()));
    edited.extend(renamed.iter().map(|(old, new)| format!("{old}={new}")));
    pairs.str_array(EDITED, &edited.into_iter().collect::<Vec<_>>());
    pairs
}

/// What the keys of a conversion say was changed since: keys, and tensors as `OLD=NEW`.
pub(crate) fn edited<'a>(provenance: &Metadata<'a>) -> Vec<&'a str> {
    match provenance.get(EDITED) {
        Some(Value::Array(list)) => list.strings().filter_map(|text| std::str::from_utf8(text).ok()).collect(),
        _ => Vec::new(),
    }
}
