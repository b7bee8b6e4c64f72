//! A validated P64 file.
//!
//! A [`Container`] exists only after every check of [`crate::validate`] has passed, so what it describes (names, shapes,
//! roles, extents, layers, coordinates, the tokenizer) is handed out without a `Result`. Bytes of a blob are a step
//! further: [`Container::tensor`] gives a [`Tensor`] only once its CRC-32C has matched. Under
//! [`Integrity::Full`](crate::validate::Integrity) that has happened before the container existed; under `Lazy` it
//! happens when the tensor is first taken. There is no other way to them.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::as_conversions, clippy::unwrap_used)
)]

mod find;
mod layers;
mod tensors;

pub use layers::LayerUnit;
pub use tensors::{Tensor, TensorInfo};

use crate::crc32c::Checksum;
use crate::error::{Code, Error, Place, Result};
use crate::layout::flags::Flags;
use crate::layout::header::{OffsetWidth, RawHeader};
use crate::layout::hparams::RawHParams;
use crate::layout::manifold::RawManifold;
use crate::metadata::Metadata;
use crate::num;
use crate::tokenizer::Tokenizer;
use crate::validate::{Integrity, OpenOptions, Parts, Sections, Storage, check_blob, validate};
use core::sync::atomic::{AtomicU8, Ordering};

/// Name of the tensor that carries the source's key-value area (spec §17).
pub const METADATA_NAME: &str = "p64.metadata";
/// Name of the tensor that carries the converter's own keys (spec §17).
pub const PROVENANCE_NAME: &str = "p64.provenance";

/// A validated file. Copying it copies a few references.
#[derive(Clone, Copy, Debug)]
pub struct Container<'a> {
    file: &'a [u8],
    parts: Parts<'a>,
    integrity: Integrity,
    checksum: Checksum,
    verified: &'a [AtomicU8],
}

impl<'a> Container<'a> {
    /// Validates `file` completely, under the compatible policy, with every blob's checksum.
    ///
    /// # Errors
    /// The first failed check. Files of more than [`MAX_UNINDEXED`](crate::validate::MAX_UNINDEXED) tensors need
    /// [`Container::open_with`] and an index.
    pub fn open(file: &'a [u8]) -> Result<Self> {
        Self::open_with(file, &OpenOptions::default(), Storage::default(), &mut |_| ())
    }

    /// Validates `file` as `options` say, with memory lent by the caller; `on_warning` is told each deviation that the
    /// policy lets pass.
    ///
    /// # Errors
    /// The first failed check.
    pub fn open_with(
        file: &'a [u8],
        options: &OpenOptions,
        storage: Storage<'a>,
        on_warning: &mut dyn FnMut(Error),
    ) -> Result<Self> {
        let Storage { names, verified } = storage;
        let parts = validate(file, options, names, on_warning)?;
        let (need, have) = (parts.entries.len(), verified.len());
        if have != 0 && have < need {
            return Err(Error::buffer_too_small(need, have));
        }
        // Memory that served another file says nothing about this one.
        verified.iter_mut().for_each(|slot| *slot.get_mut() = 0);
        let OpenOptions { integrity, checksum, .. } = *options;
        Ok(Self { file, parts, integrity, checksum, verified })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &'a RawHeader {
        self.parts.header
    }

    /// The header's flags.
    #[must_use]
    pub fn flags(&self) -> Flags {
        self.parts.header.flags()
    }

    pub(crate) fn offset_width(&self) -> OffsetWidth {
        self.parts.header.offset_width()
    }

    /// The hyperparameters.
    #[must_use]
    pub const fn hparams(&self) -> &'a RawHParams {
        self.parts.hparams
    }

    /// Transformer layers.
    #[must_use]
    pub const fn n_layer(&self) -> u32 {
        self.parts.hparams.n_layer.get()
    }

    /// Where the sections lie.
    #[must_use]
    pub const fn sections(&self) -> &Sections {
        &self.parts.sections
    }

    /// Length of the file in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        num::wide(self.file.len())
    }

    /// Coordinates of a layer; `layer == n_layer` is the record of the globals.
    #[must_use]
    pub fn manifold(&self, layer: u32) -> Option<&'a RawManifold> {
        self.parts.manifold.get(num::index(layer))
    }

    /// The tokenizer section, when there is one.
    #[must_use]
    pub const fn tokenizer(&self) -> Option<Tokenizer<'a>> {
        self.parts.tokenizer
    }

    /// The checksum table's value for the metadata (`None`) or for a tensor.
    #[must_use]
    pub fn stored_checksum(&self, tensor: Option<u32>) -> Option<u32> {
        let at = tensor.map_or(0, |index| num::index(index).saturating_add(1));
        self.parts.checksums.get(at).map(|crc| crc.get())
    }

    /// The tensor's bytes, after its checksum has been verified.
    ///
    /// # Errors
    /// [`Code::TensorChecksum`] under lazy integrity, [`Code::NoSuchTensor`] for an info of another container.
    pub fn tensor(&self, info: &TensorInfo<'a>) -> Result<Tensor<'a>> {
        let index = info.index();
        let own = self.info(index).filter(|own| own == info).ok_or_else(|| {
            Error::new(Code::NoSuchTensor, Place::File).values(u64::from(self.tensor_count()), u64::from(index))
        })?;
        let bytes = own.extent().of(self.file).unwrap_or_default();
        if self.integrity == Integrity::Lazy {
            let slot = self.verified.get(num::index(index));
            // Relaxed: the flag guards no other memory, and checking twice is harmless.
            if slot.is_none_or(|slot| slot.load(Ordering::Relaxed) == 0) {
                check_blob(bytes, index, self.parts.checksums, self.checksum)?;
                if let Some(slot) = slot {
                    slot.store(1, Ordering::Relaxed);
                }
            }
        }
        Ok(Tensor::new(own, bytes))
    }

    /// The tensor of that name with its bytes verified, or `None`.
    ///
    /// # Errors
    /// As [`Container::tensor`].
    pub fn tensor_named(&self, name: &str) -> Result<Option<Tensor<'a>>> {
        self.find(name).map(|info| self.tensor(&info)).transpose()
    }

    /// Verifies the checksum of every tensor not yet verified.
    ///
    /// # Errors
    /// [`Code::TensorChecksum`] of the first that fails.
    pub fn verify_all(&self) -> Result<()> {
        self.tensors().try_for_each(|info| self.tensor(&info).map(|_| ()))
    }

    /// The source's key-value area, `None` when the file carries none.
    ///
    /// # Errors
    /// [`Code::TensorChecksum`] under lazy integrity, the `Metadata*` codes when the area is malformed.
    pub fn metadata(&self) -> Result<Option<Metadata<'a>>> {
        self.area(METADATA_NAME)
    }

    /// The converter's own keys, `None` when the file carries none.
    ///
    /// # Errors
    /// As [`Container::metadata`].
    pub fn provenance(&self) -> Result<Option<Metadata<'a>>> {
        self.area(PROVENANCE_NAME)
    }

    fn area(&self, name: &str) -> Result<Option<Metadata<'a>>> {
        let Some(tensor) = self.tensor_named(name)? else { return Ok(None) };
        Metadata::parse(tensor.bytes(), tensor.info().extent().start()).map(Some)
    }
}
