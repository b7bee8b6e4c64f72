//! What a container will hold, but for the digests of its source.

use super::digest::Input;
use super::recipe::{Recipe, choose};
use super::{ProduceOptions, hparams, provenance, tokenizer};
use crate::error::{Error, Result};
use crate::source::{SourceModel, SourceTensor};
use crate::write::{Model, Pairs, TensorDescription, file_order};
use p64_core::Role;
use p64_core::container::{METADATA_NAME, PROVENANCE_NAME};
use p64_core::layout::hparams::RawHParams;
use p64_core::metadata::Metadata;
use std::path::Path;

pub(super) struct Draft {
    /// Without the added tensors.
    pub base: Model,
    /// The blob of `p64.metadata`, where something is known of the model.
    pub metadata: Option<Vec<u8>>,
    /// `p64.provenance` without lengths, digests and order.
    known: Pairs,
    pub profile: String,
    /// Place in the container of each tensor of the source, unless the reader finds that by itself.
    order: Option<Vec<u32>>,
    /// What becomes of each tensor.
    pub recipes: Vec<Recipe>,
    /// What is not as it was asked for.
    pub notes: Vec<String>,
}

impl Draft {
    /// `path` is named in errors about the source.
    pub fn new(source: &SourceModel<'_>, inputs: &[Input<'_>], options: &ProduceOptions, path: &Path) -> Result<Self> {
        let refused = |reason: String| Error::refused(path, reason);
        if let Some(tensor) = source.tensors.iter().find(|tensor| tensor.name.starts_with("p64.")) {
            let reason = "names that begin with \"p64.\" are reserved for what a container adds";
            return Err(refused(format!("tensor {:?}: {reason}", tensor.name)));
        }
        let metadata = source.metadata.as_ref().map(Pairs::to_area);
        let keys = metadata.as_deref().map_or(Ok(Metadata::EMPTY), |area| Metadata::parse(area, 0));
        let keys = keys.map_err(|error| Error::core(path, error))?;
        let mut hparams = hparams::read(&keys).map_err(|(key, error)| refused(format!("{key}: {error}")))?;
        let tokenizer = tokenizer::read(&keys).map_err(refused)?;
        if metadata.is_none() {
            hparams.n_layer = layers(&source.tensors).into();
        }
        let raw_transcode = tokenizer.is_none() || !hparams::is_complete(&hparams);
        let (recipes, mut notes) = choose(&source.tensors, &keys, options);
        notes.extend(check_importance(&source.tensors, &recipes, options).map_err(refused)?);
        let described = source.tensors.iter().zip(&recipes).map(|(tensor, recipe)| describe(tensor, *recipe, &hparams));
        let tensors = described.collect::<Option<Vec<_>>>().ok_or_else(|| refused("a tensor overflows".to_owned()))?;
        let base = Model { hparams, raw_transcode, tokenizer, tensors };

        let profile = provenance::profile(&source.provenance, raw_transcode, is_changed(&recipes));
        let known = provenance::known(&source.provenance, &profile);
        let order = if provenance::keeps_order(&profile) {
            let (order, is_default) = order(&base.tensors, options.layout.layer_major);
            let is_split = inputs.len() > 1 || provenance::is_split(&source.provenance);
            (is_split || !is_default).then_some(order)
        } else {
            None
        };
        Ok(Self { base, metadata, known, profile, order, recipes, notes })
    }

    /// Whether a payload is replaced.
    pub fn is_changed(&self) -> bool {
        is_changed(&self.recipes)
    }

    /// The blob of `p64.provenance`.
    pub fn provenance(&self, inputs: &[Input<'_>], digests: &[String]) -> Vec<u8> {
        let sizes: Vec<u64> = inputs.iter().map(Input::len).collect();
        provenance::pairs(&self.known, &sizes, digests, self.order.as_deref()).to_area()
    }

    /// The model with the added tensors, which follow all others in every order.
    pub fn model(&self, inputs: &[Input<'_>], digests: &[String], output: &Path) -> Result<Model> {
        let mut model = self.base.clone();
        let metadata = self.metadata.as_ref().map(|area| (METADATA_NAME, area.len()));
        let provenance = (PROVENANCE_NAME, self.provenance(inputs, digests).len());
        for (name, size) in metadata.into_iter().chain([provenance]) {
            let size = size as u64;
            let added = TensorDescription::added(name, size);
            model.tensors.push(added.ok_or_else(|| Error::TooLarge { path: output.to_owned(), bytes: size })?);
        }
        Ok(model)
    }
}

/// Whether the importance matrix is this model's: its columns are those of the tensors. Answers what it leaves out.
fn check_importance(
    tensors: &[SourceTensor<'_>],
    recipes: &[Recipe],
    options: &ProduceOptions,
) -> std::result::Result<Option<String>, String> {
    let Some(imatrix) = &options.imatrix else { return Ok(None) };
    let (mut encoded, mut without) = (0u64, 0u64);
    for (tensor, _) in tensors.iter().zip(recipes).filter(|(_, recipe)| recipe.encoded().is_some()) {
        let found = imatrix.for_tensor(&tensor.name, &tensor.payload.shape());
        let found = found.map_err(|error| format!("tensor {:?}: {error}", tensor.name))?;
        encoded = encoded.saturating_add(1);
        without = without.saturating_add(u64::from(found.is_none()));
    }
    Ok((without > 0).then(|| format!("the importance matrix has nothing about {without} of {encoded} encoded tensors")))
}

fn is_changed(recipes: &[Recipe]) -> bool {
    recipes.iter().any(|recipe| !recipe.is_lossless())
}

/// `None` for a new payload of a length past 64 bits.
fn describe(tensor: &SourceTensor<'_>, recipe: Recipe, hparams: &RawHParams) -> Option<TensorDescription> {
    let SourceTensor { name, source_offset, payload, .. } = tensor;
    let n_layer = hparams.n_layer.get();
    let (dtype, shape) = (recipe.dtype(payload.dtype()), payload.shape());
    let size = if recipe.is_lossless() { payload.len() } else { dtype.byte_len(&shape).ok().flatten()? };
    let mut description = TensorDescription::from_gguf(name, n_layer, dtype, shape, size, *source_offset);
    if let Some((role, layer)) = tensor.role {
        let fits = layer.map_or(!role.is_layer(), |layer| role.is_layer() && layer < n_layer);
        (description.role, description.layer) = if fits { (role, layer) } else { (Role::UNKNOWN, None) };
    }
    if let Some(hash) = tensor.source_name_hash {
        description.source_name_hash = hash;
    }
    Some(description)
}

/// Layers of a model of which only the tensors are known.
fn layers(tensors: &[SourceTensor<'_>]) -> u32 {
    let layers = tensors.iter().filter_map(|tensor| tensor.role?.1);
    layers.max().map_or(0, |last| last.saturating_add(1))
}

/// The place of each tensor in the container, and whether its reader finds them by itself.
fn order(tensors: &[TensorDescription], layer_major: bool) -> (Vec<u32>, bool) {
    let places = file_order(tensors, layer_major);
    let mut order = vec![0u32; places.len()];
    let mut in_file_order = Vec::with_capacity(places.len());
    for (place, &index) in (0u32..).zip(&places) {
        if let (Some(slot), Some(tensor)) = (order.get_mut(index), tensors.get(index)) {
            *slot = place;
            in_file_order.push((tensor.source_offset, tensor.size));
        }
    }
    let is_default = provenance::is_default_order(&in_file_order, &order);
    (order, is_default)
}
