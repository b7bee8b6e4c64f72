//! Whether files make a set.

use super::{Membership, PartName, Split, is_added, part_name};
use crate::error::{Error, Result};
use crate::map::MappedContainer;
use p64_core::container::METADATA_NAME;
use p64_core::layout::flags::Flags;
use std::collections::HashSet;
use std::path::Path;
use zerocopy::IntoBytes;

/// The flags that say how a file is laid out, which all files of a set share.
const LAYOUT: Flags = Flags::LAYER_MAJOR.union(Flags::LAYER_PACK).union(Flags::LAYER_SCHEDULE);

/// What a container says of the set it belongs to; `None` for one that is a whole model.
pub(super) fn membership(part: &MappedContainer) -> Result<Option<Membership<'_>>> {
    let core = |error| Error::core(part.path(), error);
    let Some(provenance) = part.container().provenance().map_err(core)? else { return Ok(None) };
    Membership::read(&provenance).map_err(|key| {
        Error::refused(part.path(), format!("p64.provenance: {key} is missing or makes no sense (§13.4)"))
    })
}

/// The names of the set that `path` says it is file `number` (from 0) of.
pub(super) fn name(path: &Path, number: usize, count: usize) -> Result<PartName> {
    let human = number.saturating_add(1);
    let named = PartName::of(path, part_name::P64);
    let fits = |name: &PartName| (name.number, name.count) == (human as u64, count as u64);
    named.filter(fits).ok_or_else(|| {
        let reason = format!(
            "this is file {human} of the {count} of a set, and its name must say so for the others to be found: \
             rename it to <stem>-{human:05}-of-{count:05}.p64"
        );
        Error::refused(path, reason)
    })
}

/// Checks all files of a set against the first, and works out the order of their tensors.
pub(super) fn together(parts: &[MappedContainer]) -> Result<Split> {
    let members = parts.iter().map(member).collect::<Result<Vec<_>>>()?;
    let (Some(first), Some(one)) = (parts.first(), members.first()) else { return Ok(Split::default()) };
    let mut names = HashSet::new();
    for (at, (part, member)) in parts.iter().zip(&members).enumerate() {
        agrees(at, parts.len(), (first, one), (part, member))?;
        let refuse = |reason: String| Err(Error::refused(part.path(), reason));
        for info in part.container().tensors().filter(|info| !is_added(info.name())) {
            if !names.insert(info.name()) {
                return refuse(format!("the tensor {:?} stands in another file of the set too", info.name()));
            }
        }
    }
    let (order, places) = places(parts, &members)?;
    Ok(Split { identity: one.identity.to_owned(), raw_transcode: one.raw_transcode, order, places })
}

fn member(part: &MappedContainer) -> Result<Membership<'_>> {
    membership(part)?.ok_or_else(|| {
        let reason = "this is a whole model of its own, no file of a set, although its name says so";
        Error::refused(part.path(), reason)
    })
}

type Member<'a> = (&'a MappedContainer, &'a Membership<'a>);

fn agrees(at: usize, count: usize, (first, one): Member<'_>, (part, member): Member<'_>) -> Result<()> {
    let refuse = |reason: String| Err(Error::refused(part.path(), reason));
    let other = first.path().display();
    if member.identity != one.identity {
        let (own, theirs) = (short(member.identity), short(one.identity));
        return refuse(format!(
            "this file belongs to another set ({own}...) than {other} ({theirs}...); split the model again or fetch the \
             files of one set"
        ));
    }
    if usize::from(member.count) != count {
        return refuse(format!("split.count is {}, {other} says {count}", member.count));
    }
    if usize::from(member.number) != at {
        let (number, expected) = (usize::from(member.number).saturating_add(1), at.saturating_add(1));
        return refuse(format!("this is file {number} of the set (split.no), its name says {expected}"));
    }
    if (member.tensors, member.raw_transcode) != (one.tensors, one.raw_transcode) {
        return refuse(format!("split.tensors.count or p64.split.raw_transcode differs from that of {other}"));
    }
    let (a, b) = (first.container(), part.container());
    let same_coordinates = (0..=a.n_layer()).all(|layer| a.manifold(layer) == b.manifold(layer));
    if a.hparams().as_bytes() != b.hparams().as_bytes() || !same_coordinates {
        return refuse(format!("the hyperparameters or the manifold differ from those of {other}"));
    }
    let layout = |container: &p64_core::Container<'_>| (container.flags().0 & LAYOUT.0, container.header().page_size);
    if layout(a) != layout(b) {
        return refuse(format!("the layout (page size or flag bits 4 to 6) differs from that of {other}"));
    }
    if at > 0 && (b.tokenizer().is_some() || b.find(METADATA_NAME).is_some()) {
        return refuse("a tokenizer or p64.metadata stands here, which only the first file of a set has".to_owned());
    }
    if count > 1 && !b.flags().contains(Flags::RAW_TRANSCODE) {
        return refuse("flag bit 1 is clear, but one file of several is no complete model".to_owned());
    }
    Ok(())
}

fn short(identity: &str) -> &str {
    identity.get(..8).unwrap_or(identity)
}

/// [`Split::order`].
type Order = Vec<(usize, u32)>;
/// [`Split::places`].
type Places = Vec<Vec<u32>>;

/// Where each tensor of the model is, and where each entry of each file stands in the whole.
fn places(parts: &[MappedContainer], members: &[Membership<'_>]) -> Result<(Order, Places)> {
    let mut order = Vec::new();
    let mut by_part = Vec::new();
    for (file, (part, member)) in parts.iter().zip(members).enumerate() {
        let refuse = |reason: String| Error::refused(part.path(), reason);
        let own: Vec<u32> =
            part.container().tensors().filter(|info| !is_added(info.name())).map(|info| info.index()).collect();
        if own.len() != member.places.len() {
            let (places, own) = (member.places.len(), own.len());
            return Err(refuse(format!("p64.split.tensors has {places} elements, the file {own} tensors")));
        }
        let entries = usize::try_from(part.container().tensor_count()).unwrap_or(0);
        let mut own_places = vec![u32::MAX; entries];
        for (&index, &place) in own.iter().zip(&member.places) {
            if let Some(slot) = usize::try_from(index).ok().and_then(|at| own_places.get_mut(at)) {
                *slot = place;
            }
            order.push((place, file, index));
        }
        by_part.push(own_places);
    }
    order.sort_unstable();
    let total = members.first().map_or(0, |member| u64::from(member.tensors));
    let (Some(first), found) = (parts.first(), order.len() as u64) else { return Ok((Vec::new(), by_part)) };
    if found != total {
        let reason = format!("the set has {total} tensors by split.tensors.count, its files hold {found}");
        return Err(Error::refused(first.path(), reason));
    }
    if let Some((expected, (place, file, _))) = (0u32..).zip(&order).find(|(expected, (place, ..))| expected != place) {
        let path = parts.get(*file).map_or(first.path(), |part| part.path());
        let reason = format!("p64.split.tensors: place {place} where {expected} is the next, so the files do not fit");
        return Err(Error::refused(path, reason));
    }
    Ok((order.into_iter().map(|(_, file, index)| (file, index)).collect(), by_part))
}
