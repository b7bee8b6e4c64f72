//! A validated file behind a reader: its parts, read when they are asked for.
#![forbid(unsafe_code)]

use super::tokenizer::TokenizerInfo;
use super::validator::{Facts, Validator};
use super::window::Window;
use super::{ReadAt, index, names};
use crate::container::LayerUnit;
use crate::crc32c::Checksum;
use crate::error::{Code, Error, Place, Result};
use crate::extent::Extent;
use crate::layout::dtype::DType;
use crate::layout::flags::Flags;
use crate::layout::header::{OffsetWidth, RawHeader};
use crate::layout::hparams::RawHParams;
use crate::layout::manifold::RawManifold;
use crate::layout::role::Role;
use crate::layout::schedule::RawLayerScheduleEntry;
use crate::layout::shape::Shape;
use crate::layout::tensor::RawTensorEntry;
use crate::num;
use crate::validate::entries::shape_of;
use crate::validate::names::name_hash;
use crate::validate::schedule::Unit;
use crate::validate::{Checked, Integrity, NameSlot, OpenOptions, Sections, Storage};
use core::sync::atomic::{AtomicU8, Ordering};

/// A P64 that has passed every check, behind a reader.
///
/// What is asked for is read again, so every answer can be [`Code::ReadFailed`], and [`Code::ReadChanged`] where the bytes
/// make no sense any more.
#[derive(Debug)]
pub struct StreamContainer<'b, R> {
    window: Window<'b, R>,
    facts: Facts,
    /// Sorted by hash; empty without an index.
    names: &'b [NameSlot],
    verified: &'b [AtomicU8],
    integrity: Integrity,
    checksum: Checksum,
}

/// What the tensor table says of one tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamTensor {
    index: u32,
    shape: Shape,
    entry: RawTensorEntry,
    width: OffsetWidth,
}

impl StreamTensor {
    /// Place in the table, from 0.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The engine role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.entry.role()
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.entry.dtype()
    }

    /// The shape in GGML order.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Layer, or `n_layer` for globals and unknown roles.
    #[must_use]
    pub const fn manifold_idx(&self) -> u32 {
        self.entry.manifold_idx.get()
    }

    /// Where the payload lies in the file.
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.entry.extent(self.width)
    }

    /// Offset in the source's data region; [`RawTensorEntry::NO_SOURCE`] for tensors the converter added.
    #[must_use]
    pub const fn source_offset(&self) -> u64 {
        self.entry.source_offset.get()
    }

    /// FNV-1a of the source's name ([`crate::hash`]).
    #[must_use]
    pub const fn source_name_hash(&self) -> u64 {
        self.entry.source_name_hash.get()
    }
}

impl<'b, R: ReadAt> StreamContainer<'b, R> {
    /// Validates what `reader` gives, through `buffer` ([`MIN_BUFFER`](super::MIN_BUFFER) bytes or more): all steps of a
    /// [`Validator`] at once.
    ///
    /// # Errors
    /// The first failed check, or [`Code::ReadFailed`].
    pub fn open(
        reader: R,
        buffer: &'b mut [u8],
        storage: Storage<'b>,
        options: &OpenOptions,
        on_warning: &mut dyn FnMut(Error),
    ) -> Result<Self> {
        let mut validator = Validator::new(reader, buffer, storage, options)?;
        validator.run(on_warning)?;
        validator.finish()
    }

    pub(super) const fn new(
        window: Window<'b, R>,
        facts: Facts,
        names: &'b [NameSlot],
        verified: &'b [AtomicU8],
        integrity: Integrity,
        checksum: Checksum,
    ) -> Self {
        Self { window, facts, names, verified, integrity, checksum }
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &RawHeader {
        &self.facts.header
    }

    /// The hyperparameters.
    #[must_use]
    pub const fn hparams(&self) -> &RawHParams {
        &self.facts.hparams
    }

    /// Transformer layers.
    #[must_use]
    pub const fn n_layer(&self) -> u32 {
        self.facts.hparams.n_layer.get()
    }

    /// Number of tensors.
    #[must_use]
    pub const fn tensor_count(&self) -> u32 {
        self.facts.header.tensor_count.get()
    }

    /// Where the sections lie.
    #[must_use]
    pub const fn sections(&self) -> &Sections {
        &self.facts.sections
    }

    /// Length of the file in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.window.len()
    }

    /// What the tokenizer section says of itself, when there is one.
    #[must_use]
    pub const fn tokenizer(&self) -> Option<TokenizerInfo> {
        self.facts.tokenizer
    }

    /// Whether the file carries a layer schedule; otherwise [`StreamContainer::layer`] sums the table up.
    #[must_use]
    pub const fn has_schedule(&self) -> bool {
        self.facts.has_schedule
    }

    /// The tensor at a place in the table: one read.
    ///
    /// # Errors
    /// [`Code::NoSuchTensor`] past the last one.
    pub fn tensor(&mut self, index: u32) -> Result<StreamTensor> {
        let tensor = self.entry(index);
        self.window.outcome(tensor)
    }

    fn entry(&mut self, index: u32) -> Checked<StreamTensor> {
        if index >= self.tensor_count() {
            let error = Error::new(Code::NoSuchTensor, Place::File);
            return Err(self.window.refuse(error.values(u64::from(self.tensor_count()), u64::from(index))));
        }
        let entry = self.facts.entry(&mut self.window, index)?;
        let shape = shape_of(&entry).ok_or_else(|| self.window.changed(self.facts.entry_at(index)))?;
        Ok(StreamTensor { index, shape, entry, width: self.facts.header.offset_width() })
    }

    /// A tensor's name, in the front of `out`.
    ///
    /// # Errors
    /// [`Code::BufferTooSmall`] when `out` is shorter than the name.
    pub fn name<'o>(&mut self, tensor: &StreamTensor, out: &'o mut [u8]) -> Result<&'o str> {
        let strings = self.facts.sections.strings;
        let at = strings.start().saturating_add(u64::from(tensor.entry.name_offset.get()));
        let walked = names::walk(&mut self.window, at, strings.end());
        let len = walked.and_then(|name| name.len.ok_or_else(|| self.window.changed(at)));
        let text = len.and_then(|len| self.text(at, len, out));
        self.window.outcome(text)
    }

    /// The tensor of that name: `O(log n)` reads with a name index, else a pass over the table. Of duplicates, which only
    /// the compatible policy lets pass, the first.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn find(&mut self, name: &str) -> Result<Option<StreamTensor>> {
        let found = self.position(name);
        self.window.outcome(found)
    }

    fn position(&mut self, name: &str) -> Checked<Option<StreamTensor>> {
        let hash = name_hash(name);
        let indexed = !self.names.is_empty();
        let first = if indexed { index::lower_bound(self.names, hash) } else { 0 };
        for at in first..self.tensor_count() {
            let slot = if indexed { self.names.get(num::index(at)).copied() } else { None };
            if slot.is_some_and(|slot| slot.hash != hash) {
                break;
            }
            let index = slot.map_or(at, |slot| slot.index);
            let offset = self.facts.name_at(&mut self.window, index)?;
            if names::is(&mut self.window, offset, self.facts.sections.strings.end(), name)? {
                return self.entry(index).map(Some);
            }
        }
        Ok(None)
    }

    /// The first tensor of a role in a layer; globals belong to layer `n_layer`. In a layer-major file `O(log n)` reads and
    /// the layer's own entries, else a pass over the table.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn find_role(&mut self, role: Role, layer: u32) -> Result<Option<StreamTensor>> {
        let found = self.position_of(role, layer);
        self.window.outcome(found)
    }

    fn position_of(&mut self, role: Role, layer: u32) -> Checked<Option<StreamTensor>> {
        let count = self.tensor_count();
        let start = if self.facts.header.flags().contains(Flags::LAYER_MAJOR) { self.first_of(layer)? } else { 0 };
        for index in (start..count).chain(0..start) {
            let entry = self.facts.next_entry(&mut self.window, index)?;
            if entry.manifold_idx.get() == layer && entry.role() == role {
                return self.entry(index).map(Some);
            }
        }
        Ok(None)
    }

    /// The first entry of a layer-major table that is of no earlier layer.
    fn first_of(&mut self, layer: u32) -> Checked<u32> {
        let (mut low, mut high) = (0, self.tensor_count());
        while low < high {
            let middle = low.saturating_add(high.saturating_sub(low).div_euclid(2));
            if self.facts.entry(&mut self.window, middle)?.manifold_idx.get() < layer {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// A layer's residency unit: from the schedule, or computed in one pass over the table. `layer == n_layer` is the group
    /// of globals and unknown roles, which no schedule holds.
    ///
    /// # Errors
    /// [`Code::LengthMismatch`] for a layer past that, else those of the reader.
    pub fn layer(&mut self, layer: u32) -> Result<LayerUnit> {
        self.check_layer(layer)?;
        let unit = self.unit(layer);
        self.window.outcome(unit)
    }

    fn unit(&mut self, layer: u32) -> Checked<LayerUnit> {
        let width = self.facts.header.offset_width();
        let schedule = self.facts.sections.schedule.filter(|_| self.facts.has_schedule && layer < self.n_layer());
        let (unit, at) = if let Some(schedule) = schedule {
            let at = schedule.start().saturating_add(u64::from(layer).saturating_mul(64));
            let record: RawLayerScheduleEntry = self.window.record(at)?;
            (LayerUnit::of_record(layer, &record, width), at)
        } else {
            let mut unit = Unit::default();
            for index in 0..self.tensor_count() {
                let entry = self.facts.next_entry(&mut self.window, index)?;
                if entry.manifold_idx.get() == layer {
                    unit.add(&entry, width);
                }
            }
            (LayerUnit::of(layer, unit), self.facts.sections.tensors.start())
        };
        unit.ok_or_else(|| self.window.changed(at))
    }

    /// Coordinates of a layer; `layer == n_layer` is the record of the globals.
    ///
    /// # Errors
    /// As [`StreamContainer::layer`].
    pub fn manifold(&mut self, layer: u32) -> Result<RawManifold> {
        self.check_layer(layer)?;
        let at = self.facts.sections.manifold.start().saturating_add(u64::from(layer).saturating_mul(64));
        let record = self.window.record(at);
        self.window.outcome(record)
    }

    fn check_layer(&self, layer: u32) -> Result<()> {
        if layer <= self.n_layer() {
            return Ok(());
        }
        Err(Error::new(Code::LengthMismatch, Place::File).values(u64::from(self.n_layer()), u64::from(layer)))
    }

    /// Verifies a tensor's checksum by reading all of it, whatever was verified before.
    ///
    /// # Errors
    /// [`Code::TensorChecksum`].
    pub fn verify(&mut self, tensor: &StreamTensor) -> Result<()> {
        let (mut done, mut crc) = (0, 0);
        loop {
            let step = self.facts.blob_checksum(&mut self.window, self.checksum, tensor.index, &mut done, &mut crc);
            if self.window.outcome(step)? {
                break;
            }
        }
        if let Some(slot) = self.verified.get(num::index(tensor.index)) {
            slot.store(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Fills `out` with the tensor's bytes from `offset` on, relative to its payload. Under [`Integrity::Lazy`] the whole
    /// tensor is verified first, each time unless there is a record of verified blobs.
    ///
    /// # Errors
    /// [`Code::LengthMismatch`] for a range past the payload's end, [`Code::TensorChecksum`].
    pub fn read(&mut self, tensor: &StreamTensor, offset: u64, out: &mut [u8]) -> Result<()> {
        let payload = tensor.extent();
        let range = Extent::new(payload.start().saturating_add(offset), num::wide(out.len()));
        let Some(range) = range.filter(|range| range.end() <= payload.end()) else {
            let error = Error::new(Code::LengthMismatch, Place::Tensor(tensor.index));
            return Err(error.values(payload.len(), offset.saturating_add(num::wide(out.len()))));
        };
        let known = self.verified.get(num::index(tensor.index)).is_some_and(|slot| slot.load(Ordering::Relaxed) != 0);
        if self.integrity == Integrity::Lazy && !known {
            self.verify(tensor)?;
        }
        let read = self.window.aside(range.start(), out);
        self.window.outcome(read)
    }

    /// The text of a token, in the front of `out`; `None` past the vocabulary. Walks the vocabulary up to it.
    ///
    /// # Errors
    /// [`Code::BufferTooSmall`] when `out` is shorter than the text.
    pub fn token<'o>(&mut self, id: u32, out: &'o mut [u8]) -> Result<Option<&'o str>> {
        let Some(info) = self.facts.tokenizer.filter(|info| id < info.token_count) else { return Ok(None) };
        let text = self.string(info.tokens, u64::from(id), out);
        self.window.outcome(text).map(Some)
    }

    /// The two halves of a merge pair, in the front of `left` and `right`; `None` past the last pair.
    ///
    /// # Errors
    /// As [`StreamContainer::token`].
    pub fn merge<'o>(
        &mut self,
        index: u32,
        left: &'o mut [u8],
        right: &'o mut [u8],
    ) -> Result<Option<(&'o str, &'o str)>> {
        let Some(info) = self.facts.tokenizer.filter(|info| index < info.merge_count) else { return Ok(None) };
        let skip = u64::from(index).saturating_mul(2);
        let left = self.string(info.merges, skip, left);
        let left = self.window.outcome(left)?;
        let right = self.string(info.merges, skip.saturating_add(1), right);
        Ok(Some((left, self.window.outcome(right)?)))
    }

    /// The string that stands `skip` strings behind the one at file offset `at`.
    fn string<'o>(&mut self, at: u64, skip: u64, out: &'o mut [u8]) -> Checked<&'o str> {
        let end = self.facts.sections.tokenizer.end();
        let mut at = at;
        let mut left = skip;
        loop {
            let bytes = self.window.ahead(at, end, 4)?;
            let len = bytes.first_chunk().map(|len| u32::from_le_bytes(*len));
            let len = len.ok_or_else(|| self.window.changed(at))?;
            at = at.saturating_add(4);
            if left == 0 {
                return self.text(at, len, out);
            }
            at = at.saturating_add(u64::from(len));
            left = left.saturating_sub(1);
        }
    }

    /// `len` bytes of text at file offset `at`.
    fn text<'o>(&mut self, at: u64, len: u32, out: &'o mut [u8]) -> Checked<&'o str> {
        let (need, have) = (num::index(len), out.len());
        let out = out.get_mut(..need).ok_or_else(|| self.window.refuse(Error::buffer_too_small(need, have)))?;
        self.window.aside(at, out)?;
        core::str::from_utf8(out).map_err(|_| self.window.changed(at))
    }
}
