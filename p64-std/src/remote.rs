//! Containers that lie on a server: what they hold and single layers, without the rest being fetched (feature `remote`).
//!
//! ```text
//! server     answers requests for ranges: a web server, an object store's public or signed address     remote/server.rs
//! local      a file as long as the container that holds what was fetched, with holes for what was not   remote/local.rs
//! container  the local file, opened as any other; blobs come by request, each verified
//! ```
//!
//! Opening takes three requests: the front, the rest of the front, and the two blobs of keys at the end. Everything that
//! opening a file checks is checked, but for what was not fetched: the checksums of tensors, each when it comes, and the
//! padding between them, which a download checks. Calls wait for the server, and are not for asynchronous code. CRC-32C finds damage, not malice: whoever can put a file on the server
//! decides what it says.

mod local;
mod server;

pub use server::Traffic;

use crate::atomic_file::AtomicFile;
use crate::convert::{Phase, Progress};
use crate::edit;
use crate::error::{Error, Result};
use crate::files;
use crate::map::{MapOptions, MappedContainer, checksum};
use crate::part_name::{self, PartName};
use crate::sniff::{Kind, SNIFF_LEN};
use local::Local;
use p64_core::container::{Container, METADATA_NAME, PROVENANCE_NAME, TensorInfo};
use p64_core::extent::Extent;
use p64_core::layout::header::{MAGIC, RawHeader};
use p64_core::validate::{Integrity, Policy};
use p64_core::{Code, DType, Place, Shape};
use server::Server;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use zerocopy::FromBytes;

/// Most bytes that are fetched at once without being asked for: of the front, and of the keys.
const MAX_UNASKED: u64 = 1 << 30;
/// Bytes of the first request, which most headers need the fewest of.
const FIRST: u64 = 1 << 16;
/// Bytes of one request of a download.
const PIECE: u64 = 16 << 20;
/// Ranges that lie as near as this come in one request.
const NEAR: u64 = 1 << 16;

/// Whether a path is the address of a remote container.
#[must_use]
pub fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.starts_with("https://") || path.starts_with("http://"))
}

/// An address without what may be secret in it, as errors name it.
#[must_use]
pub fn label(url: &Path) -> PathBuf {
    server::label(&url.to_string_lossy())
}

/// A container behind an address. What the file says of itself is here; its tensors come when they are asked for.
#[derive(Debug)]
pub struct RemoteContainer {
    server: Server,
    local: Local,
    mapped: MappedContainer,
    warnings: Vec<p64_core::Error>,
    policy: Policy,
}

/// A tensor that was fetched, its checksum verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteTensor {
    /// The name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Shape in GGML order.
    pub shape: Shape,
    /// The payload.
    pub bytes: Vec<u8>,
}

/// All files of a remote model: one container, or those of a set, whose names follow from the first one's.
#[derive(Debug)]
pub struct RemoteSet {
    parts: Vec<RemoteContainer>,
}

impl RemoteSet {
    /// Opens the container at `url` and, when it is one of a set, the others beside it. A signed address is good for its own
    /// file alone, so a set needs addresses without a query.
    ///
    /// # Errors
    /// As [`RemoteContainer::open`].
    pub fn open(url: &str, policy: Policy) -> Result<Self> {
        let first = RemoteContainer::open(url, policy)?;
        let provenance = first.container().provenance().map_err(|error| Error::core(first.label(), error))?;
        let count = provenance.and_then(|keys| keys.get("split.count")?.as_u64()).unwrap_or(1);
        let name = PartName::of(Path::new(url), part_name::P64).filter(|name| name.count == count && count > 1);
        let mut parts = vec![first];
        for number in name.iter().flat_map(|name| (1..=count).filter(|number| *number != name.number)) {
            let path = name.as_ref().map(|name| name.path(number)).unwrap_or_default();
            let beside = parts.first().map(|first| &first.local);
            let part = RemoteContainer::open_beside(&path.to_string_lossy(), policy, beside)?;
            parts.push(part);
        }
        Ok(Self { parts })
    }

    /// The local file of the container that was asked for, beside those of the others: what
    /// [`MappedSet::open`](crate::map::MappedSet::open) takes.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.parts.first().map_or(Path::new(""), RemoteContainer::path)
    }

    /// The files, the one that was asked for first.
    #[must_use]
    pub fn parts(&self) -> &[RemoteContainer] {
        &self.parts
    }

    /// Requests made so far, and bytes that came.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.parts.iter().map(RemoteContainer::traffic).fold(Traffic::default(), |sum, own| Traffic {
            requests: sum.requests.saturating_add(own.requests),
            bytes: sum.bytes.saturating_add(own.bytes),
        })
    }
}

/// Some tensors of a remote container, in a file that goes with this value.
#[derive(Debug)]
pub struct KeptTensors {
    local: Local,
    traffic: Traffic,
}

impl KeptTensors {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.local.path()
    }

    /// Requests made in all, and bytes that came.
    #[must_use]
    pub const fn traffic(&self) -> Traffic {
        self.traffic
    }
}

impl RemoteContainer {
    /// Fetches and validates everything but the tensors. `url` begins with `http://` or `https://`.
    ///
    /// # Errors
    /// [`Error::Remote`] with what the server answered, when it does not know ranges, and for an address that makes no sense;
    /// [`Error::SourceChanged`] when the file changed meanwhile; what opening a file answers.
    pub fn open(url: &str, policy: Policy) -> Result<Self> {
        Self::open_beside(url, policy, None)
    }

    fn open_beside(url: &str, policy: Policy, beside: Option<&Local>) -> Result<Self> {
        let (mut server, mut front) = Server::open(url, FIRST)?;
        let label = server.label().to_owned();
        if !front.starts_with(&MAGIC) {
            let kind = Kind::of(front.get(..SNIFF_LEN).unwrap_or(&front));
            return Err(files::other_kind(&label, kind, Kind::P64));
        }
        let end = RawHeader::read_from_prefix(&front).map_or(0, |(header, _)| {
            let table = u64::from(header.tensor_count.get()).saturating_add(1).saturating_mul(4);
            u64::from(header.checksum_offset.get()).saturating_add(table)
        });
        // What is wrong with a table past the end is core's to say.
        let end = end.min(server.len());
        within(&label, "the sections before its tensors", end)?;
        let have = front.len() as u64;
        if have < end {
            front.extend_from_slice(&server.read(have..end)?);
        }
        let local = Local::create(server.len(), &label, beside)?;
        local.write(0, &front)?;
        // The front alone tells where the keys lie.
        let areas = {
            let (mapped, _) = open(&local, &label, policy)?;
            let container = mapped.container();
            let areas = [METADATA_NAME, PROVENANCE_NAME].map(|name| container.find(name).map(|info| info.extent()));
            areas.into_iter().flatten().collect::<Vec<Extent>>()
        };
        let wanted = areas.iter().map(|area| area.len()).fold(0u64, u64::saturating_add);
        within(&label, "its keys", wanted)?;
        for (range, _) in grouped(&areas) {
            local.write(range.start(), &server.read(range.start()..range.end())?)?;
        }
        let (mapped, warnings) = open(&local, &label, policy)?;
        for area in [mapped.container().metadata(), mapped.container().provenance()] {
            area.map_err(|error| Error::core(&label, error))?;
        }
        Ok(Self { server, local, mapped, warnings, policy })
    }

    /// The container. Its own [`Container::tensor`] fails for tensors that were not kept: [`RemoteContainer::tensor`] fetches.
    #[must_use]
    pub fn container(&self) -> &Container<'_> {
        self.mapped.container()
    }

    /// The address without what may be secret in it, as errors name it.
    #[must_use]
    pub fn label(&self) -> &Path {
        self.server.label()
    }

    /// The local file: as long as the container, with holes for what was not fetched.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.local.path()
    }

    /// Deviations that the policy let pass.
    #[must_use]
    pub fn warnings(&self) -> &[p64_core::Error] {
        &self.warnings
    }

    /// Requests made so far, and bytes that came.
    #[must_use]
    pub const fn traffic(&self) -> Traffic {
        self.server.traffic()
    }

    /// The tensor of a name, `None` where there is none: one request.
    ///
    /// # Errors
    /// As of opening; [`Code::TensorChecksum`] when what came is not what the file had.
    pub fn tensor(&mut self, name: &str) -> Result<Option<RemoteTensor>> {
        let Some(info) = self.container().find(name) else { return Ok(None) };
        self.fetch(&[info.index()]).map(|found| found.into_iter().next())
    }

    /// All tensors of a layer, in the order of the file; `layer == n_layer` for those of no layer. One request where they
    /// stand together, as in every layer-major file.
    ///
    /// # Errors
    /// As [`RemoteContainer::tensor`].
    pub fn layer(&mut self, layer: u32) -> Result<Vec<RemoteTensor>> {
        let own = |info: &TensorInfo<'_>| info.manifold_idx() == layer && !info.name().starts_with("p64.");
        let indexes: Vec<u32> = self.container().tensors().filter(own).map(|info| info.index()).collect();
        self.fetch(&indexes)
    }

    fn fetch(&mut self, indexes: &[u32]) -> Result<Vec<RemoteTensor>> {
        let Self { server, mapped, .. } = self;
        let container = mapped.container();
        let infos: Vec<TensorInfo<'_>> = indexes.iter().filter_map(|&index| container.info(index)).collect();
        let extents: Vec<Extent> = infos.iter().map(TensorInfo::extent).collect();
        let mut tensors = Vec::new();
        for (range, members) in grouped(&extents) {
            let bytes = server.read(range.start()..range.end())?;
            for info in members.into_iter().filter_map(|member| infos.get(member)) {
                let start = info.extent().start().saturating_sub(range.start());
                let own = Extent::new(start, info.extent().len()).and_then(|own| own.of(&bytes)).unwrap_or_default();
                let (expected, found) = (container.stored_checksum(Some(info.index())), checksum(own));
                if expected != Some(found) {
                    let error = p64_core::Error::new(Code::TensorChecksum, Place::Tensor(info.index()));
                    let error = error.values(expected.unwrap_or(0).into(), found.into());
                    return Err(Error::core(server.label(), error));
                }
                let (name, bytes) = (info.name().to_owned(), own.to_vec());
                tensors.push(RemoteTensor { name, dtype: info.dtype(), shape: info.shape(), bytes });
            }
        }
        Ok(tensors)
    }

    /// Fetches the tensors that `wanted` picks into a local file that can be opened as the container, where these can be read
    /// and the others fail as damaged ones do.
    ///
    /// # Errors
    /// As of opening.
    pub fn keep(
        self,
        wanted: &dyn Fn(&TensorInfo<'_>) -> bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<KeptTensors> {
        let Self { mut server, local, mapped, .. } = self;
        let picked = mapped.container().tensors().filter(|info| wanted(info)).map(|info| info.extent());
        let ranges: Vec<Extent> = grouped(&picked.collect::<Vec<_>>()).into_iter().map(|(range, _)| range).collect();
        // What is mapped does not change.
        drop(mapped);
        let total = ranges.iter().map(|range| range.len()).fold(0u64, u64::saturating_add);
        let mut done = 0u64;
        for piece in ranges.iter().flat_map(|range| pieces(range.start(), range.end())) {
            local.write(piece.start, &server.read(piece.clone())?)?;
            done = done.saturating_add(piece.end.saturating_sub(piece.start));
            progress(Progress { phase: Phase::Write, done, total });
        }
        Ok(KeptTensors { local, traffic: server.traffic() })
    }

    /// Fetches the whole file to `output`, which appears when every byte of it has been checked.
    ///
    /// # Errors
    /// As of opening a file completely; what writing answers. What stood at `output` is then unchanged.
    pub fn download(&mut self, output: &Path, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let failed = |error| Error::io(output, "write it", error);
        let total = self.server.len();
        let mut file = AtomicFile::create(output)?;
        let mut done = 0u64;
        for piece in pieces(0, total) {
            let bytes = self.server.read(piece.clone())?;
            file.file()
                .seek(SeekFrom::Start(piece.start))
                .and_then(|_| file.file().write_all(&bytes))
                .map_err(failed)?;
            done = done.saturating_add(bytes.len() as u64);
            progress(Progress { phase: Phase::Write, done, total });
        }
        edit::check(file.file(), self.label(), self.policy, Integrity::Full)?;
        file.commit()
    }
}

/// The local file, opened; errors name the address.
fn open(local: &Local, label: &Path, policy: Policy) -> Result<(MappedContainer, Vec<p64_core::Error>)> {
    let options = MapOptions { policy, integrity: Integrity::Lazy, ..MapOptions::default() };
    MappedContainer::open(local.path(), &options).map_err(|error| match error {
        Error::Core { source, .. } => Error::core(label, source),
        other => other,
    })
}

fn within(label: &Path, what: &str, bytes: u64) -> Result<()> {
    if bytes <= MAX_UNASKED {
        return Ok(());
    }
    Err(Error::refused(
        label,
        format!("{what} have {bytes} bytes, more than the {MAX_UNASKED} that are fetched unasked"),
    ))
}

/// The ranges in which extents are fetched, each with the positions of those that lie in it.
fn grouped(extents: &[Extent]) -> Vec<(Extent, Vec<usize>)> {
    let mut order: Vec<(usize, Extent)> = extents.iter().copied().enumerate().collect();
    order.sort_by_key(|(_, extent)| extent.start());
    let mut groups: Vec<(Extent, Vec<usize>)> = Vec::new();
    for (position, extent) in order {
        let near = groups.last_mut().filter(|(range, _)| extent.start() <= range.end().saturating_add(NEAR));
        match near {
            Some((range, members)) => {
                *range = Extent::between(range.start(), range.end().max(extent.end())).unwrap_or(*range);
                members.push(position);
            }
            None => groups.push((extent, vec![position])),
        }
    }
    groups
}

fn pieces(start: u64, end: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    let mut at = start;
    std::iter::from_fn(move || {
        let piece = at..at.saturating_add(PIECE).min(end);
        at = piece.end;
        (piece.start < piece.end).then_some(piece)
    })
}

/// The name that a file at this address would have.
#[must_use]
pub fn file_name(url: &Path) -> PathBuf {
    let name = url.file_name().map(PathBuf::from).unwrap_or_default();
    if name.extension().is_some_and(|extension| extension == "p64") { name } else { PathBuf::from("model.p64") }
}
