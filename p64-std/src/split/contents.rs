//! What a whole container holds, but the payloads.

use crate::error::{Error, Result};
use crate::map::{MappedContainer, MappedSet};
use crate::write::{LayoutOptions, Model, TensorDescription};
use p64_core::container::{METADATA_NAME, PROVENANCE_NAME};
use p64_core::layout::flags::Flags;
use zerocopy::IntoBytes;

/// A container as it is before it is cut, or after its files have been put together.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The model's own tensors with everything before the blobs; without what a writer adds.
    pub model: Model,
    /// How the blobs are laid out, in the whole and in every file of a set.
    pub layout: LayoutOptions,
    /// The bytes of `p64.metadata`.
    pub metadata: Option<Vec<u8>>,
    /// The bytes of `p64.provenance`.
    pub provenance: Option<Vec<u8>>,
    /// The manifold's records, where they are not the projection of spec §9.
    pub manifold: Option<Vec<u8>>,
}

impl Contents {
    /// The contents of an open container or set, tensors in the order of the whole model's table.
    ///
    /// # Errors
    /// [`Error::Core`] when the metadata or provenance are damaged.
    pub fn of(set: &MappedSet) -> Result<Self> {
        let flags = set.flags();
        let n_layer = set.n_layer();
        let parts = set.parts().iter();
        let page_size = parts.clone().map(|part| part.container().header().page_size.get()).next().unwrap_or(0);
        let layout = LayoutOptions {
            page_size,
            layer_major: flags.contains(Flags::LAYER_MAJOR),
            pack: flags.contains(Flags::LAYER_PACK),
            schedule: flags.contains(Flags::LAYER_SCHEDULE),
        };
        let tensors = set.tensors().map(|tensor| {
            let info = tensor.info;
            let role = info.role();
            TensorDescription {
                name: info.name().to_owned(),
                role,
                layer: role.is_layer().then_some(info.manifold_idx()),
                dtype: info.dtype(),
                shape: info.shape(),
                size: info.extent().len(),
                source_offset: info.source_offset(),
                source_name_hash: info.source_name_hash(),
            }
        });
        let mut manifold = Vec::new();
        for record in parts.take(1).flat_map(|part| (0..=n_layer).filter_map(|layer| part.container().manifold(layer)))
        {
            manifold.extend_from_slice(record.as_bytes());
        }
        let model = Model {
            hparams: set.hparams(),
            raw_transcode: flags.contains(Flags::RAW_TRANSCODE),
            tokenizer: set.parts().first().and_then(tokenizer_section).map(<[u8]>::to_vec),
            tensors: tensors.collect(),
        };
        let area = |name: &str| -> Result<Option<Vec<u8>>> {
            let Some(first) = set.parts().first() else { return Ok(None) };
            let found = first.container().tensor_named(name).map_err(|error| Error::core(first.path(), error))?;
            Ok(found.map(|tensor| tensor.bytes().to_vec()))
        };
        let provenance = match set.identity() {
            // Of a container its very bytes.
            None => area(PROVENANCE_NAME)?,
            Some(_) => set.provenance_of_whole()?.map(|pairs| pairs.to_area()),
        };
        Ok(Self { model, layout, metadata: area(METADATA_NAME)?, provenance, manifold: Some(manifold) })
    }

    /// Bytes of the model's own payloads.
    #[must_use]
    pub fn payload_len(&self) -> u64 {
        self.model.tensors.iter().map(|tensor| tensor.size).fold(0, u64::saturating_add)
    }
}

/// The tokenizer section with its padding, where there is one.
fn tokenizer_section(part: &MappedContainer) -> Option<&[u8]> {
    let extent = part.container().sections().tokenizer;
    extent.of(part.front()).filter(|bytes| !bytes.is_empty())
}
