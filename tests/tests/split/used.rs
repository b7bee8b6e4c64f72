//! A set where a model is wanted: it does what the one container does.

use super::{STRICT, bytes, cut, folder, split_ok, tiny};
use p64_core::validate::Integrity;
use p64_std::convert::{ConvertOptions, ProduceOptions, check_parity, convert_file, convert_gguf};
use p64_std::export::export_gguf;
use p64_std::map::{MapOptions, MappedSet};
use p64_std::model::LoadedModel;
use p64_std::session::{Session, SessionOptions};
use p64_std::source::OpenSource;
use p64_std::split::merge;
use p64_tests::data::data;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Logits after a prompt and a token, as bits.
fn logits(model: &LoadedModel) -> Vec<u32> {
    let options = SessionOptions { threads: 1, context: Some(32), ..SessionOptions::default() };
    let mut session = Session::new(model, &options).expect("fits");
    let mut bits: Vec<u32> =
        session.prefill(&[1, 5, 9, 13, 2, 40]).expect("runs").iter().map(|logit| logit.to_bits()).collect();
    bits.extend(session.step(7).expect("runs").iter().map(|logit| logit.to_bits()));
    bits
}

fn load(path: &Path, integrity: Integrity) -> LoadedModel {
    LoadedModel::open(path, &MapOptions { integrity, ..STRICT }).expect("a model")
}

#[test]
fn it_runs_alike() {
    let (_folder, whole) = tiny();
    let folder = folder();
    let reference = load(&whole, Integrity::Full);
    let expected = logits(&reference);
    for how in ["layers=1", "layers=3", "size=1", "auto"] {
        let report = split_ok(&whole, &folder.path().join("m"), how);
        for (file, integrity) in report.files.iter().zip([Integrity::Full, Integrity::Lazy].into_iter().cycle()) {
            let model = load(&file.path, integrity);
            assert_eq!(logits(&model), expected, "{how}");
            assert_eq!(model.description(), reference.description());
            assert_eq!(model.parameters(), reference.parameters());
            assert_eq!(model.file_size(), report.files.iter().map(|file| file.bytes).sum::<u64>());
            assert_eq!(model.container().is_some(), report.files.len() == 1);
        }
    }
}

#[test]
fn it_goes_out_and_in_again() {
    let (_folder, whole) = tiny();
    let folder = folder();
    let gguf = data("tiny/tiny-stories-q8_0.gguf");
    let report = split_ok(&whole, &folder.path().join("m"), "layers=1");
    for file in [&report.files[0].path, &report.files[4].path] {
        let back = folder.path().join("back.gguf");
        let exported = export_gguf(file, &back, &mut |_| ()).expect("exported");
        assert_eq!(exported.identical, Some(true));
        assert!(bytes(&back) == bytes(&gguf));
        let parity = check_parity(&gguf, file, &mut |_| ()).expect("comparable");
        assert!(parity.is_equal(), "{:?}", parity.differences);
        let again = folder.path().join("again.p64");
        convert_file(file, &again, &ProduceOptions::default(), &mut |_| ()).expect("converted");
        assert!(bytes(&again) == bytes(&whole), "the provenance is that of the whole again");
    }
}

#[test]
fn its_tensors_are_those_of_the_whole_in_its_order() {
    let (_folder, whole) = tiny();
    let folder = folder();
    let report = split_ok(&whole, &folder.path().join("m"), "size=200k");
    let (one, many) =
        (OpenSource::open(&whole).expect("opens"), OpenSource::open(&report.files[1].path).expect("opens"));
    let (one, many) = (one.tensors(), many.tensors());
    assert_eq!(one.len(), many.len());
    for (a, b) in one.iter().zip(&many) {
        assert_eq!((&a.name, a.source_offset, a.role), (&b.name, b.source_offset, b.role));
        assert_eq!(a.payload.bytes(), b.payload.bytes());
    }
    let (set, _) = MappedSet::open(&report.files[0].path, &STRICT).expect("a set");
    for (place, tensor) in set.tensors().enumerate() {
        assert_eq!(tensor.index as usize, place);
        let found = set.find(tensor.info.name()).expect("there");
        assert_eq!((found.index, found.file, found.info), (tensor.index, tensor.file, tensor.info));
        assert_eq!(set.info(tensor.index).map(|found| found.info), Some(tensor.info));
    }
    assert!(set.find("p64.metadata").is_none() && set.find("nothing").is_none());
}

/// The bundled model with a GiB before each layer: past 4 GiB as a whole, below it in each file of an automatic cut.
#[test]
fn a_model_past_4_gib_in_files_below_it() {
    let folder = folder();
    let gguf = data("tiny/tiny-stories-q8_0.gguf");
    let page = |page_size| ConvertOptions { page_size, ..ConvertOptions::default() };
    let mut options = ProduceOptions::preserving(page(1 << 30));
    options.split = Some(cut("auto"));
    let report = convert_file(&gguf, &folder.path().join("m"), &options, &mut |_| ()).expect("converted");
    let set = report.set.expect("a set");
    assert_eq!(set.files.iter().map(|file| file.layers).collect::<Vec<_>>(), [Some((0, 1)), Some((2, 3))]);
    assert!(report.bytes > 1 << 32 && set.files.iter().all(|file| file.bytes < 1 << 32));
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    let small = folder.path().join("small.p64");
    convert_gguf(&gguf, &small, &page(256), &mut |_| ()).expect("converted");
    let model = load(&set.files[1].path, Integrity::Lazy);
    assert_eq!(logits(&model), logits(&load(&small, Integrity::Full)));

    let merged = folder.path().join("merged.p64");
    assert!(merge(&set.files[0].path, &merged, &mut |_| ()).expect("merged").identical);
    assert_eq!(version(&merged), 5);

    // With a page of 2 GiB no layer fits below the limit: a file of version 5 for each, and a word about it.
    options.layout = page(1 << 31);
    let report = convert_file(&gguf, &folder.path().join("l"), &options, &mut |_| ()).expect("converted");
    let set = report.set.expect("a set");
    assert!(report.warnings.iter().any(|warning| warning.to_string().contains("layer 0 is not cut")));
    assert_eq!(set.files[0].layers, Some((0, 0)));
    assert_eq!(version(&set.files[0].path), 5);
}

/// The container version in a file's header.
fn version(path: &Path) -> u16 {
    let mut header = [0; 6];
    File::open(path).expect("there").read_exact(&mut header).expect("a header");
    u16::from_le_bytes([header[4], header[5]])
}
