//! A GGUF or a container as a [`SourceModel`].

use super::{OpenSource, SourceModel};
use crate::convert::provenance::{Provenance, default_order};
use crate::error::{Error, Result};
use crate::gguf::{GgufFile, GgufSet};
use crate::map::MappedSet;
use crate::write::{self, Pairs};
use p64_core::metadata::Metadata;

impl<'s> SourceModel<'s> {
    /// The model of a GGUF, or of all files of a split one.
    ///
    /// # Errors
    /// [`Error::Refused`] when the files have several versions.
    pub fn of_gguf(set: &'s GgufSet) -> Result<Self> {
        let mut versions = set.parts().iter().map(|part| part.gguf().version());
        let version = versions.next().unwrap_or_default();
        if let (Some(other), Some(first)) = (versions.find(|&other| other != version), set.parts().first()) {
            let reason = format!("the files of the set have versions {version} and {other}");
            return Err(Error::refused(first.path(), reason));
        }
        let mut provenance = Pairs::new();
        provenance.str("p64.source.format", &format!("gguf v{version}"));
        if set.parts().len() > 1 {
            let tensors = set.parts().iter().map(|part| u32::try_from(part.gguf().tensors().len()).unwrap_or(u32::MAX));
            provenance.u32_array("p64.source.split.tensors", &tensors.collect::<Vec<_>>());
            let others = set.parts().iter().skip(1).map(GgufFile::gguf);
            let areas = others.flat_map(|gguf| {
                let metadata = gguf.metadata();
                write::area(u64::from(metadata.len()), metadata.pair_bytes())
            });
            provenance.u8_array("p64.source.split.metadata", &areas.collect::<Vec<_>>());
        }
        let metadata = Some(Pairs::from(&set.metadata()));
        Ok(Self { tensors: super::files::gguf_tensors(set), metadata, provenance, notes: Vec::new() })
    }

    /// The model of a container, or of all files of a split set. It remembers what the container says of its own source.
    ///
    /// # Errors
    /// [`Error::Refused`] for a container without `p64.metadata` that has hyperparameters or a tokenizer, and for provenance that
    /// contradicts the tensors.
    pub fn of_container(set: &'s MappedSet) -> Result<Self> {
        let path = set.path();
        let metadata = set.metadata()?;
        if metadata.is_none() && says_something(set) {
            let reason = "the container has hyperparameters or a tokenizer but no p64.metadata, from which both are made; \
                          convert it from its source";
            return Err(Error::refused(path, reason));
        }
        let own_keys = set.provenance_of_whole()?.unwrap_or_default();
        let known = Provenance::read(&set.provenance()?.unwrap_or(Metadata::EMPTY))
            .map_err(|key| Error::refused(path, format!("p64.provenance: {key} makes no sense")))?;
        let order =
            known.order.unwrap_or_else(|| default_order(set.tensors().map(|tensor| (tensor.index, tensor.info))));
        let mut by_index: Vec<_> =
            super::files::container_tensors(set).into_iter().map(|(i, t)| (i, Some(t))).collect();
        let mut tensors = Vec::with_capacity(by_index.len());
        for wanted in order {
            let at = by_index.binary_search_by_key(&wanted, |(index, _)| *index).ok();
            let tensor = at.and_then(|at| by_index.get_mut(at)).and_then(|(_, tensor)| tensor.take());
            let reason = "p64.source.tensor_order does not list each tensor once";
            tensors.push(tensor.ok_or_else(|| Error::refused(path, reason))?);
        }
        if let Some((_, Some(left))) = by_index.iter().find(|(_, tensor)| tensor.is_some()) {
            return Err(Error::refused(path, format!("p64.source.tensor_order does not list {:?}", left.name)));
        }
        let metadata = metadata.as_ref().map(Pairs::from);
        Ok(Self { tensors, metadata, provenance: own_keys, notes: Vec::new() })
    }
}

/// Whether the container knows something of the model that its tensors alone do not tell.
fn says_something(set: &MappedSet) -> bool {
    let hparams = set.hparams();
    let numbers = [hparams.n_embd, hparams.n_head, hparams.n_kv_head, hparams.vocab_size];
    numbers.iter().any(|number| number.get() != 0) || hparams.has_extension() || set.tokenizer().is_some()
}

impl OpenSource {
    /// The model as the converter takes it.
    ///
    /// # Errors
    /// As [`SourceModel::of_gguf`] and [`SourceModel::of_container`].
    pub fn model(&self) -> Result<SourceModel<'_>> {
        match self {
            Self::Gguf(set) => SourceModel::of_gguf(set),
            Self::P64(set) => SourceModel::of_container(set),
            Self::Safetensors(set) => crate::safetensors::raw_model(set),
        }
    }
}
