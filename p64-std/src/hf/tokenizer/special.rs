//! Special tokens: which ids they have, and which of them go around a text.

use super::files::{Files, kind_of};
use crate::error::Result;
use crate::hf::keys::Keys;
use serde_json::Value;
use std::collections::HashMap;

const ROLES: [&str; 7] = ["bos", "eos", "unk", "sep", "pad", "cls", "mask"];

/// The name of a role's key.
fn key_of(role: &str) -> String {
    let name = match role {
        "unk" => "unknown",
        "sep" => "seperator",
        "pad" => "padding",
        other => other,
    };
    format!("tokenizer.ggml.{name}_token_id")
}

/// What the files say of the special tokens.
#[derive(Default)]
struct Found<'f> {
    texts: HashMap<&'static str, &'f str>,
    /// In the order in which they were found.
    ids: Vec<(&'static str, u32)>,
    adds: Vec<(&'static str, bool)>,
}

impl Found<'_> {
    fn add(&mut self, role: &'static str, value: bool) {
        match self.adds.iter_mut().find(|(name, _)| *name == role) {
            Some((_, slot)) => *slot = value,
            None => self.adds.push((role, value)),
        }
    }

    fn adds(&self, role: &str) -> Option<bool> {
        self.adds.iter().find(|(name, _)| *name == role).map(|(_, value)| *value)
    }

    fn id(&mut self, role: &'static str, id: Option<u64>, limit: u32) {
        let known = self.ids.iter().any(|(name, _)| *name == role);
        if let Some(id) = id.and_then(|id| u32::try_from(id).ok()).filter(|&id| id < limit && !known) {
            self.ids.push((role, id));
        }
    }
}

/// Writes ids and flags. `by_rank` is whether the model is one of ranks; others take ids of any size in llama.cpp's converter,
/// but none that the vocabulary does not reach is kept here.
pub(super) fn write(files: &Files<'_>, by_rank: bool, limit: u32, keys: &mut Keys) -> Result<Vec<String>> {
    let mut found = Found::default();
    let mut roles: Vec<&'static str> = ROLES.to_vec();
    let added = match &files.json {
        Some(json) => json.added()?,
        None => Vec::new(),
    };
    if files.config.is_some() {
        for role in ROLES {
            if let Some(text) = files.named(&format!("{role}_token")) {
                found.texts.insert(role, text);
            }
        }
    }
    for (missing, other) in [("bos", "cls"), ("eos", "sep")] {
        if let Some(text) = found.texts.get(other).copied().filter(|_| !found.texts.contains_key(missing)) {
            found.texts.insert(missing, text);
        }
    }
    if let Some(json) = &files.json {
        for processor in json.steps("post_processor", "processors") {
            read_processor(processor, &mut found, &mut roles);
        }
    }
    for role in roles {
        if let Some(flag) = files.config(&format!("add_{role}_token")).and_then(Value::as_bool)
            && found.adds(role).is_none()
        {
            found.add(role, flag);
        }
        if let Some(text) = found.texts.get(role).copied() {
            let id = added.iter().find(|token| token.text == text).map(|token| u64::from(token.id));
            found.id(role, id, limit);
        }
    }
    for role in ROLES {
        found.id(role, files.model.get(&format!("{role}_token_id")).and_then(Value::as_u64), limit);
    }
    let notes = ends(files, &mut found, limit);
    for (role, id) in &found.ids {
        keys.set(key_of(role), *id);
    }
    for (role, value) in &found.adds {
        keys.set(format!("tokenizer.ggml.add_{role}_token"), *value);
    }
    if let Some(json) = &files.json
        && by_rank
    {
        for step in json.steps("normalizer", "normalizers") {
            match kind_of(step) {
                Some("Lowercase") => _ = keys.set("tokenizer.ggml.normalizer.lowercase", true),
                Some("StripAccents") => _ = keys.set("tokenizer.ggml.normalizer.strip_accents", true),
                _ => {}
            }
        }
    }
    Ok(notes)
}

/// What a post-processor puts around a text.
fn read_processor<'f>(processor: &'f Value, found: &mut Found<'f>, roles: &mut Vec<&'static str>) {
    match kind_of(processor) {
        Some("ByteLevel") => {
            for role in ["bos", "eos"] {
                if found.adds(role).is_none() {
                    found.add(role, false);
                }
            }
        }
        Some("RobertaProcessing") => {
            for role in ["bos", "eos", "sep"] {
                found.add(role, true);
            }
        }
        Some("TemplateProcessing") => read_template(processor, found, roles),
        _ => {}
    }
}

/// A template as `<s> $A </s>`: what stands first and last.
fn read_template<'f>(processor: &'f Value, found: &mut Found<'f>, roles: &mut Vec<&'static str>) {
    let list = |key: &str| processor.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let token = |item: Option<&'f Value>| item?.get("SpecialToken")?.get("id")?.as_str();
    let (single, pair) = (list("single"), list("pair"));
    let (mut first, mut last) = (None, None);
    if single.len() > 1 {
        first = token(single.first());
        last = token(single.last());
        if let Some(first) = first {
            let known = |found: &Found<'_>| ["bos", "cls"].iter().any(|role| found.texts.get(role) == Some(&first));
            if !known(found) {
                found.texts.entry("bos").or_insert(first);
                found.texts.entry("cls").or_insert(first);
            }
            let known = known(found);
            found.add("bos", known);
        }
        if let Some(last) = last {
            // What ended a text before ends a turn, then.
            match found.texts.get("eos").copied().filter(|eos| *eos != last) {
                Some(eos) => {
                    found.texts.insert("eot", eos);
                    roles.push("eot");
                    found.texts.insert("eos", last);
                }
                None => _ = found.texts.entry("eos").or_insert(last),
            }
            found.add("eos", true);
        }
    }
    // A, a separator, B: what is left of the pair without what is around both.
    let start = usize::from(first.is_some() && token(pair.first()) == first);
    let stop = usize::from(last.is_some() && token(pair.last()) == last);
    let inner = pair.get(start..pair.len().saturating_sub(stop)).unwrap_or_default();
    let [a, between @ .., b] = inner else { return };
    let sequence =
        |item: &Value| item.get("Sequence").and_then(|s| s.get("id")).and_then(Value::as_str).map(str::to_owned);
    if sequence(a).as_deref() != Some("A") || sequence(b).as_deref() != Some("B") || between.is_empty() {
        return;
    }
    let separates = |text: &str| ["sep", "eos"].iter().any(|role| found.texts.get(role) == Some(&text));
    let first_between = token(between.first()).is_some_and(|text| separates(text) && last.is_none());
    let second = between.len() == 2 && token(between.get(1)).is_some_and(separates);
    found.add("sep", first_between || second);
}

/// The ids at which generation ends: the first is EOS, others become EOT and EOM, which end it too.
fn ends(files: &Files<'_>, found: &mut Found<'_>, limit: u32) -> Vec<String> {
    let mut ids: Vec<u64> = Vec::new();
    for value in [files.model.get("eos_token_id"), files.generation.get("eos_token_id")].into_iter().flatten() {
        match value {
            Value::Array(list) => ids.extend(list.iter().filter_map(Value::as_u64)),
            other => ids.extend(other.as_u64()),
        }
    }
    let mut left = Vec::new();
    for id in ids {
        if found.ids.iter().any(|(role, known)| ["eos", "eot", "eom"].contains(role) && u64::from(*known) == id) {
            continue;
        }
        let free = ["eos", "eot", "eom"].into_iter().find(|role| found.ids.iter().all(|(name, _)| name != role));
        match free {
            Some(role) => found.id(role, Some(id), limit),
            None if !left.contains(&id) => left.push(id),
            None => {}
        }
    }
    if left.is_empty() {
        return Vec::new();
    }
    vec![format!("generation_config.json: generation also ends at the ids {left:?}, for which there is no key")]
}
