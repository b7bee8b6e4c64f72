//! Every error code has a fixture named after it, and the fixture fails with exactly that code.
//!
//! `tests/data/invalid/NNN-slug.p64` is a container file with one thing wrong; `P64_BLESS=1` rewrites the files from
//! `p64_tests::broken`. Codes that no container file can show are provoked by a call in [`by_call`].

use p64_core::crc32c::Checksum;
use p64_core::validate::{Integrity, NameSlot, OpenOptions, Policy, Storage};
use p64_core::{Code, Container, DType, Error, Kind, kernel};
use p64_tests::assemble::Assembly;
use p64_tests::{broken, data};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn fixture(code: Code) -> PathBuf {
    data::data("invalid").join(format!("{:03}-{}.p64", code.number(), code.slug()))
}

/// Everything a strict reader does with a file, and every warning on the way.
fn read(file: &[u8], policy: Policy, warnings: &mut Vec<Error>) -> Result<(), Error> {
    let options = OpenOptions { policy, integrity: Integrity::Full, checksum: Checksum::default() };
    let container = Container::open_with(file, &options, Storage::default(), &mut |warning| warnings.push(warning))?;
    container.metadata()?;
    container.provenance()?;
    for info in container.tensors().filter(|info| kernel::is_supported(info.dtype())) {
        let elements = usize::try_from(info.shape().elements().expect("checked")).expect("small");
        kernel::dequantize(info.dtype(), container.tensor(&info)?.bytes(), &mut vec![0.0; elements])?;
    }
    Ok(())
}

#[test]
fn fixtures_fail_with_exactly_their_code() {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for &code in Code::ALL {
        let Some(bytes) = broken::file(code) else { continue };
        let path = fixture(code);
        if data::bless() {
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            fs::write(&path, &bytes).expect("writable");
        }
        let stored = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e} (P64_BLESS=1 writes it)", path.display()));
        assert_eq!(stored, bytes, "{}: P64_BLESS=1 rewrites it", path.display());
        let mut warnings = Vec::new();
        let result = read(&stored, Policy::Strict, &mut warnings);
        let found: Vec<_> = result.err().into_iter().chain(warnings).map(|error| error.code).collect();
        // Version 3 is refused by the strict policy before its flags are looked at.
        if code == Code::VersionThreeFlags {
            let error = read(&stored, Policy::Compatible, &mut Vec::new()).expect_err("broken");
            assert_eq!(error.code, code);
        } else {
            if found != [code] {
                wrong.push((code, found));
            }
        }
        seen.insert(path.file_name().expect("a name").to_owned());
    }
    assert_eq!(wrong, [], "fixtures that fail with other codes");
    let on_disk: BTreeSet<_> =
        fs::read_dir(data::data("invalid")).expect("there").map(|entry| entry.expect("readable").file_name()).collect();
    assert_eq!(on_disk, seen, "files without a code");
}

/// Codes of the caller's mistakes and of models that cannot run, each provoked by a call.
fn by_call(code: Code) -> Option<Error> {
    let small = Assembly::small().build();
    let container = Container::open(&small).expect("valid");
    let metadata = container.metadata().expect("well-formed").expect("there");
    match code {
        // A file of 4 GiB as a hole in the address space: only its length is looked at.
        Code::FileTooLarge => {
            let mut file = vec![0u8; 1 << 32];
            file[..64].copy_from_slice(&small[..64]);
            Container::open(&file).err()
        }
        // 60,000 layers and 1,200 tensors that go back and forth between two of them: 8 MB, made here.
        Code::ScheduleScattered => {
            let mut assembly = Assembly::small();
            (assembly.flags, assembly.hparams[0]) = (0b100_0001, 60_000);
            assembly.tensors = (0..1_200)
                .map(|i| p64_tests::assemble::TensorSpec::new(&format!("t{i}"), 2, 24, i % 2, &[0], 0))
                .collect();
            Container::open(&assembly.build()).err()
        }
        Code::BufferTooSmall => {
            let mut verified = [const { std::sync::atomic::AtomicU8::new(0) }; 2];
            let storage = Storage { names: &mut [], verified: &mut verified };
            Container::open_with(&small, &OpenOptions::default(), storage, &mut |_| ()).err()
        }
        Code::TooManyTensors => {
            let storage = Storage { names: &mut [NameSlot::default(); 3], verified: &mut [] };
            Container::open_with(&small, &OpenOptions::default(), storage, &mut |_| ()).err()
        }
        Code::NoSuchTensor => {
            let mut other = Assembly::small();
            other.tensors[0].source_offset = 9;
            let other = other.build();
            let foreign = Container::open(&other).expect("valid").info(0).expect("there");
            container.tensor(&foreign).err()
        }
        Code::LengthMismatch => kernel::Matrix::new(DType::F32, 2, 2, &[0; 15]).err(),
        Code::UnsupportedDType => kernel::Matrix::new(DType::Q8_K, 1, 256, &[0; 292]).err(),
        Code::MetadataWrongType => metadata.u32("general.architecture").err(),
        _ => None,
    }
}

/// Codes that other test files provoke: the forward pass and its binding (`tests/model_errors.rs`), reading through a
/// callback (`tests/stream.rs`).
const ELSEWHERE: &[Code] = &[
    Code::ReadFailed,
    Code::ReadChanged,
    Code::NotValidated,
    Code::ContextFull,
    Code::TokenRange,
    Code::UnsupportedArchitecture,
    Code::MissingTensor,
    Code::MissingKey,
    Code::WrongShape,
    Code::UnsupportedFeature,
    Code::MetadataRange,
    Code::MetadataContradiction,
];

#[test]
fn every_code_is_provoked() {
    for &code in Code::ALL {
        let by_file = broken::file(code).is_some();
        let by_call = by_call(code).map(|error| error.code);
        assert!(
            by_file || by_call == Some(code) || ELSEWHERE.contains(&code),
            "{code:?} ({}) has no fixture; its call gave {by_call:?}",
            code.slug()
        );
    }
}

/// The compatible policy refuses less, never something else.
#[test]
fn the_compatible_policy_turns_deviations_into_warnings_only() {
    for &code in Code::ALL {
        let Some(bytes) = broken::file(code) else { continue };
        let mut warnings = Vec::new();
        match read(&bytes, Policy::Compatible, &mut warnings) {
            Ok(()) => assert!(warnings.iter().any(|warning| warning.code == code), "{code:?} passed in silence"),
            Err(error) => assert!(error.code == code && code.kind() != Kind::Caller, "{code:?} became {error}"),
        }
    }
}

/// The sentences, so that a change to one is seen.
#[test]
fn sentences_are_pinned() {
    let mut text = String::new();
    for &code in Code::ALL {
        let Some(bytes) = broken::file(code) else { continue };
        let mut warnings = Vec::new();
        let error = read(&bytes, Policy::Strict, &mut warnings).err().or_else(|| warnings.first().copied());
        text.push_str(&format!(
            "{:03} {}\n    {}\n",
            code.number(),
            code.slug(),
            error.unwrap_or_else(|| panic!("{code:?} passes"))
        ));
    }
    let path = data::workspace("tests/golden/invalid.txt");
    if data::bless() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(&path, &text).expect("writable");
    }
    assert_eq!(fs::read_to_string(&path).expect("P64_BLESS=1 writes it"), text);
}
