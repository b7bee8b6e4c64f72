//! The validation as a machine of small steps. The twin of `validate.rs`: the checks themselves are shared with it, here is
//! only how the bytes come to them.
#![forbid(unsafe_code)]

use super::index::{self, Duplicates};
use super::schedule::Schedule;
use super::tokenizer::{TokenizerInfo, Walk};
use super::window::Window;
use super::{ReadAt, StreamContainer, names};
use crate::crc32c::Checksum;
use crate::error::{Code, Error, Place, Result};
use crate::extent::Extent;
use crate::layout::flags::Flags;
use crate::layout::header::RawHeader;
use crate::layout::hparams::RawHParams;
use crate::layout::manifold::RawManifold;
use crate::layout::tensor::RawTensorEntry;
use crate::num;
use crate::validate::blobs::{self, Blobs};
use crate::validate::entries::{self, Types};
use crate::validate::names::{Names, check_head, nonzero_tail};
use crate::validate::order::Order;
use crate::validate::{
    Checked, Integrity, MAX_UNINDEXED, NameSlot, OpenOptions, Policy, Report, Sections, Stop, Storage, checksums,
    header, hparams, manifold, sections,
};
use core::sync::atomic::AtomicU8;
use zerocopy::FromZeros;
use zerocopy::little_endian::U32;

/// Whether a validation goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// There is more to check.
    More,
    /// Every check has passed: [`Validator::finish`] gives the container.
    Done,
}

/// A validation under way. It borrows the caller's memory and holds a few hundred bytes itself.
#[derive(Debug)]
pub struct Validator<'b, R> {
    window: Window<'b, R>,
    names: &'b mut [NameSlot],
    verified: &'b mut [AtomicU8],
    policy: Policy,
    integrity: Integrity,
    checksum: Checksum,
    facts: Facts,
    phase: Phase,
}

/// What the checks so far have proven.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub header: RawHeader,
    pub hparams: RawHParams,
    pub sections: Sections,
    pub has_schedule: bool,
    pub tokenizer: Option<TokenizerInfo>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Header,
    Sections,
    Gaps {
        index: u32,
        at: u64,
    },
    MetadataChecksum {
        at: u64,
        crc: u32,
    },
    HParams,
    Manifold {
        index: u32,
    },
    Entries {
        index: u32,
        types: Types,
    },
    StringsHead,
    Names {
        index: u32,
        names: Names,
    },
    StringsTail {
        at: u64,
    },
    Duplicates(Duplicates),
    /// The gap before blob `index` is being looked through, then the next one's.
    Blobs {
        index: u32,
        blobs: Blobs,
        gap: Extent,
    },
    Tail {
        blobs: Blobs,
        at: u64,
    },
    Order {
        index: u32,
        order: Order,
    },
    Schedule(Schedule),
    Tokenizer(Walk),
    BlobChecksum {
        index: u32,
        done: u64,
        crc: u32,
    },
    Done,
    Failed(Error),
}

impl<'b, R: ReadAt> Validator<'b, R> {
    /// Begins a validation; nothing is read yet. `buffer` is the window that reads go through. The name index and the
    /// record of verified blobs in `storage` are as for [`Container::open_with`](crate::Container::open_with).
    ///
    /// # Errors
    /// [`Code::BufferTooSmall`] for a buffer below [`MIN_BUFFER`](super::MIN_BUFFER).
    pub fn new(reader: R, buffer: &'b mut [u8], storage: Storage<'b>, options: &OpenOptions) -> Result<Self> {
        let OpenOptions { policy, integrity, checksum } = *options;
        let facts = Facts {
            header: RawHeader::new_zeroed(),
            hparams: RawHParams::new_zeroed(),
            sections: Sections::default(),
            has_schedule: false,
            tokenizer: None,
        };
        let Storage { names, verified } = storage;
        let window = Window::new(reader, buffer)?;
        Ok(Self { window, names, verified, policy, integrity, checksum, facts, phase: Phase::Header })
    }

    /// Does the next piece of work. `on_warning` is told the deviations that the policy lets pass, in the order in which a
    /// slice's validation tells them.
    ///
    /// # Errors
    /// The failed check; every later call answers with it too. After [`Code::ReadFailed`] the next call tries again where
    /// this one stopped (a deviation may then be told twice).
    pub fn step(&mut self, on_warning: &mut dyn FnMut(Error)) -> Result<Step> {
        let mut report = Report::new(self.policy, on_warning);
        if let Phase::Failed(error) = &self.phase {
            return Err(*error);
        }
        let Err(Stop) = self.advance(&mut report) else {
            return Ok(if matches!(self.phase, Phase::Done) { Step::Done } else { Step::More });
        };
        if let Some(error) = report.take_error().or(self.window.take_fault()) {
            if error.code != Code::ReadFailed {
                self.phase = Phase::Failed(error);
            }
            return Err(error);
        }
        Err(Error::new(Code::NotValidated, Place::File))
    }

    /// Takes all remaining steps.
    ///
    /// # Errors
    /// As [`Validator::step`].
    pub fn run(&mut self, on_warning: &mut dyn FnMut(Error)) -> Result<()> {
        while self.step(on_warning)? == Step::More {}
        Ok(())
    }

    /// The container, once a step has answered [`Step::Done`].
    ///
    /// # Errors
    /// [`Code::NotValidated`] before that, the failed check after one; [`Code::BufferTooSmall`] when the record of verified
    /// blobs has fewer bytes than there are tensors.
    pub fn finish(self) -> Result<StreamContainer<'b, R>> {
        match self.phase {
            Phase::Done => {}
            Phase::Failed(error) => return Err(error),
            _ => return Err(Error::new(Code::NotValidated, Place::File)),
        }
        let need = num::index(self.facts.header.tensor_count.get());
        if !self.verified.is_empty() && self.verified.len() < need {
            return Err(Error::buffer_too_small(need, self.verified.len()));
        }
        // Memory that served another file says nothing about this one.
        self.verified.iter_mut().for_each(|slot| *slot.get_mut() = 0);
        let names = self.names.get(..need).unwrap_or_default();
        Ok(StreamContainer::new(self.window, self.facts, names, self.verified, self.integrity, self.checksum))
    }

    /// The next piece of work. What it has not read yet it has not changed, so that it can be tried again.
    #[inline(never)]
    fn advance(&mut self, report: &mut Report<'_>) -> Checked<()> {
        let Self { window, facts, phase, .. } = self;
        let sections = &facts.sections;
        let tensors = facts.header.tensor_count.get();
        match phase {
            Phase::Header => {
                let len = window.len();
                facts.header = *header::check(window.ahead(0, len, size_of::<RawHeader>())?, len, report)?;
                *phase = Phase::Sections;
            }
            Phase::Sections => {
                locate(facts, window, report)?;
                *phase = Phase::gap(&facts.sections, 0);
            }
            Phase::Gaps { index, at } => match sections.gap(*index) {
                None => *phase = Phase::MetadataChecksum { at: 0, crc: 0 },
                Some((section, gap)) => {
                    let (next, found) = window.first_nonzero(*at, gap.end())?;
                    if let Some(found) = found {
                        report.deviation(sections::gap_not_zero(section, found))?;
                    }
                    *at = next;
                    if next >= gap.end() {
                        *phase = Phase::gap(sections, index.saturating_add(1));
                    }
                }
            },
            Phase::MetadataChecksum { at, crc } if *at < sections.checksums.start() => {
                let bytes = window.some(*at, sections.checksums.start())?;
                *crc = self.checksum.update(*crc, bytes);
                *at = at.saturating_add(num::wide(bytes.len()));
            }
            Phase::MetadataChecksum { crc, .. } => {
                let expected = window.record::<U32>(sections.checksums.start())?.get();
                checksums::compare_metadata(expected, *crc, sections, report)?;
                *phase = Phase::HParams;
            }
            Phase::HParams => {
                check_hparams(facts, window, report)?;
                *phase = Phase::Manifold { index: 0 };
            }
            Phase::Manifold { index } if *index <= facts.hparams.n_layer.get() => {
                check_manifold(facts, window, *index, report)?;
                *index = index.saturating_add(1);
            }
            Phase::Manifold { .. } => *phase = Phase::Entries { index: 0, types: Types::default() },
            Phase::Entries { index, types } if *index < tensors => {
                check_entry(facts, window, *index, types, report)?;
                *index = index.saturating_add(1);
            }
            Phase::Entries { types, .. } => {
                types.check_flags(&facts.header, report)?;
                *phase = Phase::StringsHead;
            }
            Phase::StringsHead => {
                let strings = sections.strings;
                let first = window.some(strings.start(), strings.end())?.first();
                check_head(first.copied(), strings.start(), report)?;
                *phase = Phase::Names { index: 0, names: Names::new(strings.start(), strings.len()) };
            }
            Phase::Names { index, names } if *index < tensors => {
                check_name(facts, window, *index, names, self.names, report)?;
                *index = index.saturating_add(1);
            }
            Phase::Names { names, .. } => {
                *phase = Phase::StringsTail { at: sections.strings.start().saturating_add(names.end()) };
            }
            Phase::StringsTail { at } if *at < sections.strings.end() => {
                let (next, found) = window.first_nonzero(*at, sections.strings.end())?;
                if let Some(found) = found {
                    report.deviation(nonzero_tail(found))?;
                }
                *at = next;
            }
            Phase::StringsTail { .. } => {
                let have = self.names.len();
                let slots = self.names.get_mut(..num::index(tensors)).filter(|_| have > 0);
                let too_many = Error::new(Code::TooManyTensors, Place::File);
                *phase = match slots {
                    Some(slots) => {
                        index::sort(slots);
                        Phase::Duplicates(Duplicates::INDEX)
                    }
                    None if have == 0 && tensors <= MAX_UNINDEXED => Phase::Duplicates(Duplicates::PASSES),
                    None => return Err(report.refuse(too_many.values(num::wide(have), u64::from(tensors)))),
                };
            }
            Phase::Duplicates(state) => {
                if state.step(facts, self.names, window, report)? {
                    let blobs = Blobs::new(&facts.header, sections, window.len());
                    next_blob(facts, window, 0, blobs, phase, report)?;
                }
            }
            Phase::Blobs { index, blobs, gap } => {
                let (next, found) = window.first_nonzero(gap.start(), gap.end())?;
                if let Some(found) = found {
                    report.deviation(blobs::padding(*index, found))?;
                }
                *gap = Extent::between(next, gap.end()).unwrap_or_default();
                if gap.is_empty() {
                    let (index, blobs) = (index.saturating_add(1), *blobs);
                    next_blob(facts, window, index, blobs, phase, report)?;
                }
            }
            Phase::Tail { blobs, at } if *at < blobs.tail().end() => {
                let (next, found) = window.first_nonzero(*at, blobs.tail().end())?;
                if let Some(found) = found {
                    report.deviation(blobs::tail_padding(found))?;
                }
                *at = next;
            }
            Phase::Tail { blobs, .. } => {
                blobs.check_length(report)?;
                let promised = facts.header.flags().contains(Flags::LAYER_MAJOR);
                // Where nothing is promised there is nothing to compare.
                let index = if promised { 0 } else { tensors };
                *phase = Phase::Order { index, order: Order::new(facts.hparams.n_layer.get()) };
            }
            Phase::Order { index, order } if *index < tensors => {
                check_order(facts, window, *index, order, report)?;
                *index = index.saturating_add(1);
            }
            Phase::Order { .. } => {
                let none = sections.schedule.is_none();
                *phase = Phase::Schedule(if none { Schedule::Done(false) } else { Schedule::START });
            }
            Phase::Schedule(Schedule::Done(holds)) => {
                facts.has_schedule = *holds;
                if sections.tokenizer.is_empty() {
                    sections::check_absent_tokenizer(&facts.header, sections, report)?;
                    *phase = Phase::checksums(self.integrity);
                } else {
                    *phase = Phase::Tokenizer(Walk::new(sections.tokenizer));
                }
            }
            Phase::Schedule(state) => state.step(facts, sections.schedule.unwrap_or_default(), window, report)?,
            Phase::Tokenizer(walk) => {
                if let Some(info) = walk.info() {
                    facts.tokenizer = Some(info);
                    *phase = Phase::checksums(self.integrity);
                } else {
                    walk.step(window, report)?;
                }
            }
            Phase::BlobChecksum { index, .. } if *index >= tensors => *phase = Phase::Done,
            Phase::BlobChecksum { index, done, crc } => {
                if facts.blob_checksum(window, self.checksum, *index, done, crc)? {
                    *phase = Phase::BlobChecksum { index: index.saturating_add(1), done: 0, crc: 0 };
                }
            }
            Phase::Done | Phase::Failed(_) => {}
        }
        Ok(())
    }
}

// Each piece of work that reads a record is a function of its own, so that one record at a time lies on the stack.

#[inline(never)]
fn locate<R: ReadAt>(facts: &mut Facts, window: &mut Window<'_, R>, report: &mut Report<'_>) -> Checked<()> {
    let len = window.len();
    let hparams = sections::locate_hparams(&facts.header, len, report)?;
    facts.hparams = window.record(hparams.start())?;
    facts.sections.locate(&facts.header, facts.hparams.n_layer.get(), len, report)
}

#[inline(never)]
fn check_hparams<R: ReadAt>(facts: &mut Facts, window: &mut Window<'_, R>, report: &mut Report<'_>) -> Checked<()> {
    let len = window.len();
    let bytes: [u8; 64] = window.record(facts.sections.hparams.start())?;
    facts.hparams = *hparams::check(&bytes, len, &facts.header, &facts.sections, report)?;
    Ok(())
}

#[inline(never)]
fn check_manifold<R: ReadAt>(
    facts: &Facts,
    window: &mut Window<'_, R>,
    index: u32,
    report: &mut Report<'_>,
) -> Checked<()> {
    let at = facts.sections.manifold.start().saturating_add(u64::from(index).saturating_mul(64));
    let record: RawManifold = window.next_record(at, facts.sections.manifold.end())?;
    manifold::check(core::slice::from_ref(&record), at, report)
}

#[inline(never)]
fn check_entry<R: ReadAt>(
    facts: &Facts,
    window: &mut Window<'_, R>,
    index: u32,
    types: &mut Types,
    report: &mut Report<'_>,
) -> Checked<()> {
    let entry = facts.next_entry(window, index)?;
    let manifold_count = u64::from(facts.hparams.n_layer.get()).saturating_add(1);
    entries::check_one(&entry, index, facts.entry_at(index), manifold_count, facts.header.offset_width(), report)?;
    types.add(&entry);
    Ok(())
}

/// Checks a name, and notes its hash in the caller's index.
#[inline(never)]
fn check_name<R: ReadAt>(
    facts: &Facts,
    window: &mut Window<'_, R>,
    index: u32,
    names: &mut Names,
    slots: &mut [NameSlot],
    report: &mut Report<'_>,
) -> Checked<()> {
    let offset = facts.entry(window, index)?.name_offset.get();
    let strings = facts.sections.strings;
    let name = names::walk(window, strings.start().saturating_add(u64::from(offset)), strings.end())?;
    names.accept(index, offset, name.len, name.len.is_none() || name.utf8, report)?;
    if let Some(slot) = slots.get_mut(num::index(index)) {
        *slot = NameSlot { hash: name.hash, index };
    }
    Ok(())
}

#[inline(never)]
fn check_order<R: ReadAt>(
    facts: &Facts,
    window: &mut Window<'_, R>,
    index: u32,
    order: &mut Order,
    report: &mut Report<'_>,
) -> Checked<()> {
    order.accept(index, &facts.next_entry(window, index)?, report)
}

/// Blob `index`, with the gap before it to be looked through; behind the last one, the file's tail.
#[inline(never)]
fn next_blob<R: ReadAt>(
    facts: &Facts,
    window: &mut Window<'_, R>,
    index: u32,
    mut blobs: Blobs,
    phase: &mut Phase,
    report: &mut Report<'_>,
) -> Checked<()> {
    if index >= facts.header.tensor_count.get() {
        *phase = Phase::Tail { blobs, at: blobs.tail().start() };
    } else {
        let gap = blobs.accept(index, &facts.entry(window, index)?, report)?;
        *phase = Phase::Blobs { index, blobs, gap };
    }
    Ok(())
}

impl Phase {
    /// The gap before the section of that index, or what follows the last one.
    fn gap(sections: &Sections, index: u32) -> Self {
        let at = sections.gap(index).map_or(0, |(_, gap)| gap.start());
        Self::Gaps { index, at }
    }

    /// What follows the structure: the blobs, unless they are verified later.
    const fn checksums(integrity: Integrity) -> Self {
        match integrity {
            Integrity::Full => Self::BlobChecksum { index: 0, done: 0, crc: 0 },
            Integrity::Lazy => Self::Done,
        }
    }
}

impl Facts {
    /// File offset of an entry.
    pub(super) fn entry_at(&self, index: u32) -> u64 {
        self.sections.tensors.start().saturating_add(u64::from(index).saturating_mul(64))
    }

    /// An entry by itself.
    #[inline(never)]
    pub(super) fn entry<R: ReadAt>(&self, window: &mut Window<'_, R>, index: u32) -> Checked<RawTensorEntry> {
        window.record(self.entry_at(index))
    }

    /// An entry on a way through the table.
    #[inline(never)]
    pub(super) fn next_entry<R: ReadAt>(&self, window: &mut Window<'_, R>, index: u32) -> Checked<RawTensorEntry> {
        window.next_record(self.entry_at(index), self.sections.tensors.end())
    }

    /// File offset of a tensor's name.
    pub(super) fn name_at<R: ReadAt>(&self, window: &mut Window<'_, R>, index: u32) -> Checked<u64> {
        let offset = u64::from(self.entry(window, index)?.name_offset.get());
        Ok(self.sections.strings.start().saturating_add(offset))
    }

    /// Takes in the next buffer of a blob, of which `done` bytes have the checksum `crc`; `true` when all of it has been and
    /// the checksum is the table's.
    #[inline(never)]
    pub(super) fn blob_checksum<R: ReadAt>(
        &self,
        window: &mut Window<'_, R>,
        checksum: Checksum,
        index: u32,
        done: &mut u64,
        crc: &mut u32,
    ) -> Checked<bool> {
        let entry = self.entry(window, index)?;
        let blob = entry.extent(self.header.offset_width());
        if *done < blob.len() {
            let bytes = window.some(blob.start().saturating_add(*done), blob.end())?;
            *crc = checksum.update(*crc, bytes);
            *done = done.saturating_add(num::wide(bytes.len()));
            return Ok(false);
        }
        let stored = u64::from(index).saturating_add(1).saturating_mul(4);
        let expected = window.record::<U32>(self.sections.checksums.start().saturating_add(stored))?.get();
        checksums::compare_blob(index, expected, *crc).map_err(|error| window.refuse(error))?;
        Ok(true)
    }
}
