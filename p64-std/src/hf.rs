//! Hugging Face folders: `config.json`, the tokenizer's files and safetensors as a complete model.
//!
//! ```text
//! config.json                 -> a family, its keys                     family, rope, config
//! tokenizer.json and others   -> tokenizer.ggml.*                       tokenizer
//! model.safetensors           -> tensors under GGUF's names             names, tensors, adapt
//! ```
//!
//! The result is what llama.cpp's converter makes of the same folder: the same keys, the same names, the same bytes
//! (`docs/huggingface.md` lists the differences; `tests/tests/hf.rs` compares). Nothing that would change the results is
//! passed over: a class of models, a key of the configuration, a tensor or a pre-tokenizer that is not known is an error.

pub mod inverse;

mod adapt;
mod config;
mod family;
mod general;
mod json;
mod keys;
mod names;
mod rope;
mod tensors;
mod tokenizer;

use crate::error::Result;
use crate::safetensors::SafetensorsSet;
use crate::source::SourceModel;
use crate::write::Pairs;
use config::Config;
use family::Model;
use keys::Keys;
use std::path::Path;

/// Whether a folder holds what [`source_model`] reads: a `config.json` beside the tensors.
#[must_use]
pub fn is_complete_folder(path: &Path) -> bool {
    path.join("config.json").is_file()
}

/// The classes of models (`architectures` of a `config.json`) that are known.
#[must_use]
pub fn known_classes() -> Vec<&'static str> {
    family::classes().collect()
}

/// The complete model of a folder whose tensors are `set`.
///
/// # Errors
/// [`Error::Refused`](crate::Error::Refused) with the file and what is wrong with it: a class of models that is not known, a key
/// that is missing or not understood, a tensor that the family does not have, a tokenizer that cannot be had. What the
/// system answers.
pub fn source_model<'s>(set: &'s SafetensorsSet, folder: &Path) -> Result<SourceModel<'s>> {
    let mut config = Config::open(folder)?;
    let family = family::of(&config)?;
    config.set_defaults(family.defaults);
    family::check_activation(&config, family)?;
    let model = Model::read(&config, family, tensors::file_type(set))?;
    let tied = config.bool("tie_word_embeddings")?;

    let mut family_keys = Keys::new(family.arch);
    (family.keys)(&model, &mut family_keys)?;
    let assembled = tensors::assemble(set, &model, tied)?;
    let mut keys = Keys::new(family.arch);
    general::write(folder, family.arch, &assembled.tensors, &mut keys)?;
    keys.append(family_keys);
    keys.set("general.quantization_version", 2u32);
    let mut notes = set.notes();
    notes.extend(tokenizer::write(folder, &model, &mut keys)?);
    notes.extend(assembled.notes);
    notes.extend(config.finish()?);

    let mut provenance = Pairs::new();
    provenance.str("p64.source.format", "safetensors").str("p64.source.config", config.text());
    if assembled.tied {
        provenance.str("p64.alias.output.weight", "token_embd.weight");
    }
    Ok(SourceModel { tensors: assembled.tensors, metadata: Some(keys.to_pairs()), provenance, notes })
}
