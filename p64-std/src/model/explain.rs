//! Why a model does not run, in one sentence with names where core's errors carry numbers.

use super::Source;
use crate::error::{Error, Result};
use p64_core::forward::{Architecture, subject};
use p64_core::metadata::{Metadata, Value};
use p64_core::{Code, DType, Place};
use std::path::Path;

/// What remains possible with a model that does not run.
const STILL: &str = "the file can still be converted, verified, inspected and exported";

/// One file of a split GGUF holds a part of the weights.
pub(super) fn refuse_part(path: &Path, metadata: &Metadata<'_>) -> Result<()> {
    let number = |key| metadata.get(key).and_then(Value::as_u64);
    let Some(count) = number("split.count").filter(|count| *count > 1) else { return Ok(()) };
    let part = number("split.no").unwrap_or(0).saturating_add(1);
    let reason = format!(
        "this is file {part} of the {count} of a split GGUF; convert the first of them, which takes in the others, and run \
         the result: p64 convert NAME-00001-of-{count:05}.gguf NAME.p64"
    );
    Err(Error::refused(path, reason))
}

/// A file with keys and no weights: a vocabulary.
pub(super) fn refuse_empty(source: &Source, metadata: &Metadata<'_>) -> Result<()> {
    let any = match source {
        Source::Gguf(mapped) => !mapped.gguf().tensors().is_empty(),
        Source::P64(set) => set.tensors().any(|tensor| !tensor.info.name().starts_with("p64.")),
    };
    if any {
        return Ok(());
    }
    let what = match metadata.get("tokenizer.ggml.tokens") {
        Some(_) => "a vocabulary without weights, so there is nothing to run; p64 tokenize takes it",
        None => "no weights, so there is nothing to run",
    };
    Err(Error::refused(source.path(), format!("the file holds {what}")))
}

/// Core's error about binding or configuring a model, as a person needs it.
pub(super) fn sentence(source: &Source, metadata: &Metadata<'_>, error: p64_core::Error) -> Error {
    let path = source.path();
    let architecture = metadata.str("general.architecture").ok().flatten().unwrap_or("?");
    let reason = match (error.code, subject(&error)) {
        (Code::UnsupportedArchitecture, _) => {
            let known = Architecture::SUPPORTED.join(", ");
            let architecture = shown(Value::String(architecture.as_bytes()));
            format!("this build does not run the architecture {architecture} (it runs: {known}); {STILL}")
        }
        (Code::MissingTensor, Some(name)) => {
            let name = match error.place {
                Place::Layer(layer) => format!("blk.{layer}.{name}"),
                _ => name.to_owned(),
            };
            format!("the tensor {name} is missing, and {architecture} needs it")
        }
        (Code::MissingKey, Some("general.architecture")) => {
            format!("the metadata key general.architecture is missing, so the model's family is unknown; {STILL}")
        }
        (Code::MissingKey, Some(name)) => {
            format!("the metadata key {architecture}.{name} is missing, and {architecture} needs it")
        }
        (Code::UnsupportedFeature, Some(name)) => unsupported(source, metadata, architecture, error.place, name),
        (Code::UnsupportedDType, _) => {
            let dtype = match u16::try_from(error.found).map(DType::from_id) {
                Ok(dtype) if dtype.is_known() => format!("type {dtype}"),
                _ => format!("an unknown type ({})", error.found),
            };
            let place = named(source, metadata, error.place);
            format!("{place}: this build does not compute with weights of {dtype}; {STILL}")
        }
        _ if matches!(error.place, Place::Tensor(_) | Place::Key(_)) => {
            // Core's sentence, with the name instead of the number.
            let sentence = error.to_string();
            let (_, rest) = sentence.split_once(": ").unwrap_or(("", &sentence));
            format!("{}: {rest}", named(source, metadata, error.place))
        }
        _ => return Error::core(path, error),
    };
    Error::refused(path, reason)
}

fn unsupported(source: &Source, metadata: &Metadata<'_>, architecture: &str, place: Place, name: &str) -> String {
    match place {
        Place::Tensor(_) => format!(
            "{} has no place in what this build computes for {architecture}, and leaving it out would give other text; \
             {STILL}",
            named(source, metadata, place)
        ),
        Place::Key(index) => {
            let value = pair(metadata, index).map_or_else(|| "set".to_owned(), |(_, value)| shown(value));
            let key = named(source, metadata, place);
            format!("{key} is {value}, which this build does not compute for {architecture}; {STILL}")
        }
        _ => format!("the model uses {name}, which this build does not compute for {architecture}; {STILL}"),
    }
}

/// A place with the name of its tensor or key.
fn named(source: &Source, metadata: &Metadata<'_>, place: Place) -> String {
    let name = match place {
        Place::Tensor(index) => tensor_name(source, index).map(|name| format!("tensor {name}")),
        Place::Key(index) => pair(metadata, index).map(|(key, _)| format!("key {key}")),
        _ => None,
    };
    name.unwrap_or_else(|| place.to_string())
}

fn pair<'a>(metadata: &Metadata<'a>, index: u32) -> Option<(&'a str, Value<'a>)> {
    metadata.iter().nth(usize::try_from(index).ok()?)
}

fn tensor_name(source: &Source, index: u32) -> Option<String> {
    match source {
        Source::P64(set) => set.info(index).map(|tensor| tensor.info.name().to_owned()),
        Source::Gguf(mapped) => {
            let tensor = mapped.gguf().tensors().get(usize::try_from(index).ok()?)?;
            Some(tensor.name.to_owned())
        }
    }
}

/// A value in a sentence; long texts are cut.
fn shown(value: Value<'_>) -> String {
    const MOST: usize = 40;
    match value {
        Value::String(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            match text.char_indices().nth(MOST) {
                Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or_default()),
                None => format!("{text:?}"),
            }
        }
        Value::Bool(value) => value.to_string(),
        Value::F32(value) => value.to_string(),
        Value::F64(value) => value.to_string(),
        Value::Array(array) => format!("an array of {}", array.len()),
        Value::U64(value) => value.to_string(),
        other => other.as_i64().map_or_else(|| other.kind().name().to_owned(), |value| value.to_string()),
    }
}
