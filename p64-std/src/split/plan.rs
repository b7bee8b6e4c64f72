//! A set of which every offset is known.

use super::contents::Contents;
use super::cut::{Cut, by_layers, by_size, units};
use super::keys::{IDENTITY_LEN, MAX_FILES};
use super::maker::{Maker, first_keys, places, provenance, whole};
use super::{SplitFile, SplitReport};
use crate::atomic_file::AtomicFile;
use crate::convert::source::hex;
use crate::error::{Error, Result};
use crate::map::checksum;
use crate::part_name::{self, PartName};
use crate::write::{self, BlobSink, Holes, Plan, PlanError};
use p64_core::metadata::Metadata;
use sha2::{Digest, Sha256};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which side of a copy failed.
#[derive(Debug)]
pub enum Failure {
    /// Reading a payload.
    Source(Error),
    /// Writing a file of the set.
    Output(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Source(error)
    }
}

/// The files of a set, and the whole container whose bytes give the set its identity.
#[derive(Clone, Debug)]
pub struct SetPlan {
    whole: Plan,
    metadata: Option<Vec<u8>>,
    provenance: Option<Vec<u8>>,
    /// For each of the model's own tensors, in the order of the whole's table, its position in the model.
    order: Vec<usize>,
    raw_transcode: bool,
    parts: Vec<Part>,
}

/// Files that are complete but for their identity, and not yet under their names.
#[derive(Debug)]
pub struct SetFiles {
    files: Vec<AtomicFile>,
    /// Of the model's own tensors, in the order of the whole's table.
    checksums: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Part {
    plan: Plan,
    /// The file's own tensors as places in the whole's table, in the order of the file's.
    places: Vec<u32>,
    layers: Option<(u32, u32)>,
}

impl SetPlan {
    /// Works out the cut and every offset. `input` is named in errors.
    ///
    /// # Errors
    /// [`Error::Refused`] and [`Error::TooLarge`] for contents that no container holds; [`Error::Usage`] for a cut into
    /// more than [`MAX_FILES`] files.
    pub fn new(contents: &Contents, cut: &Cut, input: &Path) -> Result<Self> {
        let refuse = |error: PlanError| error.about(input);
        let whole = whole(contents).map_err(refuse)?;
        let own = contents.model.tensors.len();
        let order: Vec<usize> = whole.blobs().map(|(index, _)| index).filter(|&index| index < own).collect();
        let maker = Maker { contents, order: &order, keys: first_keys(contents, input)? };
        let units = units(&contents.model, &order);
        let files = match cut.limit() {
            Some(limit) => by_size(units, limit, &maker),
            None => match cut {
                Cut::Layers(count) => by_layers(units, *count),
                _ => vec![units],
            },
        };
        if files.len() > MAX_FILES {
            let reason = format!("the cut {cut} gives {} files, a set has at most {MAX_FILES}", files.len());
            return Err(Error::Usage { reason });
        }
        let count = files.len();
        let parts = files.iter().enumerate().map(|(at, units)| {
            let places = places(units);
            let mut layers = units.iter().filter_map(|unit| unit.layer);
            let layers = layers.next().map(|first| (first, layers.next_back().unwrap_or(first)));
            Ok(Part { plan: maker.plan(at, count, &places)?, places, layers })
        });
        let parts = parts.collect::<std::result::Result<_, PlanError>>().map_err(refuse)?;
        let Contents { metadata, provenance, model, .. } = contents.clone();
        Ok(Self { whole, metadata, provenance, order, raw_transcode: model.raw_transcode, parts })
    }

    /// The whole container.
    pub(super) const fn whole(&self) -> &Plan {
        &self.whole
    }

    /// Number of files.
    #[must_use]
    pub fn files(&self) -> usize {
        self.parts.len()
    }

    /// The model's own tensors.
    #[must_use]
    pub fn tensor_count(&self) -> u64 {
        self.order.len() as u64
    }

    /// What a person should know: files that are larger than asked for.
    #[must_use]
    pub fn notes(&self, cut: &Cut) -> Vec<String> {
        let Some(limit) = cut.limit() else { return Vec::new() };
        let large = self.parts.iter().enumerate().filter(|(_, part)| part.plan.file_len() > limit);
        large
            .map(|(at, part)| {
                let (number, count) = (at.saturating_add(1), self.parts.len());
                let what = match part.layers {
                    Some((layer, _)) => format!("layer {layer} is not cut"),
                    None if part.places.is_empty() => "what comes before the tensors is not cut".to_owned(),
                    None => "a tensor is not cut".to_owned(),
                };
                let len = part.plan.file_len();
                format!("file {number} of {count} has {len} bytes, more than the {limit} asked for: {what}")
            })
            .collect()
    }

    /// A file of the set as the report tells it.
    fn describe(&self, at: usize, path: PathBuf) -> Option<SplitFile> {
        let part = self.parts.get(at)?;
        let (bytes, tensors) = (part.plan.file_len(), part.places.len() as u64);
        Some(SplitFile { path, bytes, tensors, layers: part.layers })
    }

    /// Bytes of zeros between and behind the blobs of all files.
    #[must_use]
    pub fn padding_len(&self) -> u64 {
        self.parts.iter().map(|part| part.plan.padding_len()).fold(0, u64::saturating_add)
    }

    /// The paths of the files: `output` is a stem, which may end in `.p64`, or the name of a file of such a set.
    ///
    /// # Errors
    /// [`Error::Usage`] for a path without a name.
    pub fn paths(&self, output: &Path) -> Result<Vec<PathBuf>> {
        let count = self.parts.len() as u64;
        let name = PartName::first(output, part_name::P64, count).ok_or_else(|| {
            let reason = format!("{}: the names of a set need something to begin with", output.display());
            Error::Usage { reason }
        })?;
        Ok((1..=count).map(|number| name.path(number)).collect())
    }

    /// Writes all files but for what follows from the payloads of all. `payload` is called once for each tensor, file by
    /// file, with its position in [`Contents::model`].
    ///
    /// # Errors
    /// What `payload` and the system answer.
    pub fn write(
        &self,
        paths: &[PathBuf],
        payload: &mut dyn FnMut(usize, &mut BlobSink<'_>) -> std::result::Result<(), Failure>,
    ) -> Result<SetFiles> {
        let mut files = Vec::new();
        let mut checksums = vec![0u32; self.order.len()];
        for (at, (part, path)) in self.parts.iter().zip(paths).enumerate() {
            let failed = |error| Error::io(path, "write it", error);
            let mut file = AtomicFile::create(path)?;
            let mut out = Holes::new(file.file());
            let areas = self.areas(at, "");
            let own = part.places.len();
            let written = write::write(&part.plan, &mut out, |index, sink| match part.places.get(index) {
                Some(&place) => payload(self.position(place), sink),
                None => {
                    let area = index.checked_sub(own).and_then(|added| areas.get(added));
                    sink.write_all(area.map_or(&[], Vec::as_slice)).map_err(Failure::from)
                }
            });
            written.map_err(|failure| match failure {
                Failure::Source(error) => error,
                Failure::Output(error) => failed(error),
            })?;
            out.finish().map_err(failed)?;
            // The first value is that of the front.
            let table = read_table(file.file(), &part.plan, own.saturating_add(1)).map_err(failed)?;
            for (&place, &crc) in part.places.iter().zip(table.iter().skip(1)) {
                if let Some(slot) = usize::try_from(place).ok().and_then(|place| checksums.get_mut(place)) {
                    *slot = crc;
                }
            }
            files.push(file);
        }
        Ok(SetFiles { files, checksums })
    }

    /// Gives the files their identity and puts all of them in their places. `provenance` is that of the whole container
    /// where it is not the planned one; it has its length.
    ///
    /// # Errors
    /// What the system answers.
    pub fn finish(&self, written: SetFiles, paths: &[PathBuf], provenance: Option<Vec<u8>>) -> Result<SplitReport> {
        let SetFiles { mut files, checksums } = written;
        let plan = match provenance {
            Some(area) => &Self { provenance: Some(area), ..self.clone() },
            None => self,
        };
        let identity = plan.identity(&checksums);
        for (at, ((part, path), file)) in plan.parts.iter().zip(paths).zip(&mut files).enumerate() {
            let area = plan.areas(at, &identity).pop().unwrap_or_default();
            let replaced = replace_last(file.file(), &part.plan, &area).and_then(|()| file.file().sync_all());
            replaced.map_err(|error| Error::io(path, "write it", error))?;
        }
        // No file appears before all are complete.
        for file in files {
            file.commit()?;
        }
        let files = paths.iter().enumerate().filter_map(|(at, path)| self.describe(at, path.clone())).collect();
        let (tensors, notes) = (self.tensor_count(), Vec::new());
        Ok(SplitReport { files, tensors, identity, notes, duration: Duration::ZERO })
    }

    /// Position in the model of the tensor at a place of the whole's table.
    fn position(&self, place: u32) -> usize {
        usize::try_from(place).ok().and_then(|place| self.order.get(place)).copied().unwrap_or(usize::MAX)
    }

    /// What is added to a file, in its order: metadata, provenance.
    fn areas(&self, at: usize, identity: &str) -> Vec<Vec<u8>> {
        let Some(part) = self.parts.get(at) else { return Vec::new() };
        let metadata = self.metadata.clone().filter(|_| at == 0);
        let keys = self.provenance.as_deref().filter(|_| at == 0).and_then(|area| Metadata::parse(area, 0).ok());
        let identity = if identity.is_empty() { "0".repeat(IDENTITY_LEN) } else { identity.to_owned() };
        let whole = (self.order.len(), self.raw_transcode);
        let provenance = provenance(keys.as_ref(), at, self.parts.len(), whole, &identity, &part.places);
        metadata.into_iter().chain([provenance]).collect()
    }

    /// SHA-256 of the whole container up to the end of its checksum table.
    fn identity(&self, own: &[u32]) -> String {
        identity(self.whole.front(), &{
            let added = [&self.metadata, &self.provenance].into_iter().flatten().map(|area| checksum(area));
            [checksum(self.whole.front())].into_iter().chain(own.iter().copied()).chain(added).collect::<Vec<u32>>()
        })
    }
}

/// A set's identity: SHA-256 of the whole container up to the end of its checksum table.
pub(super) fn identity(front: &[u8], table: &[u32]) -> String {
    let mut sha = Sha256::new();
    sha.update(front);
    table.iter().for_each(|crc| sha.update(crc.to_le_bytes()));
    hex(&sha.finalize())
}

/// The first `count` values of a written file's checksum table.
pub(super) fn read_table(file: &mut std::fs::File, plan: &Plan, count: usize) -> io::Result<Vec<u32>> {
    file.seek(SeekFrom::Start(plan.front().len() as u64))?;
    let mut bytes = vec![0; count.saturating_mul(4)];
    file.read_exact(&mut bytes)?;
    Ok(bytes.chunks_exact(4).filter_map(|crc| crc.try_into().ok()).map(u32::from_le_bytes).collect())
}

/// Writes the last blob of a written file anew, with its checksum.
fn replace_last(file: &mut std::fs::File, plan: &Plan, bytes: &[u8]) -> io::Result<()> {
    let Some((_, range)) = plan.blobs().last() else { return Ok(()) };
    debug_assert_eq!(range.end.saturating_sub(range.start), bytes.len() as u64);
    file.seek(SeekFrom::Start(range.start))?;
    file.write_all(bytes)?;
    let slot = (plan.blobs().count() as u64).saturating_mul(4);
    file.seek(SeekFrom::Start((plan.front().len() as u64).saturating_add(slot)))?;
    file.write_all(&checksum(bytes).to_le_bytes())
}
