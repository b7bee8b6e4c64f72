//! Where a model is cut, at the borders of every rule.

use super::{built, folder, round_trip, shape, split_ok, tiny};
use p64_core::DType;
use p64_std::convert::ConvertOptions;
use p64_std::map::{MapOptions, MappedContainer, MappedSet};
use p64_std::split::split;
use p64_tests::gguf::GgufBuilder;

#[test]
fn one_layer_to_a_file_with_what_has_no_role() {
    let (_folder, whole) = built(&GgufBuilder::new(3).small_model(), &ConvertOptions::default());
    let report = round_trip(&whole, "layers=1");
    // Each layer with its bias, which has no role and stands behind the globals in the whole; then the globals.
    assert_eq!(shape(&report), [(Some((0, 0)), 4), (Some((1, 1)), 4), (None, 2)]);
    assert!(report.notes.is_empty());
    let folder = folder();
    let report = split_ok(&whole, &folder.path().join("m"), "layers=1");
    let (second, _) = MappedContainer::open(&report.files[1].path, &MapOptions::default()).expect("valid");
    let names: Vec<_> = second.container().tensors().map(|info| info.name().to_owned()).collect();
    let layer = ["attn_norm.weight", "attn_q.weight", "ffn_down.weight", "attn_q.bias"];
    assert_eq!(names[..4], layer.map(|name| format!("blk.1.{name}")));
    assert_eq!(names[4..], ["p64.provenance"]);
    // The schedule has a record for every layer of the model, empty for the one that is not here.
    let layers: Vec<_> = second.container().layers().map(|unit| (unit.tensor_count, unit.extent.is_empty())).collect();
    assert!(second.container().has_schedule());
    assert_eq!(layers, [(0, true), (3, false)]);
}

#[test]
fn a_layer_larger_than_the_limit_has_a_file_to_itself() {
    let source = GgufBuilder::new(3).model_keys(3);
    let source = source.tensor("blk.0.attn_norm.weight", DType::F32, &[32]);
    let source = source.tensor("blk.1.ffn_down.weight", DType::F32, &[64, 4096]);
    let source = source.tensor("blk.2.attn_norm.weight", DType::F32, &[32]);
    let source = source.tensor("output_norm.weight", DType::F32, &[32]);
    let (_folder, whole) = built(&source, &ConvertOptions { page_size: 256, ..ConvertOptions::default() });
    let report = round_trip(&whole, "size=100k");
    assert_eq!(shape(&report), [(Some((0, 0)), 1), (Some((1, 1)), 1), (Some((2, 2)), 2)]);
    let [note] = report.notes.as_slice() else { panic!("{:?}", report.notes) };
    assert!(
        note.starts_with("file 2 of 3 has ") && note.contains("the 100000 asked for: layer 1 is not cut"),
        "{note}"
    );
}

#[test]
fn more_files_than_layers() {
    let (_folder, whole) = built(&GgufBuilder::new(3).small_model(), &ConvertOptions::default());
    let report = round_trip(&whole, "size=1");
    assert_eq!(shape(&report), [(Some((0, 0)), 4), (Some((1, 1)), 4), (None, 1), (None, 1)]);
    assert_eq!(report.notes.len(), 4, "{:?}", report.notes);
}

#[test]
fn a_set_of_one_file_is_a_whole_model_under_any_name() {
    let (_folder, whole) = tiny();
    let folder = folder();
    let report = split_ok(&whole, &folder.path().join("m"), "auto");
    assert_eq!(shape(&report), [(Some((0, 3)), 38)]);
    let renamed = folder.path().join("renamed.p64");
    std::fs::rename(&report.files[0].path, &renamed).expect("renamed");
    let (set, _) = MappedSet::open(&renamed, &MapOptions::default()).expect("a set of one");
    assert!(!set.is_split() && set.single().is_some());
    round_trip(&whole, "auto");
}

#[test]
fn globals_only() {
    let source = GgufBuilder::new(3).model_keys(2);
    let source = source.tensor("token_embd.weight", DType::F16, &[32, 3]);
    let source = source.tensor("output_norm.weight", DType::F32, &[32]);
    let (_folder, whole) = built(&source, &ConvertOptions::default());
    assert_eq!(shape(&round_trip(&whole, "layers=1")), [(None, 2)]);
    assert_eq!(shape(&round_trip(&whole, "size=1")), [(None, 1), (None, 1)]);
}

#[test]
fn layers_without_globals() {
    let source = GgufBuilder::new(3).model_keys(2);
    let source = source.tensor("blk.0.attn_norm.weight", DType::F32, &[32]);
    let source = source.tensor("blk.1.attn_norm.weight", DType::F32, &[32]);
    let (_folder, whole) = built(&source, &ConvertOptions::default());
    assert_eq!(shape(&round_trip(&whole, "layers=1")), [(Some((0, 0)), 1), (Some((1, 1)), 1)]);
}

#[test]
fn no_layers_at_all() {
    let source = GgufBuilder::new(3).tensor("a", DType::F32, &[4]).tensor("empty", DType::F32, &[0, 5]);
    let source = source.tensor("b", DType::I8, &[7]);
    let (_folder, whole) = built(&source, &ConvertOptions::default());
    assert_eq!(shape(&round_trip(&whole, "layers=1")), [(None, 3)]);
    assert_eq!(shape(&round_trip(&whole, "size=1")), [(None, 1), (None, 1), (None, 1)]);
}

#[test]
fn no_tensors_at_all() {
    for source in [GgufBuilder::new(3), GgufBuilder::new(3).model_keys(2)] {
        let (_folder, whole) = built(&source, &ConvertOptions::default());
        for how in ["auto", "layers=1", "size=1"] {
            assert_eq!(shape(&round_trip(&whole, how)), [(None, 0)]);
        }
    }
}

/// A layer that has no tensors takes no file and does not count.
#[test]
fn empty_layers() {
    let source = GgufBuilder::new(3).model_keys(5);
    let source = source.tensor("blk.1.attn_norm.weight", DType::F32, &[32]);
    let source = source.tensor("blk.4.attn_norm.weight", DType::F32, &[32]);
    let (_folder, whole) = built(&source, &ConvertOptions::default());
    assert_eq!(shape(&round_trip(&whole, "layers=2")), [(Some((1, 4)), 2)]);
    assert_eq!(shape(&round_trip(&whole, "layers=1")), [(Some((1, 1)), 1), (Some((4, 4)), 1)]);
}

/// Every file is as full as it can be: with its length as the limit the cut is the same, with one byte less it is not.
#[test]
fn sizes_are_met_to_the_byte() {
    let (_folder, whole) = tiny();
    let folder = folder();
    let output = folder.path().join("m");
    for how in ["layers=1", "layers=2", "layers=3"] {
        let first = split_ok(&whole, &output, how).files[0].clone();
        let sized = |limit: u64| split_ok(&whole, &output, &format!("size={limit}")).files[0].clone();
        assert_eq!((sized(first.bytes).tensors, sized(first.bytes).bytes), (first.tensors, first.bytes), "{how}");
        assert!(how == "layers=1" || sized(first.bytes - 1).tensors < first.tensors, "{how}");
    }
    for limit in (150_000..900_000).step_by(50_000) {
        for pack in [true, false] {
            let source = GgufBuilder::new(3).small_model();
            let (_folder, small) = built(&source, &ConvertOptions { pack, ..ConvertOptions::default() });
            for input in [&whole, &small] {
                let report = split_ok(input, &output, &format!("size={limit}"));
                let over = report.files.iter().filter(|file| file.bytes > limit).count();
                assert_eq!(over, report.notes.len(), "{limit}: {:?}", report.notes);
                assert!(report.files.iter().all(|file| file.bytes <= limit || file.tensors <= 9), "{limit}");
            }
        }
    }
}

/// Names have five digits, and numbers 16 bits.
#[test]
fn too_many_files_are_refused_before_anything_is_written() {
    let mut source = GgufBuilder::new(3);
    for at in 0..65_536 {
        source = source.tensor(&format!("t{at}"), DType::I8, &[1]);
    }
    let (folder, whole) = built(&source, &ConvertOptions::default());
    let cut = "size=1".parse().expect("a cut");
    let error = split(&whole, &folder.path().join("m"), &cut, &mut |_| ()).expect_err("too many");
    assert_eq!(error.to_string(), "the cut size=1 gives 65536 files, a set has at most 65535");
    assert_eq!(error.exit_code(), 2);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[test]
fn a_set_is_cut_anew() {
    let (_folder, whole) = tiny();
    let folder = folder();
    let first = split_ok(&whole, &folder.path().join("a"), "layers=1");
    let again = split_ok(&first.files[3].path, &folder.path().join("b"), "layers=2");
    let direct = split_ok(&whole, &folder.path().join("c"), "layers=2");
    assert_eq!((&again.identity, again.files.len()), (&first.identity, 3));
    for (a, b) in again.files.iter().zip(&direct.files) {
        assert!(super::bytes(&a.path) == super::bytes(&b.path));
    }
}
