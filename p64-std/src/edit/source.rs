//! A container without its weights, strictly valid.

use super::reader::Reader;
use crate::error::{Error, Result};
use crate::files;
use crate::map::CHECKSUM;
use crate::sniff::{Kind, SNIFF_LEN};
use crate::write::TensorDescription;
use p64_core::container::{METADATA_NAME, PROVENANCE_NAME};
use p64_core::layout::RECORD;
use p64_core::layout::header::{MAGIC, RawHeader};
use p64_core::layout::hparams::RawHParams;
use p64_core::limits::MAX_STRING;
use p64_core::stream::{StreamContainer, StreamTensor};
use p64_core::validate::{Integrity, NameSlot, OpenOptions, Policy, Storage};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicU8;
use zerocopy::FromBytes;

/// Window through which a file is validated.
const BUFFER: usize = 1 << 18;

/// A tensor that is not one of the two of keys.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub description: TensorDescription,
    pub range: Range<u64>,
    pub crc: u32,
    /// Place in the table.
    pub index: u32,
}

/// Everything of a container that an edit looks at.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub header: RawHeader,
    pub hparams: RawHParams,
    pub tensors: Vec<Stored>,
    /// The records of all layers and of the globals.
    pub manifold: Vec<u8>,
    /// The Q42T section with its padding.
    pub tokenizer: Option<Vec<u8>>,
    pub metadata: Option<Vec<u8>>,
    pub provenance: Option<Vec<u8>>,
    pub file_len: u64,
}

impl Source {
    /// Bytes up to the end of the checksum table.
    pub fn front_len(&self) -> u64 {
        let values = u64::from(self.header.tensor_count.get()).saturating_add(1);
        u64::from(self.header.checksum_offset.get()).saturating_add(values.saturating_mul(4))
    }

    pub fn read(file: &File, path: &Path) -> Result<Self> {
        let reader = open(file, path)?;
        let strict = OpenOptions { policy: Policy::Strict, integrity: Integrity::Lazy, checksum: CHECKSUM };
        with_container(reader(), path, &strict, |container| read(container, file, path)).map_err(|error| {
            let compatible = OpenOptions { policy: Policy::Compatible, ..strict };
            match (with_container(reader(), path, &compatible, |_| Ok(())), error) {
                (Ok(()), Error::Core { source, .. }) if source.kind() == p64_core::Kind::Malformed => {
                    let reason = "the file deviates from the standard in what other writers are known for, and edits keep \
                                  to the letter of it; convert the model again from its source";
                    Error::refused(path, format!("{source}; {reason}"))
                }
                (_, error) => error,
            }
        })
    }
}

/// Validates a whole file, down to the keys.
pub(crate) fn check(file: &File, path: &Path, policy: Policy, integrity: Integrity) -> Result<()> {
    let len = files::metadata(file, path)?.len();
    check_reader(Reader { file, path, len, regions: &[] }, path, policy, integrity)
}

/// Validates what `reader` gives, down to the keys.
pub(super) fn check_reader(reader: Reader<'_>, path: &Path, policy: Policy, integrity: Integrity) -> Result<()> {
    let options = OpenOptions { policy, integrity, checksum: CHECKSUM };
    with_container(reader, path, &options, |container| {
        for name in [METADATA_NAME, PROVENANCE_NAME] {
            if let Some(tensor) = container.find(name).map_err(|error| Error::core(path, error))? {
                let area = blob(container, &tensor, path)?;
                p64_core::metadata::Metadata::parse(&area, tensor.extent().start())
                    .map_err(|error| Error::core(path, error))?;
            }
        }
        Ok(())
    })
}

/// Readers of the whole file, once it is known to be a container.
fn open<'f>(file: &'f File, path: &'f Path) -> Result<impl Fn() -> Reader<'f>> {
    let len = files::metadata(file, path)?.len();
    let mut head = Vec::new();
    files::read_on(file, path, &mut head, len.min(SNIFF_LEN as u64))?;
    if !head.starts_with(&MAGIC) {
        return Err(files::other_kind(path, Kind::of(&head), Kind::P64));
    }
    Ok(move || Reader { file, path, len, regions: &[] })
}

fn with_container<T>(
    mut reader: Reader<'_>,
    path: &Path,
    options: &OpenOptions,
    look: impl FnOnce(&mut StreamContainer<'_, Reader<'_>>) -> Result<T>,
) -> Result<T> {
    use p64_core::stream::ReadAt;
    let mut head = [0u8; RECORD];
    let mut count = 0;
    // A file too short for a header is core's to refuse.
    if reader.len >= RECORD as u64 && reader.read_at(0, &mut head).is_ok() {
        let tensors = RawHeader::read_from_bytes(&head).map_or(0, |header| header.tensor_count.get());
        let room = reader.len / RECORD as u64;
        count = usize::try_from(tensors).ok().filter(|_| u64::from(tensors) <= room).unwrap_or(0);
    }
    let mut buffer = vec![0; BUFFER];
    let mut names = vec![NameSlot::default(); count];
    let mut verified: Vec<AtomicU8> = (0..count).map(|_| AtomicU8::new(0)).collect();
    let storage = Storage { names: &mut names, verified: &mut verified };
    let opened = StreamContainer::open(reader, &mut buffer, storage, options, &mut |_| ());
    look(&mut opened.map_err(|error| Error::core(path, error))?)
}

fn read(container: &mut StreamContainer<'_, Reader<'_>>, file: &File, path: &Path) -> Result<Source> {
    let core = |error| Error::core(path, error);
    let sections = *container.sections();
    let section = |range: p64_core::extent::Extent| -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(range.len()).unwrap_or(0)];
        files::read_at(file, path, range.start(), &mut bytes)?;
        Ok(bytes)
    };
    let table = section(sections.checksums)?;
    // The first value is that of the metadata.
    let mut checksums = table.as_chunks::<4>().0.iter().skip(1).map(|crc| u32::from_le_bytes(*crc));
    let mut name = vec![0; 256];
    let (mut tensors, mut metadata, mut provenance) = (Vec::new(), None, None);
    for index in 0..container.tensor_count() {
        let crc = checksums.next().unwrap_or(0);
        let tensor = container.tensor(index).map_err(core)?;
        let name = name_of(container, &tensor, &mut name).map_err(core)?;
        let added = match name.as_str() {
            METADATA_NAME => &mut metadata,
            PROVENANCE_NAME => &mut provenance,
            _ => {
                let layer = tensor.role().is_layer().then_some(tensor.manifold_idx());
                let description = TensorDescription {
                    name,
                    role: tensor.role(),
                    layer,
                    dtype: tensor.dtype(),
                    shape: tensor.shape(),
                    size: tensor.extent().len(),
                    source_offset: tensor.source_offset(),
                    source_name_hash: tensor.source_name_hash(),
                };
                let range = tensor.extent().start()..tensor.extent().end();
                tensors.push(Stored { description, range, crc, index });
                continue;
            }
        };
        *added = Some(blob(container, &tensor, path)?);
    }
    Ok(Source {
        header: *container.header(),
        hparams: *container.hparams(),
        tensors,
        manifold: section(sections.manifold)?,
        tokenizer: container.tokenizer().is_some().then(|| section(sections.tokenizer)).transpose()?,
        metadata,
        provenance,
        file_len: container.file_len(),
    })
}

fn name_of(
    container: &mut StreamContainer<'_, Reader<'_>>,
    tensor: &StreamTensor,
    buffer: &mut Vec<u8>,
) -> p64_core::Result<String> {
    match container.name(tensor, buffer).map(str::to_owned) {
        Err(error) if error.code == p64_core::Code::BufferTooSmall => {
            buffer.resize(usize::try_from(MAX_STRING).unwrap_or(usize::MAX), 0);
            container.name(tensor, buffer).map(str::to_owned)
        }
        other => other,
    }
}

/// The verified bytes of a tensor.
fn blob(container: &mut StreamContainer<'_, Reader<'_>>, tensor: &StreamTensor, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(tensor.extent().len()).unwrap_or(usize::MAX)];
    container.read(tensor, 0, &mut bytes).map_err(|error| Error::core(path, error))?;
    Ok(bytes)
}
