//! GGUF to P64 and back: every byte is kept, the container is strict, and what cannot be converted leaves no trace.

#[path = "convert/interrupted.rs"]
mod interrupted;
#[path = "convert/mutated.rs"]
mod mutated;
#[path = "convert/split.rs"]
mod split;

use p64_core::DType;
use p64_core::container::{Container, METADATA_NAME};
use p64_core::layout::flags::Flags;
use p64_core::validate::Policy;
use p64_std::Error;
use p64_std::convert::{ConvertOptions, ConvertReport, Warning, check_parity, convert_bytes, convert_gguf};
use p64_std::export::{ExportReport, export_bytes, export_gguf};
use p64_std::map::{MapOptions, MappedContainer};
use p64_tests::data::data;
use p64_tests::gguf::{GgufBuilder, NO_PADDING};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn convert(input: &Path, output: &Path) -> Result<ConvertReport, Error> {
    convert_gguf(input, output, &ConvertOptions::default(), &mut |_| ())
}

fn export(p64: &Path, output: &Path) -> ExportReport {
    export_gguf(p64, output, &mut |_| ()).expect("exported")
}

fn open_strict(path: &Path) -> MappedContainer {
    let options = MapOptions { policy: Policy::Strict, ..MapOptions::default() };
    let (container, warnings) = MappedContainer::open(path, &options).expect("strict");
    assert!(warnings.is_empty(), "{warnings:?}");
    container
}

fn entries(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// Converts, opens strictly, checks parity, exports, and compares with the source byte for byte.
fn round_trip(source: &GgufBuilder, options: &ConvertOptions) -> (tempfile::TempDir, PathBuf) {
    let folder = folder();
    let input = source.write(folder.path(), "in.gguf");
    let (output, back) = (folder.path().join("out.p64"), folder.path().join("back.gguf"));
    let report = convert_gguf(&input, &output, options, &mut |_| ()).expect("converted");
    assert_eq!(report.bytes, std::fs::metadata(&output).expect("there").len());
    drop(open_strict(&output));
    let parity = check_parity(&input, &output, &mut |_| ()).expect("comparable");
    assert!(parity.is_equal(), "{:?}", parity.differences);
    let exported = export(&output, &back);
    assert!(std::fs::read(&input).expect("there") == std::fs::read(&back).expect("there"), "the bytes differ");
    assert_eq!(exported.identical, Some(true));
    assert_eq!(exported.files[0].sha256, report.source_sha256[0]);

    // The way through memory gives the same bytes.
    let (in_memory, _) = convert_bytes(&input, source.build(), options).expect("converted");
    assert!(in_memory == std::fs::read(&output).expect("there"), "memory and disk differ");
    let container = Container::open(&in_memory).expect("well-formed");
    assert_eq!(export_bytes(&output, &container).expect("exported"), (source.build(), Some(true)));
    (folder, output)
}

#[test]
fn versions_and_alignments() {
    for version in [2, 3] {
        for alignment in [None, Some(1), Some(8), Some(32), Some(64), Some(4096), Some(65_536)] {
            let source = GgufBuilder::new(version);
            let source = alignment.map_or(source.clone(), |alignment| source.alignment(alignment));
            round_trip(&source.small_model(), &ConvertOptions::default());
        }
    }
}

#[test]
fn every_layout_option() {
    for page_size in [256, 4096, 16_384] {
        for (layer_major, pack, schedule) in
            [(true, true, true), (true, false, false), (false, true, false), (false, false, false)]
        {
            let options = ConvertOptions { page_size, layer_major, pack, schedule };
            round_trip(&GgufBuilder::new(3).small_model(), &options);
        }
    }
}

#[test]
fn a_table_out_of_the_order_of_its_data() {
    let order = [9, 1, 8, 0, 3, 2, 7, 6, 5, 4];
    let (_folder, output) =
        round_trip(&GgufBuilder::new(3).small_model().data_order(&order), &ConvertOptions::default());
    let mapped = open_strict(&output);
    let provenance = mapped.container().provenance().expect("well-formed").expect("there");
    let stored = provenance.array("p64.source.tensor_order").expect("an array").expect("there");
    assert_eq!(stored.len(), 10);

    let (_folder, output) = round_trip(&GgufBuilder::new(3).small_model(), &ConvertOptions::default());
    let mapped = open_strict(&output);
    let provenance = mapped.container().provenance().expect("well-formed").expect("there");
    assert!(provenance.get("p64.source.tensor_order").is_none(), "the default order is not stored");
}

#[test]
fn every_type_of_the_registry() {
    let mut source = GgufBuilder::new(3).model_keys(1);
    for dtype in DType::ALL.iter().filter(|dtype| dtype.is_ggml()) {
        let block = dtype.block().expect("GGML types have blocks");
        source = source.tensor(&format!("{dtype}.a"), *dtype, &[u64::from(block.elements), 3]);
        source = source.tensor(&format!("{dtype}.b"), *dtype, &[u64::from(block.elements) * 2, 1, 2, 1]);
    }
    round_trip(&source, &ConvertOptions::default());
}

#[test]
fn tensors_without_elements() {
    let source = GgufBuilder::new(3)
        .model_keys(1)
        .tensor("blk.0.attn_q.weight", DType::F32, &[0, 4])
        .tensor("a", DType::F32, &[3])
        .tensor("b", DType::Q4_K, &[256, 0])
        .tensor("blk.0.attn_k.weight", DType::F16, &[4, 0, 2])
        .tensor("c", DType::I8, &[5])
        .tensor("d", DType::I8, &[0]);
    round_trip(&source, &ConvertOptions::default());
    // At one offset, an empty tensor may stand after one with bytes in the table.
    round_trip(&source.data_order(&[0, 2, 1, 5, 3, 4]), &ConvertOptions::default());
    round_trip(&GgufBuilder::new(2).tensor("t", DType::F32, &[0]), &ConvertOptions::default());
}

#[test]
fn sources_that_are_no_complete_model() {
    for source in [
        GgufBuilder::new(3),
        GgufBuilder::new(3).last_padding(NO_PADDING),
        GgufBuilder::new(3).tensor("weird name/ü", DType::F64, &[1, 2, 3, 4]),
        GgufBuilder::new(3).str("general.architecture", "x").tensor("blk.0.attn_q.weight", DType::F32, &[1]),
    ] {
        let (_folder, output) = round_trip(&source, &ConvertOptions::default());
        let mapped = open_strict(&output);
        assert!(mapped.container().flags().contains(Flags::RAW_TRANSCODE));
        assert!(mapped.container().tokenizer().is_none());
    }
    let (_folder, output) = round_trip(&GgufBuilder::new(3).small_model(), &ConvertOptions::default());
    let mapped = open_strict(&output);
    assert!(!mapped.container().flags().contains(Flags::RAW_TRANSCODE));
    assert_eq!(mapped.container().tokenizer().expect("there").tokens().collect::<Vec<_>>(), ["a", "b", "ab"]);
    assert!(mapped.container().has_schedule());
}

#[test]
fn padding_at_the_end_of_the_source() {
    for bytes in [NO_PADDING, 0, 1, 32] {
        round_trip(&GgufBuilder::new(3).small_model().last_padding(bytes), &ConvertOptions::default());
    }
}

#[test]
fn padding_that_is_not_zero_is_told() {
    let folder = folder();
    let source = GgufBuilder::new(3).tensor("a", DType::I8, &[3]).tensor("b", DType::I8, &[32]);
    let input = source.clone().padding_byte(9).write(folder.path(), "in.gguf");
    let (output, back) = (folder.path().join("out.p64"), folder.path().join("back.gguf"));
    let report = convert(&input, &output).expect("converted");
    assert!(report.warnings.iter().any(|warning| matches!(warning, Warning::OddPadding { .. })));
    drop(open_strict(&output));
    assert!(check_parity(&input, &output, &mut |_| ()).expect("comparable").is_equal());
    assert_eq!(export(&output, &back).identical, Some(false));
    assert_eq!(std::fs::read(&back).expect("there"), source.build(), "zeros instead");
}

#[test]
fn the_same_bytes_every_time() {
    let folder = folder();
    let input = GgufBuilder::new(3).small_model().write(folder.path(), "in.gguf");
    let copy = GgufBuilder::new(3).small_model().write(folder.path(), "other name.gguf");
    let (one, two) = (folder.path().join("one.p64"), folder.path().join("two.p64"));
    convert(&input, &one).expect("converted");
    convert(&copy, &two).expect("converted");
    assert!(std::fs::read(&one).expect("there") == std::fs::read(&two).expect("there"));
}

/// Parity is a comparison, not a repetition of the container's own checks.
#[test]
fn parity_finds_another_source() {
    let folder = folder();
    let input = GgufBuilder::new(3).small_model().write(folder.path(), "in.gguf");
    let output = folder.path().join("out.p64");
    convert(&input, &output).expect("converted");
    let mut bytes = std::fs::read(&input).expect("there");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let other = folder.path().join("other.gguf");
    std::fs::write(&other, bytes).expect("written");
    let report = check_parity(&other, &output, &mut |_| ()).expect("comparable");
    assert_eq!(report.differences, ["output_norm.weight: bytes differ from 0x7f on"]);
    let renamed = GgufBuilder::new(3).small_model().tensor("more", DType::I8, &[1]).write(folder.path(), "more.gguf");
    let report = check_parity(&renamed, &output, &mut |_| ()).expect("comparable");
    assert_eq!(report.differences.len(), 2, "{:?}", report.differences);
}

#[test]
fn every_malformed_case_is_answered_and_leaves_nothing() {
    let table = std::fs::read_to_string(data("malformed/expected.tsv")).expect("the table");
    for line in table.lines() {
        let mut fields = line.split('\t');
        let (case, verdict) = (fields.next().expect("a case"), fields.next().expect("a verdict"));
        let folder = folder();
        let input = data("malformed/gguf").join(format!("{case}.gguf"));
        let output = folder.path().join("out.p64");
        let start = Instant::now();
        let result = convert(&input, &output);
        match result {
            Ok(_) => {
                assert_eq!(verdict, "accept", "{case}");
                let back = folder.path().join("back.gguf");
                assert_eq!(export(&output, &back).identical, Some(true), "{case}");
                assert_eq!(std::fs::read(&input).expect("there"), std::fs::read(&back).expect("there"), "{case}");
            }
            Err(error) => {
                assert!(start.elapsed() < Duration::from_millis(100), "{case}: {:?}", start.elapsed());
                assert_eq!(verdict, "reject", "{case}: {error}");
                assert_eq!(error.exit_code(), 1, "{case}: {error}");
                assert!(!error.to_string().contains('\n'), "{case}: {error}");
                assert!(entries(folder.path()).is_empty(), "{case}");
            }
        }
    }
}

#[test]
fn sources_that_no_container_can_hold() {
    let cases = [
        (
            GgufBuilder::new(3).tensor(METADATA_NAME, DType::I8, &[1]),
            "\"p64.metadata\": names that begin with \"p64.\"",
        ),
        (GgufBuilder::new(3).str("general.architecture", "x").str("x.block_count", "2"), "x.block_count: "),
        (GgufBuilder::new(3).str("general.architecture", "x").u32("x.block_count", 70_000), "70000 layers"),
        (
            GgufBuilder::new(3).strings("tokenizer.ggml.tokens", &["a"]).u32("tokenizer.ggml.bos_token_id", 1),
            "tokenizer.ggml.bos_token_id is 1, the vocabulary has 1 tokens",
        ),
        (
            GgufBuilder::new(3).strings("tokenizer.ggml.tokens", &["a"]).strings("tokenizer.ggml.scores", &[]),
            "tokenizer.ggml.scores has 0 elements",
        ),
    ];
    for (source, words) in cases {
        let folder = folder();
        let input = source.write(folder.path(), "in.gguf");
        let error = convert(&input, &folder.path().join("out.p64")).expect_err("refused");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.exit_code(), 1);
        assert_eq!(entries(folder.path()), ["in.gguf"]);
    }
}

#[test]
fn other_kinds_of_files_are_named() {
    let folder = folder();
    let path = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    let safetensors = [&8u64.to_le_bytes()[..], b"{}      "].concat();
    for (input, words, code) in [
        (path("empty", b""), "this is an empty file, not a model", 1),
        (path("text", b"Once upon a time"), "this is a text file, not a model", 1),
        (path("safetensors", &safetensors), "this is a safetensors file, a GGUF is needed here", 1),
        (path("p64", b"p64\0and so on"), "this is a P64 weight container, a GGUF is needed here", 1),
        (folder.path().to_owned(), "this is a folder, not a file", 2),
        (folder.path().join("missing"), "cannot open it: ", 2),
    ] {
        let error = convert(&input, &folder.path().join("out")).expect_err("no GGUF");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.exit_code(), code, "{error}");
        let error = MappedContainer::open(&input, &MapOptions::default()).expect_err("no container");
        assert_eq!(error.exit_code(), code, "{error}");
    }
    assert!(!folder.path().join("out").exists());
}

#[test]
fn input_and_output_are_two_files() {
    let folder = folder();
    let input = GgufBuilder::new(3).small_model().write(folder.path(), "in.gguf");
    let link = folder.path().join("link");
    std::fs::hard_link(&input, &link).expect("linked");
    for output in [&input, &link] {
        let error = convert(&input, output).expect_err("the same");
        assert!(matches!(error, Error::SameFile { .. }), "{error}");
    }
    let p64 = folder.path().join("out.p64");
    convert(&input, &p64).expect("converted");
    let error = export_gguf(&p64, &p64, &mut |_| ()).expect_err("the same");
    assert!(matches!(error, Error::SameFile { .. }), "{error}");
}

#[test]
fn a_container_without_keys_cannot_become_a_gguf() {
    let folder = folder();
    let foreign = p64_std::write::Model {
        hparams: Default::default(),
        raw_transcode: true,
        tokenizer: None,
        tensors: Vec::new(),
    };
    let plan = p64_std::write::Plan::new(&foreign, &ConvertOptions::default()).expect("plannable");
    let path = folder.path().join("foreign.p64");
    let mut file = std::fs::File::create(&path).expect("created");
    p64_std::write::write(&plan, &mut file, |_, _| -> std::io::Result<()> { Ok(()) }).expect("written");
    let error = export_gguf(&path, &folder.path().join("out.gguf"), &mut |_| ()).expect_err("no keys");
    assert!(error.to_string().contains("no p64.metadata"), "{error}");
    assert_eq!(entries(folder.path()), ["foreign.p64"]);
}
