//! Arrays for NumPy: the archive, its heads and its values. `scripts/arrays/check.py` reads such files with NumPy itself.

use p64_core::DType;
use p64_std::Error;
use p64_std::convert::{ProduceOptions, convert_gguf};
use p64_std::export::{TensorOptions, export_npz, export_safetensors};
use p64_std::safetensors::SafetensorsSet;
use p64_std::source::OpenSource;
use p64_tests::data::data;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

fn tiny() -> PathBuf {
    data("tiny/tiny-stories-q8_0.gguf")
}

/// Name to head and bytes. Reading a member of an archive verifies its CRC-32.
fn arrays(path: &Path) -> BTreeMap<String, (String, Vec<u8>)> {
    let file = std::fs::File::open(path).expect("written");
    let mut zip = zip::ZipArchive::new(file).expect("an archive");
    (0..zip.len())
        .map(|index| {
            let mut member = zip.by_index(index).expect("a member");
            assert_eq!(member.compression(), zip::CompressionMethod::Stored);
            assert_eq!(member.data_start().expect("known") % 64, 0, "not aligned");
            let mut bytes = Vec::new();
            member.read_to_end(&mut bytes).expect("whole");
            let name = member.name().expect("a name").into_owned();
            let name = name.strip_suffix(".npy").expect("an array").to_owned();
            let (front, rest) = bytes.split_at(10);
            assert_eq!(&front[..8], b"\x93NUMPY\x01\0");
            let len = usize::from(u16::from_le_bytes([front[8], front[9]]));
            assert_eq!((len + 10) % 64, 0);
            let head = String::from_utf8(rest[..len].to_vec()).expect("text");
            assert!(head.ends_with('\n'));
            (name, (head.trim_end().to_owned(), rest[len..].to_vec()))
        })
        .collect()
}

#[test]
fn values_of_quantised_tensors_are_cores() {
    let folder = tempfile::tempdir().expect("folder");
    let p64 = folder.path().join("model.p64");
    convert_gguf(&tiny(), &p64, &ProduceOptions::default().layout, &mut |_| ()).expect("converted");
    let mut archives = Vec::new();
    for source in [tiny(), p64] {
        let npz = folder.path().join("model.npz");
        let report = export_npz(&source, &npz, &TensorOptions::default(), &mut |_| ()).expect("exported");
        assert_eq!(report.notes, ["values of quantised tensors are written as F32"]);
        let mut some = TensorOptions::default();
        some.select = vec!["*_norm*".to_owned()];
        let norms = folder.path().join("norms.npz");
        let none = export_npz(&source, &norms, &some, &mut |_| ()).expect("exported");
        assert!(none.notes.is_empty() && none.tensors > 0, "{:?}", none.notes);
        let found = arrays(&npz);
        let opened = OpenSource::open(&source).expect("open");
        let tensors = opened.tensors();
        assert_eq!(found.len(), tensors.len());
        for tensor in tensors {
            let (head, bytes) = &found[&tensor.name];
            let payload = &tensor.payload;
            let mut raw = vec![0; usize::try_from(payload.len()).expect("small")];
            payload.read_at(0, &mut raw).expect("read");
            let elements = usize::try_from(payload.shape().elements().expect("small")).expect("small");
            let mut values = vec![0.0; elements];
            p64_core::kernel::dequantize(payload.dtype(), &raw, &mut values).expect("decoded");
            let expected: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            assert!(*bytes == expected, "{}", tensor.name);
            let dims: String = payload.shape().dims().iter().rev().map(|dim| format!("{dim}, ")).collect();
            let dims = dims.trim_end();
            assert_eq!(*head, format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({dims}), }}"));
        }
        archives.push(std::fs::read(&npz).expect("read"));
    }
    let again = |source: &Path| {
        let npz = folder.path().join("again.npz");
        export_npz(source, &npz, &TensorOptions::default(), &mut |_| ()).expect("exported");
        std::fs::read(&npz).expect("read")
    };
    // Nothing in it depends on time.
    assert!(again(&tiny()) == archives[0]);
}

#[test]
fn patterns_select_and_must_fit_something() {
    let folder = tempfile::tempdir().expect("folder");
    let npz = folder.path().join("some.npz");
    let mut options = TensorOptions::default();
    options.select = vec!["*_norm*".into(), "token_embd".into()];
    let report = export_npz(&tiny(), &npz, &options, &mut |_| ()).expect("exported");
    let found = arrays(&npz);
    assert_eq!(found.len() as u64, report.tensors);
    assert!(found.contains_key("token_embd.weight"));
    assert!(found.keys().all(|name| name.contains("_norm") || name == "token_embd.weight"), "{:?}", found.keys());
    options.select = vec!["*_norm*".into(), "nothing".into()];
    let error = export_npz(&tiny(), &npz, &options, &mut |_| ()).expect_err("no such tensor");
    assert!(matches!(&error, Error::Usage { reason } if reason.contains("a name like nothing")), "{error}");
}

/// Halves: rounded to nearest, and read in whatever pieces they are written.
#[test]
fn halves_are_rounded_values() {
    let folder = tempfile::tempdir().expect("folder");
    for dtype in [DType::F16, DType::BF16] {
        let out = folder.path().join("model.safetensors");
        let mut options = TensorOptions::default();
        options.dequantize = Some(dtype);
        options.own_names = true;
        export_safetensors(&tiny(), &out, &options, &mut |_| ()).expect("exported");
        let set = SafetensorsSet::open(&out).expect("well-formed");
        let source = OpenSource::open(&tiny()).expect("open");
        let mut seen = 0;
        for tensor in source.tensors().iter().filter(|tensor| tensor.payload.dtype() == DType::Q8_0) {
            let payload = &tensor.payload;
            let mut raw = vec![0; usize::try_from(payload.len()).expect("small")];
            payload.read_at(0, &mut raw).expect("read");
            let elements = usize::try_from(payload.shape().elements().expect("small")).expect("small");
            let mut values = vec![0.0; elements];
            p64_core::kernel::dequantize(DType::Q8_0, &raw, &mut values).expect("decoded");
            let expected: Vec<u8> = values
                .iter()
                .flat_map(|&value| match dtype {
                    DType::F16 => half::f16::from_f32(value).to_le_bytes(),
                    _ => half::bf16::from_f32(value).to_le_bytes(),
                })
                .collect();
            let found = set.find(&tensor.name).expect("there").payload().expect("storable");
            assert!(p64_std::source::Payload::bytes(&found) == Some(&expected[..]), "{}", tensor.name);
            seen += 1;
        }
        assert!(seen > 5, "{seen} tensors");
    }
}

/// A name that would lead out of the folder an archive is unpacked into.
#[test]
fn names_that_lead_elsewhere_are_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let source = data("malformed/safetensors/27_name_path.safetensors");
    let npz = folder.path().join("out.npz");
    let error = export_npz(&source, &npz, &TensorOptions::default(), &mut |_| ()).expect_err("leads elsewhere");
    assert!(error.to_string().contains("would lead out of its folder"), "{error}");
    assert!(!npz.exists());
}
