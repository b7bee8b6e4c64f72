//! The plans of a set's files, and of the whole container.

use super::contents::Contents;
use super::cut::{Lengths, Unit};
use super::keys::{IDENTITY_LEN, Membership, is_of_set};
use crate::error::{Error, Result};
use crate::write::{LayoutOptions, Model, Pairs, Plan, PlanError, TensorDescription};
use p64_core::container::{METADATA_NAME, PROVENANCE_NAME};
use p64_core::layout::PACK_ALIGN;
use p64_core::metadata::Metadata;
use std::path::Path;

/// The whole container of such contents, the added tensors last in the model.
pub(super) fn whole(contents: &Contents) -> std::result::Result<Plan, PlanError> {
    let mut model = contents.model.clone();
    let areas = [(METADATA_NAME, &contents.metadata), (PROVENANCE_NAME, &contents.provenance)];
    for (name, area) in areas.into_iter().filter_map(|(name, area)| Some((name, area.as_ref()?))) {
        model.tensors.push(added(name, area.len())?);
    }
    plan(&model, &contents.layout, contents.manifold.as_deref())
}

fn added(name: &str, len: usize) -> std::result::Result<TensorDescription, PlanError> {
    let bytes = len as u64;
    TensorDescription::added(name, bytes).ok_or(PlanError::TooLarge { bytes })
}

fn plan(model: &Model, layout: &LayoutOptions, manifold: Option<&[u8]>) -> std::result::Result<Plan, PlanError> {
    let mut plan = Plan::new(model, layout)?;
    if let Some(records) = manifold {
        plan.replace_manifold(records);
    }
    Ok(plan)
}

pub(super) fn places(units: &[Unit]) -> Vec<u32> {
    let mut places: Vec<u32> = units.iter().flat_map(|unit| unit.places.iter().copied()).collect();
    places.sort_unstable();
    places
}

/// The bytes of a file's `p64.provenance`; their number does not depend on `count` or `identity`.
pub(super) fn provenance(
    keys: Option<&Metadata<'_>>,
    at: usize,
    count: usize,
    (tensors, raw_transcode): (usize, bool),
    identity: &str,
    places: &[u32],
) -> Vec<u8> {
    let mut pairs = Pairs::new();
    for (key, value) in keys.into_iter().flat_map(Metadata::iter).filter(|(key, _)| !is_of_set(key)) {
        pairs.value(key, value);
    }
    let short = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
    let tensors = u32::try_from(tensors).unwrap_or(u32::MAX);
    let (number, count, places) = (short(at), short(count), places.to_vec());
    Membership { number, count, tensors, identity, raw_transcode, places }.push(&mut pairs);
    pairs.to_area()
}

/// The whole's provenance, checked to be one.
pub(super) fn first_keys<'c>(contents: &'c Contents, input: &Path) -> Result<Option<Metadata<'c>>> {
    let area = contents.provenance.as_deref().map(|area| Metadata::parse(area, 0));
    area.transpose().map_err(|error| Error::core(input, error))
}

/// Makes the plans of files.
pub(super) struct Maker<'c> {
    pub contents: &'c Contents,
    pub order: &'c [usize],
    pub keys: Option<Metadata<'c>>,
}

impl Maker<'_> {
    /// The file at position `at` of `count`.
    pub fn plan(&self, at: usize, count: usize, places: &[u32]) -> std::result::Result<Plan, PlanError> {
        let Contents { model, layout, metadata, manifold, .. } = self.contents;
        let is_first = at == 0;
        let position = |&place: &u32| self.order.get(usize::try_from(place).ok()?).copied();
        let own = places.iter().filter_map(position).filter_map(|index| model.tensors.get(index)).cloned();
        let mut tensors: Vec<TensorDescription> = own.collect();
        if let Some(metadata) = metadata.as_ref().filter(|_| is_first) {
            tensors.push(added(METADATA_NAME, metadata.len())?);
        }
        tensors.push(added(PROVENANCE_NAME, self.provenance_len(is_first, places))?);
        let tokenizer = model.tokenizer.clone().filter(|_| is_first);
        // A part of a model is no complete one, even where it has everything but tensors.
        let raw_transcode = model.raw_transcode || count > 1;
        self::plan(&Model { hparams: model.hparams, raw_transcode, tokenizer, tensors }, layout, manifold.as_deref())
    }

    fn provenance_len(&self, is_first: bool, places: &[u32]) -> usize {
        let keys = self.keys.as_ref().filter(|_| is_first);
        let identity = "0".repeat(IDENTITY_LEN);
        provenance(keys, 0, 1, (0, false), &identity, places).len()
    }
}

impl Lengths for Maker<'_> {
    fn exact(&self, is_first: bool, units: &[Unit]) -> Option<u64> {
        // Lengths are those of any file of several.
        let plan = self.plan(usize::from(!is_first), 2, &places(units)).ok()?;
        Some(plan.file_len())
    }

    fn base(&self, is_first: bool) -> u64 {
        self.exact(is_first, &[]).unwrap_or(u64::MAX)
    }

    fn growth(&self, unit: &Unit) -> u64 {
        let Contents { model, layout, .. } = self.contents;
        let page = u64::from(layout.page_size);
        let alignment = if layout.pack { PACK_ALIGN } else { page };
        // Its entry, its checksum, its place in the provenance, the NUL after its name.
        const RECORDS: u64 = 64 + 4 + 4 + 1;
        let tensors = unit.places.iter().filter_map(|&place| {
            let index = self.order.get(usize::try_from(place).ok()?)?;
            let tensor = model.tensors.get(*index)?;
            Some(tensor.size.saturating_add(alignment).saturating_add(RECORDS).saturating_add(tensor.name.len() as u64))
        });
        // The front's growth moves all blobs by up to one page more, and the unit begins one.
        tensors.fold(page.saturating_mul(2).saturating_add(128), u64::saturating_add)
    }
}
