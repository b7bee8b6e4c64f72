//! Validation through reads against validation of a slice, and what a reader's failure does.

use p64_core::crc32c::Checksum;
use p64_core::stream::{MIN_BUFFER, ReadAt, ReadFault, Step, StreamContainer, Validator};
use p64_core::validate::{Integrity, NameSlot, OpenOptions, Policy, Storage};
use p64_core::{Code, Container, Error, Place};
use p64_tests::agree::{self, Flash};
use p64_tests::assemble::{Assembly, TensorSpec};
use p64_tests::{data, mutate};
use std::fs;
use std::path::Path;

/// Lengths that the C interface promises, the shortest one, and one that holds the whole file.
fn buffers(file: &[u8]) -> [usize; 5] {
    [MIN_BUFFER, 256, 257, 4096, file.len().max(MIN_BUFFER)]
}

#[test]
fn every_fixture_has_one_verdict() {
    let mut compared = 0;
    let mut files = 0;
    for entry in fs::read_dir(data::data("invalid")).expect("there") {
        let file = fs::read(entry.expect("readable").path()).expect("readable");
        compared += agree::check(&file, &buffers(&file));
        files += 1;
    }
    let small = Assembly::small().build();
    compared += agree::check(&small, &buffers(&small));
    println!("{files} broken files and the small one, {compared} openings compared");
    assert!(files > 60);
}

/// The bundled model, converted: real names, a real tokenizer, padding.
#[test]
fn a_real_model_has_one_verdict() {
    let gguf = fs::read(data::data("tiny/tiny-stories-q8_0.gguf")).expect("bundled");
    let converted =
        p64_std::convert::convert_bytes(Path::new("tiny"), gguf, &p64_std::convert::ConvertOptions::default());
    let (file, _) = converted.expect("convertible");
    agree::check(&file, &[256, 4096, file.len()]);
    let mut buffer = [0; 256];
    let mut flash = Flash::new(&file);
    let options = OpenOptions { policy: Policy::Strict, ..OpenOptions::default() };
    StreamContainer::open(&mut flash, &mut buffer, Storage::default(), &options, &mut |_| ()).expect("valid");
    println!("{} bytes in {} reads of at most {} bytes", file.len(), flash.reads, flash.longest);
    assert_eq!(flash.longest, 256);
}

/// Every byte of the small file replaced by others, checksums put right again, so that every check is reached.
#[test]
fn damaged_files_have_one_verdict() {
    let small = Assembly::small().build();
    let front = mutate::usize_at(&small, mutate::at::CHECKSUMS) + 64;
    for at in (0..front).chain((front..small.len()).step_by(97)) {
        for value in [0, 0xff, small[at] ^ 1, small[at].wrapping_add(1)] {
            let mut file = small.clone();
            file[at] = value;
            mutate::refix(&mut file);
            agree::check(&file, &[257]);
        }
    }
    for len in (0..small.len()).step_by(61) {
        agree::check(&small[..len], &[MIN_BUFFER]);
    }
}

/// Names that differ late, that are equal, and that are more than one window of hashes.
#[test]
fn duplicate_names_are_found_alike() {
    let mut assembly = Assembly::small();
    assembly.flags = 1;
    let long = "n".repeat(300);
    let names =
        (0..100).map(|i| format!("{long}{i}")).chain([format!("{long}7"), format!("{long}99"), format!("{long}7")]);
    let n_layer = assembly.hparams[0];
    assembly.tensors = names.map(|name| TensorSpec::new(&name, 0xfffe, 24, n_layer, &[0], 0)).collect();
    let file = assembly.build();
    agree::check(&file, &[MIN_BUFFER, 256, file.len()]);
    let mut found = Vec::new();
    let mut buffer = [0; 256];
    let options = OpenOptions { policy: Policy::Compatible, ..OpenOptions::default() };
    StreamContainer::open(&file[..], &mut buffer, Storage::default(), &options, &mut |w| found.push(w))
        .expect("compatible");
    let found: Vec<_> = found.iter().filter(|w| w.code == Code::NameDuplicate).map(|w| (w.place, w.expected)).collect();
    let pair = |second, first| (Place::Tensor(second), first);
    assert_eq!(found, [pair(100, 7), pair(102, 7), pair(101, 99), pair(102, 100)]);
}

/// A reader whose `at`th read fails once.
struct Failing<'f> {
    flash: Flash<'f>,
    at: usize,
}

impl ReadAt for Failing<'_> {
    fn len(&self) -> u64 {
        self.flash.len()
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault> {
        if self.flash.reads == self.at {
            self.flash.reads += 1;
            return Err(ReadFault(77));
        }
        self.flash.read_at(offset, buffer)
    }
}

/// Whichever read fails: it says so, the validation goes on where it stopped, and ends as if nothing had happened.
#[test]
fn a_failed_read_is_its_own_error_and_can_be_tried_again() {
    let file = Assembly::small().build();
    let options = OpenOptions { policy: Policy::Strict, ..OpenOptions::default() };
    for at in 0.. {
        let mut buffer = [0; 256];
        let mut reader = Failing { flash: Flash::new(&file), at };
        let mut validator =
            Validator::new(&mut reader, &mut buffer, Storage::default(), &options).expect("long enough");
        let error = match validator.run(&mut |_| ()) {
            Ok(()) => {
                assert!(at > 50, "only {at} reads");
                break;
            }
            Err(error) => error,
        };
        assert_eq!((error.code, error.found), (Code::ReadFailed, 77));
        assert!(error.offset < file.len() as u64);
        validator.run(&mut |_| ()).expect("the second try");
        assert_eq!(validator.finish().expect("done").tensor_count() as usize, Assembly::small().tensors.len());
    }
}

/// A source that changes, or shrinks, after it was validated gives errors, not nonsense.
struct Shifting<'f> {
    before: &'f [u8],
    after: &'f [u8],
    changed: &'f std::cell::Cell<bool>,
}

impl ReadAt for Shifting<'_> {
    fn len(&self) -> u64 {
        if self.changed.get() { self.after.len() as u64 } else { self.before.len() as u64 }
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault> {
        let mut file = if self.changed.get() { self.after } else { self.before };
        file.read_at(offset, buffer)
    }
}

#[test]
fn a_source_that_does_not_hold_still_gives_errors() {
    let file = Assembly::small().build();
    let noise = vec![0xff; file.len()];
    for (after, code) in [(&noise[..], Code::ReadChanged), (&file[..64], Code::ReadChanged)] {
        let changed = std::cell::Cell::new(false);
        let mut buffer = [0; 64];
        let reader = Shifting { before: &file, after, changed: &changed };
        let options = OpenOptions::default();
        let opened = StreamContainer::open(reader, &mut buffer, Storage::default(), &options, &mut |_| ());
        let mut container = opened.expect("valid");
        let tensor = container.tensor(3).expect("there");
        changed.set(true);
        assert_eq!(container.tensor(2).map(|t| t.index()).map_err(|e| e.code), Err(code));
        let mut out = vec![0; 4096];
        assert!(container.name(&tensor, &mut out).is_err());
        assert!(container.verify(&tensor).is_err());
        assert!(container.token(1, &mut out).is_err());
        assert!(container.layer(0).is_err() || after.len() == noise.len());
    }
}

#[test]
fn misuse_is_an_error() {
    let file = Assembly::small().build();
    let options = OpenOptions::default();
    let too_small = |error: Error| (error.code, error.expected, error.found);
    let mut short = [0; MIN_BUFFER - 1];
    let short = Validator::new(&file[..], &mut short, Storage::default(), &options);
    assert_eq!(short.map(|_| ()).map_err(too_small), Err((Code::BufferTooSmall, 64, 63)));

    let mut buffer = [0; 256];
    let mut validator = Validator::new(&file[..], &mut buffer, Storage::default(), &options).expect("long enough");
    assert_eq!(validator.step(&mut |_| ()), Ok(Step::More));
    assert_eq!(validator.finish().map(|_| ()).map_err(|e| e.code), Err(Code::NotValidated));

    let storage = Storage { names: &mut [NameSlot::default(); 2], verified: &mut [] };
    let opened = StreamContainer::open(&file[..], &mut buffer, storage, &options, &mut |_| ());
    assert_eq!(opened.map(|_| ()).map_err(|e| e.code), Err(Code::TooManyTensors));
    let mut container =
        StreamContainer::open(&file[..], &mut buffer, Storage::default(), &options, &mut |_| ()).expect("valid");
    let past = container.tensor_count();
    assert_eq!(container.tensor(past).map(|_| ()).map_err(|e| e.code), Err(Code::NoSuchTensor));
    let tensor = container.tensor(0).expect("there");
    let len = tensor.extent().len();
    assert_eq!(container.read(&tensor, len, &mut [0]).map_err(|e| e.code), Err(Code::LengthMismatch));
    assert_eq!(container.read(&tensor, u64::MAX, &mut [0]).map_err(|e| e.code), Err(Code::LengthMismatch));
    assert_eq!(container.name(&tensor, &mut []).map(|_| ()).map_err(|e| e.code), Err(Code::BufferTooSmall));
    assert_eq!(container.layer(99).map(|_| ()).map_err(|e| e.code), Err(Code::LengthMismatch));
}

/// After a failed check every later step gives the same error, whatever the source holds by then.
#[test]
fn a_failed_validation_stays_failed() {
    let file = fs::read(data::data("invalid/170-metadata-checksum.p64")).expect("there");
    let mut buffer = [0; 256];
    let mut validator =
        Validator::new(&file[..], &mut buffer, Storage::default(), &OpenOptions::default()).expect("long enough");
    let first = validator.run(&mut |_| ()).expect_err("broken");
    assert_eq!(validator.step(&mut |_| ()), Err(first));
    assert_eq!(validator.finish().map(|_| ()), Err(first));
}

/// Lazy: a damaged tensor's bytes are never given, the others' are.
#[test]
fn lazy_integrity_verifies_before_it_reads() {
    let mut file = Assembly::small().build();
    let damaged = Container::open(&file).expect("valid").info(1).expect("there").extent();
    file[usize::try_from(damaged.start()).expect("small")] ^= 0x10;
    let options = OpenOptions { integrity: Integrity::Lazy, ..OpenOptions::default() };
    let mut buffer = [0; 256];
    let mut container =
        StreamContainer::open(&file[..], &mut buffer, Storage::default(), &options, &mut |_| ()).expect("lazy");
    let tensors = [0, 1, 2].map(|index| container.tensor(index).expect("there"));
    let mut out = [0xa5; 1];
    assert_eq!(container.read(&tensors[0], 0, &mut out), Ok(()));
    out = [0xa5];
    assert_eq!(container.read(&tensors[1], 0, &mut out).map_err(|e| e.code), Err(Code::TensorChecksum));
    assert_eq!(out, [0xa5]);
    assert_eq!(container.read(&tensors[2], 0, &mut out), Ok(()));
}

/// The tables of every size, and a hook, give one verdict.
#[test]
fn every_checksum_serves() {
    let file = Assembly::small().build();
    let tables = [Checksum::BYTES_64, Checksum::KIB_1, Checksum::KIB_8, Checksum::KIB_16];
    for checksum in tables.into_iter().chain([p64_std::map::CHECKSUM]) {
        let options = OpenOptions { policy: Policy::Strict, integrity: Integrity::Full, checksum };
        let mut buffer = [0; 257];
        StreamContainer::open(&file[..], &mut buffer, Storage::default(), &options, &mut |_| ()).expect("valid");
        Container::open_with(&file, &options, Storage::default(), &mut |_| ()).expect("valid");
    }
}

/// A file as the embedded world's traits give one; device errors come through as numbers.
struct Device<'f> {
    file: &'f [u8],
    at: u64,
    broken: bool,
}

impl embedded_io::ErrorType for Device<'_> {
    type Error = embedded_io::ErrorKind;
}

impl embedded_io::Read for Device<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Self::Error> {
        if self.broken {
            return Err(embedded_io::ErrorKind::TimedOut);
        }
        let rest = &self.file[usize::try_from(self.at).expect("small")..];
        // As a real device: seldom all that was asked for.
        let len = buffer.len().min(rest.len()).min(100);
        buffer[..len].copy_from_slice(&rest[..len]);
        self.at += len as u64;
        Ok(len)
    }
}

impl embedded_io::Seek for Device<'_> {
    fn seek(&mut self, to: embedded_io::SeekFrom) -> Result<u64, Self::Error> {
        self.at = match to {
            embedded_io::SeekFrom::Start(at) => at,
            embedded_io::SeekFrom::End(back) => (self.file.len() as u64).saturating_add_signed(back),
            embedded_io::SeekFrom::Current(by) => self.at.saturating_add_signed(by),
        };
        Ok(self.at)
    }
}

impl embedded_storage::ReadStorage for Device<'_> {
    type Error = &'static str;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Self::Error> {
        let start = offset as usize;
        let source = self.file.get(start..start + bytes.len()).filter(|_| !self.broken).ok_or("bus")?;
        bytes.copy_from_slice(source);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.file.len()
    }
}

#[test]
fn the_embedded_traits_are_sources() {
    let file = Assembly::small().build();
    let options = OpenOptions { policy: Policy::Strict, ..OpenOptions::default() };
    let device = |file, broken| Device { file, at: 0, broken };
    let code = |error: Error| (error.code, error.found);
    let mut buffer = [0; 256];

    let io = p64_core::stream::Io::new(device(&file, false)).expect("seekable");
    assert_eq!(io.len(), file.len() as u64);
    StreamContainer::open(io, &mut buffer, Storage::default(), &options, &mut |_| ()).expect("valid");
    let io = p64_core::stream::Io::new(device(&file, true)).expect("seekable");
    let failed = StreamContainer::open(io, &mut buffer, Storage::default(), &options, &mut |_| ());
    assert_eq!(failed.map(|_| ()).map_err(code), Err((Code::ReadFailed, 14)));

    // A partition that begins behind something else.
    let flash = [&[0xee; 512][..], &file].concat();
    let len = u32::try_from(file.len()).expect("small");
    let partition = |broken| p64_core::stream::Storage::new(device(&flash, broken), 512, len);
    StreamContainer::open(partition(false), &mut buffer, Storage::default(), &options, &mut |_| ()).expect("valid");
    let failed = StreamContainer::open(partition(true), &mut buffer, Storage::default(), &options, &mut |_| ());
    assert_eq!(failed.map(|_| ()).map_err(code), Err((Code::ReadFailed, 1)));
}
