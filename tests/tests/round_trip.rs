//! GGUF to P64 and back, for every GGUF that there is: those of all families and types, those of other tests, real models.
//! And what comes back where the payloads were replaced.

#[path = "round_trip/replaced.rs"]
mod replaced;

use p64_std::convert::{ConvertOptions, Layout, ProduceOptions, check_parity, convert_bytes, convert_file};
use p64_std::export::{export_bytes, export_gguf};
use p64_tests::conformance::{Recipe, families};
use p64_tests::data::{data, model};
use std::path::Path;

fn preserving(layout: ConvertOptions) -> ProduceOptions {
    ProduceOptions::preserving(layout)
}

/// Converts, converts the container into another layout, and exports both; all on disk.
fn through_files(gguf: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let source = std::fs::read(gguf).expect("there");
    let plain = ConvertOptions { page_size: 256, layer_major: false, pack: false, schedule: false };
    let report =
        convert_file(gguf, &at("a.p64"), &preserving(ConvertOptions::default()), &mut |_| ()).expect("converted");
    assert_eq!((report.profile.as_str(), report.changes.len()), ("gguf-preserving", 0));
    let parity = check_parity(gguf, &at("a.p64"), &mut |_| ()).expect("comparable");
    assert!(parity.is_equal(), "{:?}", parity.differences);
    // A container laid out anew is the one that the GGUF gives in that layout.
    convert_file(&at("a.p64"), &at("b.p64"), &preserving(plain), &mut |_| ()).expect("laid out anew");
    convert_file(gguf, &at("c.p64"), &preserving(plain), &mut |_| ()).expect("converted");
    assert!(std::fs::read(at("b.p64")).expect("there") == std::fs::read(at("c.p64")).expect("there"), "{gguf:?}");
    // Rows side by side and back, by way of another container too.
    let mut tuned = preserving(ConvertOptions::default());
    tuned.weights = Layout::Tuned;
    let report = convert_file(gguf, &at("t.p64"), &tuned, &mut |_| ()).expect("converted");
    assert_eq!((report.profile.as_str(), report.changes.len()), ("gguf-preserving", 0));
    let parity = check_parity(gguf, &at("t.p64"), &mut |_| ()).expect("comparable");
    assert!(parity.is_equal(), "{:?}", parity.differences);
    convert_file(&at("t.p64"), &at("d.p64"), &preserving(ConvertOptions::default()), &mut |_| ())
        .expect("laid out anew");
    assert!(std::fs::read(at("d.p64")).expect("there") == std::fs::read(at("a.p64")).expect("there"), "{gguf:?}");
    for p64 in ["a.p64", "b.p64", "t.p64"] {
        let report = export_gguf(&at(p64), &at("back.gguf"), &mut |_| ()).expect("exported");
        assert_eq!(report.identical, Some(true), "{gguf:?}");
        assert!(report.replaced.is_empty());
        assert!(std::fs::read(at("back.gguf")).expect("there") == source, "{gguf:?}: other bytes");
    }
}

#[test]
fn every_family_and_type() {
    let names: Vec<String> = families().into_iter().flat_map(|family| family.models).collect();
    assert!(names.len() > 80, "{} models", names.len());
    for name in names {
        let source = Recipe::load(&name).file();
        let (p64, _) = convert_bytes(Path::new(&name), source.clone(), &ConvertOptions::default()).expect("converted");
        let container = p64_core::Container::open(&p64).expect("well-formed");
        let (back, identical) = export_bytes(Path::new(&name), &container).expect("exported");
        assert_eq!(identical, Some(true), "{name}");
        assert!(back == source, "{name}: other bytes");
    }
}

#[test]
fn a_family_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["llama-q4_k-mixed", "granitemoe-two-of-six"] {
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, Recipe::load(name).file()).expect("written");
        through_files(&path);
    }
}

#[test]
fn the_bundled_model() {
    through_files(&data("tiny/tiny-stories-q8_0.gguf"));
}

#[test]
fn smollm2() {
    through_files(&model("smollm2-135m-q4_1.gguf"));
}

#[test]
fn gemma3() {
    through_files(&model("gemma3-270m-q4_k_m.gguf"));
}
