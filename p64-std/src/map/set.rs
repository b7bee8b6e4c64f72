//! A model of one container or of several: the files of a split set, mapped and checked against each other (spec §13.4).

mod check;
mod weights;

pub use weights::SetWeights;

use super::{MapOptions, MappedContainer};
use crate::convert::provenance::is_added;
use crate::error::{Error, Result};
use crate::part_name::{self, PartName};
use crate::split::keys::{Membership, of_whole};
use crate::write::Pairs;
use p64_core::Role;
use p64_core::container::{Container, Tensor, TensorInfo};
use p64_core::layout::flags::Flags;
use p64_core::layout::hparams::RawHParams;
use p64_core::metadata::Metadata;
use p64_core::tokenizer::Tokenizer;
use std::io;
use std::path::{Path, PathBuf};

/// A deviation that the policy let pass, with the position of its file in [`MappedSet::parts`].
pub type SetWarning = (usize, p64_core::Error);

/// All containers of one model: one file, or the files of a set. What it hands out is never a part of a model: opening
/// succeeds only when every file is there and they belong together.
#[derive(Debug)]
pub struct MappedSet {
    path: PathBuf,
    parts: Vec<MappedContainer>,
    /// What the files say of their set; `None` for a container that is no part of one.
    split: Option<Split>,
}

#[derive(Debug, Default)]
struct Split {
    identity: String,
    raw_transcode: bool,
    /// Part, and index in that part's table, of every tensor in the order of the whole model's table.
    order: Vec<(usize, u32)>,
    /// For each part, the place in the whole's table of each of its own tensors, by index in the part's table;
    /// `u32::MAX` for what the writer added.
    places: Vec<Vec<u32>>,
}

/// One tensor of a set.
#[derive(Clone, Copy, Debug)]
pub struct SetTensor<'s> {
    /// The file that holds it.
    pub part: &'s MappedContainer,
    /// Position of that file in [`MappedSet::parts`].
    pub file: usize,
    /// Place in the table of the whole model: of a single file its index there.
    pub index: u32,
    /// What the file's table says; its index is that in the file.
    pub info: TensorInfo<'s>,
}

impl<'s> SetTensor<'s> {
    /// The tensor's bytes, after its checksum has been verified.
    ///
    /// # Errors
    /// [`Error::Core`] with the file's path when the checksum does not match.
    pub fn tensor(&self) -> Result<Tensor<'s>> {
        self.part.container().tensor(&self.info).map_err(|error| Error::core(self.part.path(), error))
    }
}

impl MappedSet {
    /// Maps and validates the file, and when it is one of a set, all files of the set. Also answers the deviations that
    /// the policy let pass.
    ///
    /// # Errors
    /// As [`MappedContainer::open`] for each file; [`Error::Refused`] when a file of the set is missing (with the path
    /// where it is expected) or when the files do not belong together.
    pub fn open(path: &Path, options: &MapOptions) -> Result<(Self, Vec<SetWarning>)> {
        let (given, warnings) = MappedContainer::open(path, options)?;
        let membership = check::membership(&given)?;
        let Some((number, count)) = membership.map(|member| (usize::from(member.number), usize::from(member.count)))
        else {
            let warnings = warnings.into_iter().map(|warning| (0, warning)).collect();
            return Ok((Self { path: path.to_owned(), parts: vec![given], split: None }, warnings));
        };
        let mut given = Some((given, warnings));
        // A set of one file is a whole model under any name.
        let name = if count == 1 { None } else { Some(check::name(path, number, count)?) };
        let (mut parts, mut all) = (Vec::new(), Vec::new());
        for at in 0..count {
            let own = if at == number { given.take() } else { None };
            let (part, warnings) = match (own, &name) {
                (Some(own), _) => own,
                (None, Some(name)) => open_part(path, name, at, options)?,
                (None, None) => continue,
            };
            all.extend(warnings.into_iter().map(|warning| (at, warning)));
            parts.push(part);
        }
        let split = check::together(&parts)?;
        Ok((Self { path: path.to_owned(), parts, split: Some(split) }, all))
    }

    /// The files, in the order of the set.
    #[must_use]
    pub fn parts(&self) -> &[MappedContainer] {
        &self.parts
    }

    /// Whether the model lies in several files.
    #[must_use]
    pub fn is_split(&self) -> bool {
        self.parts.len() > 1
    }

    /// The container of a model that lies in one file.
    #[must_use]
    pub fn single(&self) -> Option<&Container<'_>> {
        match self.parts.as_slice() {
            [only] => Some(only.container()),
            _ => None,
        }
    }

    /// What the files of the set have in common and no other files, in 64 hexadecimal digits; `None` for a container
    /// that is no part of a set.
    #[must_use]
    pub fn identity(&self) -> Option<&str> {
        self.split.as_ref().map(|split| split.identity.as_str())
    }

    /// Where the model was opened: the path that was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first file: it carries the model's metadata, provenance and tokenizer.
    fn first(&self) -> Option<&MappedContainer> {
        self.parts.first()
    }

    /// The hyperparameters, which all files share.
    #[must_use]
    pub fn hparams(&self) -> RawHParams {
        self.first().map(|first| *first.container().hparams()).unwrap_or_default()
    }

    /// Transformer layers.
    #[must_use]
    pub fn n_layer(&self) -> u32 {
        self.hparams().n_layer.get()
    }

    /// Flags of the model as one container would have them.
    #[must_use]
    pub fn flags(&self) -> Flags {
        let all = self.parts.iter().fold(Flags::default(), |all, part| all.union(part.container().flags()));
        match &self.split {
            Some(split) if !split.raw_transcode => Flags(all.0 & !Flags::RAW_TRANSCODE.0),
            _ => all,
        }
    }

    /// The tokenizer section, when there is one.
    #[must_use]
    pub fn tokenizer(&self) -> Option<Tokenizer<'_>> {
        self.first().and_then(|first| first.container().tokenizer())
    }

    /// The source's key-value area, when there is one.
    ///
    /// # Errors
    /// [`Error::Core`] when its checksum does not match or it is malformed.
    pub fn metadata(&self) -> Result<Option<Metadata<'_>>> {
        let Some(first) = self.first() else { return Ok(None) };
        first.container().metadata().map_err(|error| Error::core(first.path(), error))
    }

    /// The converter's own keys, when there are some; of a set, with those of the first file's place in it.
    ///
    /// # Errors
    /// As [`MappedSet::metadata`].
    pub fn provenance(&self) -> Result<Option<Metadata<'_>>> {
        let Some(first) = self.first() else { return Ok(None) };
        first.container().provenance().map_err(|error| Error::core(first.path(), error))
    }

    /// The converter's own keys without those of a set; `None` where none are left.
    pub(crate) fn provenance_of_whole(&self) -> Result<Option<Pairs>> {
        let pairs = self.provenance()?.map(|provenance| of_whole(&provenance));
        Ok(pairs.filter(|pairs| self.split.is_none() || !pairs.is_empty()))
    }

    /// Bytes of all files.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.parts.iter().map(|part| part.container().file_len()).fold(0, u64::saturating_add)
    }

    /// The model's own tensors, without what a writer added, in the order of the whole model's table.
    pub fn tensors(&self) -> impl Iterator<Item = SetTensor<'_>> {
        let split =
            self.split.iter().flat_map(|split| (0u32..).zip(&split.order)).filter_map(|(index, &(file, own))| {
                let part = self.parts.get(file)?;
                Some(SetTensor { part, file, index, info: part.container().info(own)? })
            });
        let single = self.parts.iter().take(usize::from(self.split.is_none())).flat_map(|part| {
            let own = part.container().tensors().filter(|info| !is_added(info.name()));
            own.map(move |info| SetTensor { part, file: 0, index: info.index(), info })
        });
        split.chain(single)
    }

    /// The tensor of that name, among the model's own.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<SetTensor<'_>> {
        if is_added(name) {
            return None;
        }
        self.first_of(|container| container.find(name))
    }

    /// The first tensor of a role in a layer; globals belong to layer `n_layer`.
    #[must_use]
    pub fn find_role(&self, role: Role, layer: u32) -> Option<SetTensor<'_>> {
        self.first_of(|container| container.find_role(role, layer))
    }

    fn first_of<'s>(&'s self, find: impl Fn(&'s Container<'s>) -> Option<TensorInfo<'s>>) -> Option<SetTensor<'s>> {
        self.parts.iter().enumerate().find_map(|(file, part)| {
            let info = find(part.container())?;
            Some(SetTensor { part, file, index: self.place(file, info.index()), info })
        })
    }

    /// The tensor at a place of the whole model's table; of a single file also those that a writer added.
    #[must_use]
    pub fn info(&self, index: u32) -> Option<SetTensor<'_>> {
        let (file, own) = match &self.split {
            Some(split) => *split.order.get(usize::try_from(index).ok()?)?,
            None => (0, index),
        };
        let part = self.parts.get(file)?;
        Some(SetTensor { part, file, index, info: part.container().info(own)? })
    }

    /// The place in the whole model's table of an entry of one file.
    fn place(&self, file: usize, own: u32) -> u32 {
        let Some(split) = &self.split else { return own };
        let at = usize::try_from(own).unwrap_or(usize::MAX);
        split.places.get(file).and_then(|places| places.get(at)).copied().unwrap_or(u32::MAX)
    }
}

/// Opens another file of the set that `asked` belongs to.
fn open_part(
    asked: &Path,
    name: &PartName,
    at: usize,
    options: &MapOptions,
) -> Result<(MappedContainer, Vec<p64_core::Error>)> {
    let number = (at as u64).saturating_add(1);
    let path = name.path(number);
    MappedContainer::open(&path, options).map_err(|error| match error {
        Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            let of = name.count;
            let asked = asked.display();
            Error::refused(&path, format!("file {number} of the {of} of a set is missing; {asked} is another of them"))
        }
        other => other,
    })
}
