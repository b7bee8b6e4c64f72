//! The complete validation of spec §14, its SHOULD list included: the only way to a [`Container`](crate::Container).
//!
//! The checks run in this order, each in a file of its own, and the first that fails ends the run:
//!
//! ```text
//! header      magic, version, flags, page size, reserved bytes
//! sections    extents, order, alignment, zero gaps
//! checksums   CRC-32C of everything before the checksum table
//! hparams     reserved bytes, finite values, completeness
//! manifold    finite values, reserved bytes
//! entries     rank, shape, payload length, roles and types, reserved bytes
//! names       termination, UTF-8, order, uniqueness
//! blobs       alignment, order, bounds, zero padding, file length
//! order       layer-major order
//! schedule    content against the tensor table
//! tokenizer   the Q42T section
//! checksums   CRC-32C of every blob (integrity `Full`)
//! ```
//!
//! Work is linear in the file's length (names: `n log n` with an index from the caller). Nothing is allocated.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::unwrap_used,
        clippy::expect_used
    )
)]

pub(crate) mod blobs;
pub(crate) mod checksums;
pub(crate) mod entries;
pub(crate) mod header;
pub(crate) mod hparams;
pub(crate) mod manifold;
pub(crate) mod names;
pub(crate) mod order;
mod policy;
pub(crate) mod schedule;
pub(crate) mod sections;

pub(crate) use checksums::check_blob;
pub(crate) use names::{name_at, name_hash};
pub(crate) use policy::{Checked, Stop};
pub use policy::{Integrity, Policy, Report};
pub(crate) use schedule::{Grouped, Unit, layer_unit};
pub use sections::Sections;

use crate::crc32c::Checksum;
use crate::error::{Error, Result};
use crate::layout::header::RawHeader;
use crate::layout::hparams::RawHParams;
use crate::layout::manifold::RawManifold;
use crate::layout::schedule::RawLayerScheduleEntry;
use crate::layout::tensor::RawTensorEntry;
use crate::num;
use crate::tokenizer::Tokenizer;
use core::sync::atomic::AtomicU8;
use zerocopy::FromBytes;
use zerocopy::little_endian::U32;

/// How a container is opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Whether deviations that the QualiaDB writers are known for are errors or warnings.
    pub policy: Policy,
    /// When the blobs' checksums are verified.
    pub integrity: Integrity,
    /// The CRC-32C to use: a table that fits, or a faster one.
    pub checksum: Checksum,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { policy: Policy::Compatible, integrity: Integrity::Full, checksum: Checksum::default() }
    }
}

/// One slot of the name index: names sorted by hash, then by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct NameSlot {
    pub(crate) hash: u32,
    pub(crate) index: u32,
}

/// Memory the caller lends to a container for as long as it lives. Both parts may be empty.
#[derive(Debug, Default)]
pub struct Storage<'a> {
    /// One slot per tensor makes look-up by name `O(log n)`, and is required beyond [`MAX_UNINDEXED`] tensors.
    pub names: &'a mut [NameSlot],
    /// One byte per tensor: remembers under [`Integrity::Lazy`] which blobs have been verified, so that each is read once.
    /// Without it a blob is verified each time it is taken. What it held before does not matter; it is lent exclusively,
    /// so that nobody but the container can say that a blob is good.
    pub verified: &'a mut [AtomicU8],
}

/// Most tensors a container may have without a name index: the check for duplicates is quadratic then.
pub const MAX_UNINDEXED: u32 = 4096;

/// Everything the validator has proven, as views of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub header: &'a RawHeader,
    pub hparams: &'a RawHParams,
    pub entries: &'a [RawTensorEntry],
    pub strings: &'a [u8],
    pub manifold: &'a [RawManifold],
    pub schedule: Option<&'a [RawLayerScheduleEntry]>,
    pub tokenizer: Option<Tokenizer<'a>>,
    pub checksums: &'a [U32],
    pub sections: Sections,
    pub names: &'a [NameSlot],
}

/// Runs every check over `file`.
pub(crate) fn validate<'a>(
    file: &'a [u8],
    options: &OpenOptions,
    names: &'a mut [NameSlot],
    on_warning: &mut dyn FnMut(Error),
) -> Result<Parts<'a>> {
    let mut report = Report::new(options.policy, on_warning);
    let checked = check(file, options, names, &mut report);
    report.outcome(checked)
}

fn check<'a>(
    file: &'a [u8],
    options: &OpenOptions,
    names: &'a mut [NameSlot],
    report: &mut Report<'_>,
) -> Checked<Parts<'a>> {
    let len = num::wide(file.len());
    let header = header::check(file, len, report)?;
    let sections = sections::check(file, header, report)?;

    let checksums = records::<U32>(file, sections.checksums, report)?;
    checksums::check_metadata(file, &sections, checksums, options.checksum, report)?;

    let hparams = hparams::check(sections.hparams.of(file).unwrap_or_default(), len, header, &sections, report)?;
    let manifold = records::<RawManifold>(file, sections.manifold, report)?;
    manifold::check(manifold, sections.manifold.start(), report)?;

    let entries = records::<RawTensorEntry>(file, sections.tensors, report)?;
    entries::check(entries, header, hparams, &sections, report)?;
    let strings = sections.strings.of(file).unwrap_or_default();
    let names = names::check(entries, strings, &sections, names, report)?;

    blobs::check(file, entries, header, &sections, report)?;
    order::check(entries, header, hparams, report)?;
    let schedule = match sections.schedule {
        Some(extent) => {
            let records = records::<RawLayerScheduleEntry>(file, extent, report)?;
            schedule::check(records, entries, header.offset_width(), extent, report)?
        }
        None => None,
    };
    let tokenizer = sections::check_tokenizer(file, header, &sections, report)?;

    if options.integrity == Integrity::Full {
        let sound = checksums::check_blobs(file, entries, header.offset_width(), checksums, options.checksum);
        sound.map_err(|error| report.refuse(error))?;
    }
    Ok(Parts { header, hparams, entries, strings, manifold, schedule, tokenizer, checksums, sections, names })
}

/// The records of a section whose extent has been checked against the file.
fn records<'a, T>(file: &'a [u8], extent: crate::extent::Extent, report: &mut Report<'_>) -> Checked<&'a [T]>
where
    T: FromBytes + zerocopy::KnownLayout + zerocopy::Immutable + zerocopy::Unaligned,
{
    let bytes = extent.of(file).unwrap_or_default();
    <[T]>::ref_from_bytes(bytes).map_err(|_| report.refuse(Error::buffer_too_small(size_of::<T>(), bytes.len())))
}

/// Offset and value of the first byte that is not zero.
pub(crate) fn first_nonzero(bytes: &[u8], offset: u64) -> Option<(u64, u64)> {
    // Whole words first: gaps and tails can be long, and this runs over all of them.
    let (words, rest) = bytes.as_chunks::<16>();
    let clean = words.iter().take_while(|word| u128::from_le_bytes(**word) == 0).count();
    let skip = clean.saturating_mul(16);
    let suspects = bytes.get(skip..).unwrap_or(rest);
    let at = suspects.iter().position(|&byte| byte != 0)?;
    let value = suspects.get(at).copied().unwrap_or(0);
    Some((offset.saturating_add(num::wide(skip.saturating_add(at))), u64::from(value)))
}
