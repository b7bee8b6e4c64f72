//! safetensors as `docs/acceptance.md` §4 says, next to the library that defines the format.

use p64_std::Error;
use p64_std::convert::{ConvertReport, ProduceOptions, convert};
use p64_std::export::{TensorExport, TensorOptions, export_npz, export_safetensors};
use p64_std::map::{MapOptions, MappedContainer};
use p64_std::safetensors::raw_model;
use p64_std::safetensors::{Header, SafetensorsFile, SafetensorsSet};
use p64_std::source::OpenSource;
use p64_tests::data::data;
use proptest::prelude::*;
use safetensors::SafeTensors;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_millis(100);

/// A file of `header` and `payload` bytes.
fn file(header: &str, payload: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), payload].concat()
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("written");
    path
}

/// The rule that an error names.
fn rule(error: &Error) -> &'static str {
    match error {
        Error::Safetensors { source, .. } => source.rule(),
        other => panic!("{other} is no broken rule"),
    }
}

/// Case to its verdict and the rule of a refusal.
fn expected() -> BTreeMap<String, (String, String)> {
    let table = std::fs::read_to_string(data("malformed/safetensors_expected.tsv")).expect("the table");
    table
        .lines()
        .map(|line| {
            let [case, verdict, rule] = line.split('\t').collect::<Vec<_>>().try_into().expect("three fields");
            (case.to_owned(), (verdict.to_owned(), rule.to_owned()))
        })
        .collect()
}

#[test]
fn every_case_as_the_table_says() {
    let expected = expected();
    let mut seen = 0;
    for entry in std::fs::read_dir(data("malformed/safetensors")).expect("the cases") {
        let path = entry.expect("entry").path();
        let case = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let (verdict, wanted) = expected.get(&case).unwrap_or_else(|| panic!("{case} is not in the table"));
        let began = Instant::now();
        let found = SafetensorsFile::open(&path);
        assert!(began.elapsed() < LIMIT, "{case} took {:?}", began.elapsed());
        match found {
            Ok(_) => assert_eq!((verdict.as_str(), wanted.as_str()), ("accept", "-"), "{case}"),
            Err(error) => {
                assert_eq!((verdict.as_str(), wanted.as_str()), ("reject", rule(&error)), "{case}: {error}");
                assert_eq!(error.exit_code(), 1, "{case}");
                assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
            }
        }
        seen += 1;
    }
    assert_eq!(seen, expected.len());
}

/// Brackets nested 100,000 deep, too large to keep: as a tensor, and in a field that the format does not have.
#[test]
fn deep_nesting_is_answered() {
    let folder = tempfile::tempdir().expect("folder");
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let began = Instant::now();
    let path = write(folder.path(), "a.safetensors", &file(&format!("{{\"t\":{deep}}}"), b""));
    assert_eq!(rule(&SafetensorsFile::open(&path).expect_err("no description")), "S2");
    let text = format!(r#"{{"t":{{"dtype":"I8","shape":[1],"data_offsets":[0,1],"x":{deep}}}}}"#);
    let path = write(folder.path(), "b.safetensors", &file(&text, b"\0"));
    // Whatever the answer, there is one.
    drop(SafetensorsFile::open(&path));
    assert!(began.elapsed() < LIMIT);
}

/// The library and this reader give one verdict, but for names that no container can store.
#[test]
fn the_library_agrees_on_the_cases() {
    for (case, (verdict, _)) in expected() {
        let bytes = std::fs::read(data(&format!("malformed/safetensors/{case}.safetensors"))).expect("the case");
        let library = SafeTensors::deserialize(&bytes).is_ok();
        let own = verdict == "accept";
        assert!(own == library || case == "22_name_empty", "{case}: library {library}, table {own}");
    }
}

/// What both readers find in a file: name, type, shape and place of each tensor.
type Found = Vec<(String, String, Vec<u64>, u64, u64)>;

fn by_us(bytes: &[u8]) -> Option<Found> {
    let (len, rest) = bytes.split_first_chunk()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (text, payload) = rest.split_at_checked(len)?;
    let header = Header::parse(text, payload.len() as u64).ok()?;
    let mut found: Found = header
        .tensors
        .iter()
        .map(|info| (info.name.clone(), info.dtype.to_string(), info.shape.clone(), info.begin, info.end))
        .collect();
    found.sort();
    Some(found)
}

fn by_the_library(bytes: &[u8]) -> Option<Found> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
    SafeTensors::deserialize(bytes).ok()?;
    let mut found: Found = metadata
        .tensors()
        .into_iter()
        .map(|(name, info)| {
            let shape = info.shape.iter().map(|&dim| dim as u64).collect();
            (name, info.dtype.to_string(), shape, info.data_offsets.0 as u64, info.data_offsets.1 as u64)
        })
        .collect();
    found.sort();
    Some(found)
}

fn three_tensors() -> Vec<u8> {
    let header = r#"{"__metadata__":{"format":"pt"},"model.norm.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},"c":{"dtype":"I64","shape":[],"data_offsets":[20,28]},"d":{"dtype":"F16","shape":[0,7],"data_offsets":[20,20]}}  "#;
    file(header, &[7; 28])
}

#[test]
fn the_library_agrees_on_a_good_file() {
    let found = by_us(&three_tensors()).expect("good");
    assert_eq!(found.len(), 4);
    assert_eq!(Some(found), by_the_library(&three_tensors()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Whatever is changed in a header: what this reader takes, the library takes too, and finds the same in it.
    #[test]
    fn nothing_is_taken_that_the_library_refuses(
        at in 0usize..300,
        with in prop::sample::select(br#"{}[]":,0123456789-. xFIB\n\u0000"#.to_vec()),
        remove in any::<bool>(),
        again in prop::option::of((0usize..300, 0usize..40)),
    ) {
        let mut bytes = three_tensors();
        let at = 8 + at % (bytes.len() - 36);
        if remove {
            bytes.remove(at);
        } else {
            bytes[at] = with;
        }
        if let Some((from, len)) = again {
            // A piece of the header twice, as keys that stand twice come about.
            let from = 8 + from % (bytes.len() - 80);
            let piece = bytes[from..from + len].to_vec();
            bytes.splice(from..from, piece);
        }
        let len = (bytes.len() - 8 - 28) as u64;
        bytes[..8].copy_from_slice(&len.to_le_bytes());
        if let Some(own) = by_us(&bytes) {
            prop_assert_eq!(Some(own), by_the_library(&bytes));
        }
    }
}

/// Every type of the format has the library's name and size.
#[test]
fn the_library_has_the_same_types() {
    use p64_std::safetensors::ElementType;
    let mut seen = 0;
    for dtype in ElementType::ALL {
        let header = format!(r#"{{"t":{{"dtype":"{dtype}","shape":[8],"data_offsets":[0,{}]}}}}"#, dtype.bits());
        let bytes = file(&header, &vec![0; usize::try_from(dtype.bits()).expect("small")]);
        let library = SafeTensors::deserialize(&bytes).unwrap_or_else(|error| panic!("{dtype}: {error}"));
        assert_eq!(library.tensor("t").expect("there").dtype().to_string(), dtype.name());
        assert!(by_us(&bytes).is_some(), "{dtype}");
        seen += 1;
    }
    assert_eq!(seen, 22);
}

#[test]
fn tensors_come_in_the_order_of_their_bytes_with_shapes_reversed() {
    let folder = tempfile::tempdir().expect("folder");
    let mut bytes = three_tensors();
    let payload = bytes.len() - 28;
    for (value, byte) in (0u8..).zip(&mut bytes[payload..]) {
        *byte = value;
    }
    let path = write(folder.path(), "model.safetensors", &bytes);
    let source = OpenSource::open(&path).expect("good");
    let tensors = source.tensors();
    let found: Vec<_> = tensors
        .iter()
        .map(|tensor| {
            let payload = &tensor.payload;
            (tensor.name.as_str(), payload.dtype().name(), payload.shape().dims().to_vec(), tensor.source_offset)
        })
        .collect();
    let expected = [
        ("model.norm.weight", "F32", vec![2], 0),
        ("b", "BF16", vec![3, 2], 8),
        ("d", "F16", vec![7, 0], 20),
        ("c", "I64", vec![1], 20),
    ];
    assert_eq!(found, expected);
    // Hash of the name with its top four bits cleared: FNV-1a-64 of "b" is af63df4c8601f1a5.
    assert_eq!(tensors[1].source_name_hash, Some(0x0f63_df4c_8601_f1a5));
    assert_eq!(tensors[0].role, Some((p64_core::Role::OutputNorm, None)));
    let payload = &tensors[1].payload;
    assert_eq!(payload.bytes(), Some(&(8..20).collect::<Vec<u8>>()[..]));
    let mut piece = [0; 4];
    payload.read_at(8, &mut piece).expect("inside");
    assert_eq!(piece, [16, 17, 18, 19]);
    payload.read_at(9, &mut piece).expect_err("one byte past the end");
}

#[test]
fn what_no_container_holds_is_refused_by_name_with_a_way_on() {
    let folder = tempfile::tempdir().expect("folder");
    for (dtype, shape, bytes, rule_of, words) in [
        ("F8_E4M3", "[2,2]", 4, "S11", "store it as BF16, F16 or F32"),
        ("F8_E5M2", "[4]", 4, "S11", "store it as BF16, F16 or F32"),
        ("F4", "[8]", 4, "S11", "store it as BF16, F16 or F32"),
        ("U8", "[4]", 4, "S11", "store it as a signed integer"),
        ("BOOL", "[4]", 4, "S11", "store it as a signed integer"),
        ("C64", "[1]", 8, "S11", "pairs of F32"),
        ("I8", "[1,1,1,1,4]", 4, "S12", "5 dimensions, a container holds up to 4"),
        ("I8", "[0,4294967296]", 0, "S12", "a dimension of 4294967296"),
    ] {
        let header = format!(r#"{{"some.weight":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{bytes}]}}}}"#);
        let path = write(folder.path(), "model.safetensors", &file(&header, &vec![0; bytes]));
        SafetensorsSet::open(&path).expect("well-formed");
        let error = OpenSource::open(&path).expect_err("no container holds it");
        assert_eq!(rule(&error), rule_of, "{error}");
        let text = error.to_string();
        assert!(text.contains("\"some.weight\"") && text.contains(words), "{text}");
        assert!(rule_of != "S11" || text.contains(dtype), "{text}");
    }
}

const ONE: &str = r#"{"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}"#;
const TWO: &str = r#"{"b":{"dtype":"I8","shape":[3],"data_offsets":[0,3]}}"#;
const INDEX: &str = "model.safetensors.index.json";

fn index(map: &str) -> String {
    format!(r#"{{"metadata":{{"total_size":5}},"weight_map":{{{map}}}}}"#)
}

/// A folder with both files of a sharded model and the given index.
fn sharded(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    write(folder.path(), "m-00001-of-00002.safetensors", &file(ONE, &[1, 2]));
    write(folder.path(), "m-00002-of-00002.safetensors", &file(TWO, &[3, 4, 5]));
    write(folder.path(), INDEX, text.as_bytes());
    folder
}

const MAP: &str = r#""b":"m-00002-of-00002.safetensors","a":"m-00001-of-00002.safetensors""#;

#[test]
fn a_sharded_model_is_opened_by_its_index_or_its_folder() {
    let folder = sharded(&index(MAP));
    for path in [folder.path().to_owned(), folder.path().join(INDEX)] {
        let source = OpenSource::open(&path).expect("whole");
        let tensors = source.tensors();
        let found: Vec<_> = tensors.iter().map(|t| (t.name.as_str(), t.source_offset, t.payload.bytes())).collect();
        // Offsets count in the tensor's own file.
        assert_eq!(found, [("a", 0, Some(&[1u8, 2][..])), ("b", 0, Some(&[3, 4, 5][..]))]);
    }
    let set = SafetensorsSet::open(folder.path()).expect("whole");
    assert_eq!((set.files().len(), set.notes()), (2, vec![]));
    assert_eq!(set.find("b").map(|tensor| tensor.info().len()), Some(3));
    assert!(set.find("c").is_none());
}

#[test]
fn a_size_that_does_not_add_up_is_a_note() {
    let folder = sharded(&index(MAP).replace(":5}", ":6}"));
    let notes = SafetensorsSet::open(folder.path()).expect("whole").notes();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].contains("total_size is 6, the files hold 5 bytes"), "{notes:?}");
}

#[test]
fn an_index_that_does_not_fit_its_files_is_refused() {
    let one = r#""a":"m-00001-of-00002.safetensors""#;
    for (text, rule_of, words) in [
        (
            index(&format!(r#"{MAP},"c":"m-00003.safetensors","d":"m-00004.safetensors""#)),
            "S10",
            r#""m-00003.safetensors", "m-00004.safetensors""#,
        ),
        (index(&format!(r#"{MAP},"c":"m-00001-of-00002.safetensors""#)), "S10", "tensor \"c\": the index says"),
        (
            index(&MAP.replace("\"b\"", "\"c\"")),
            "S10",
            "tensor \"b\": \"m-00002-of-00002.safetensors\" has it, but the index does not",
        ),
        (
            index(
                &MAP.replace("\"b\"", "\"x\":\"m-00002-of-00002.safetensors\",\"b\"")
                    .replace("00002-of-00002.safetensors\",\"a\"", "00001-of-00002.safetensors\",\"a\""),
            ),
            "S10",
            "tensor \"b\"",
        ),
        (index(&format!(r#"{MAP},"a":"m-00001-of-00002.safetensors""#)), "S4", "key \"a\" stands twice"),
        (index(r#""a":"../m-00001-of-00002.safetensors""#), "S9", "not one in the index's own folder"),
        (index(r#""a":"/etc/passwd""#), "S9", "not one in the index's own folder"),
        (index(r#""a":"..\\m.safetensors""#), "S9", "not one in the index's own folder"),
        (index(r#""a":"..""#), "S9", "not one in the index's own folder"),
        (index(r#""a":"C:m.safetensors""#), "S9", "not one in the index's own folder"),
        (index(r#""a":"""#), "S9", "not one in the index's own folder"),
        (index(one).replace("\"weight_map\"", "\"other\""), "S9", "missing field"),
        (r#"{"weight_map":[]}"#.to_owned(), "S9", "invalid type"),
        (index(one) + "x", "S9", "trailing characters"),
    ] {
        let folder = sharded(&text);
        let error = SafetensorsSet::open(&folder.path().join(INDEX)).expect_err("does not fit");
        assert_eq!(rule(&error), rule_of, "{text}: {error}");
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
}

#[test]
fn a_folder_is_opened_by_the_one_model_in_it() {
    let folder = tempfile::tempdir().expect("folder");
    let open = || SafetensorsSet::open(folder.path());
    assert!(matches!(open(), Err(Error::NotAFile { what: "a folder", .. })));
    write(folder.path(), "other.safetensors", &file(ONE, &[1, 2]));
    assert_eq!(open().expect("the only one").tensors().count(), 1);
    write(folder.path(), "another.safetensors", &file(TWO, &[1, 2, 3]));
    let error = open().expect_err("two").to_string();
    assert!(error.contains("2 safetensors files and no model.safetensors.index.json"), "{error}");
    write(folder.path(), "model.safetensors", &file(ONE, &[1, 2]));
    assert_eq!(open().expect("the usual name").files()[0].path(), folder.path().join("model.safetensors"));
    write(folder.path(), INDEX, index("").as_bytes());
    let error = open().expect_err("both").to_string();
    assert!(error.contains("has both"), "{error}");
}

/// A file that was cut short, or is none at all, is named for what it is.
#[test]
fn cut_files_and_other_files() {
    let folder = tempfile::tempdir().expect("folder");
    let whole = file(ONE, &[1, 2]);
    for len in 0..whole.len() {
        let path = write(folder.path(), "model.safetensors", &whole[..len]);
        let error = SafetensorsSet::open(&path).expect_err("cut");
        assert!(error.to_string().contains("fetch it again"), "{len} bytes: {error}");
    }
    let path = write(folder.path(), "model.safetensors", b"version https://git-lfs.example/spec/v1\noid");
    let error = SafetensorsSet::open(&path).expect_err("a pointer");
    assert!(error.to_string().contains("git lfs pull"), "{error}");
}

/// A raw transcode of what lies at `path`.
fn transcode(path: &Path, output: &Path) -> ConvertReport {
    let set = SafetensorsSet::open(path).expect("well-formed");
    let model = raw_model(&set).expect("storable");
    convert(&model, &set.paths(), output, &ProduceOptions::default(), &mut |_| ()).expect("converted")
}

fn export(input: &Path, output: &Path) -> TensorExport {
    export_safetensors(input, output, &TensorOptions::default(), &mut |_| ()).expect("exported")
}

/// Values that tell where they stand.
fn payload(len: usize, salt: u8) -> Vec<u8> {
    (0..len).map(|at| u8::try_from((at * 7 + usize::from(salt)) % 251).expect("below 251")).collect()
}

/// A model as the library writes it: two layers, roles, a scalar, an empty tensor, every type that GGML has.
fn by_the_library_written(folder: &Path) -> PathBuf {
    use safetensors::Dtype;
    use safetensors::tensor::TensorView;
    let tensors: Vec<(String, Dtype, Vec<usize>)> = vec![
        ("model.embed_tokens.weight".into(), Dtype::BF16, vec![5, 4]),
        ("model.layers.0.input_layernorm.weight".into(), Dtype::F32, vec![4]),
        ("model.layers.0.self_attn.q_proj.weight".into(), Dtype::F16, vec![4, 4]),
        ("model.layers.1.self_attn.q_proj.weight".into(), Dtype::F16, vec![4, 4]),
        ("model.layers.1.mlp.down_proj.weight".into(), Dtype::F32, vec![4, 6]),
        ("steps".into(), Dtype::I64, vec![]),
        ("a.table".into(), Dtype::I32, vec![2, 1, 3]),
        ("short".into(), Dtype::I16, vec![3]),
        ("bytes".into(), Dtype::I8, vec![3, 3]),
        ("doubles".into(), Dtype::F64, vec![2]),
        ("nothing".into(), Dtype::F32, vec![0, 8]),
    ];
    let payloads: Vec<Vec<u8>> = (0u8..)
        .zip(&tensors)
        .map(|(salt, (_, dtype, shape))| payload(shape.iter().product::<usize>() * dtype.bitsize() / 8, salt))
        .collect();
    let views = tensors.iter().zip(&payloads).map(|((name, dtype, shape), bytes)| {
        (name.clone(), TensorView::new(*dtype, shape.clone(), bytes).expect("fits"))
    });
    let about = [("format".to_owned(), "pt".to_owned()), ("note".to_owned(), "a \"quote\" and \u{e9}\n".to_owned())];
    let bytes = safetensors::serialize(views, Some(about.into_iter().collect())).expect("written");
    write(folder, "model.safetensors", &bytes)
}

#[test]
fn a_file_that_the_library_wrote_comes_back_identical() {
    let folder = tempfile::tempdir().expect("folder");
    let source = by_the_library_written(folder.path());
    let p64 = folder.path().join("model.p64");
    let report = transcode(&source, &p64);
    assert!(report.raw_transcode);
    assert_eq!((report.profile.as_str(), report.tensors), ("safetensors-raw", 11));

    // Strict, with roles, layers, masked hashes and reversed shapes.
    let strict = MapOptions { policy: p64_core::validate::Policy::Strict, ..MapOptions::default() };
    let (mapped, warnings) = MappedContainer::open(&p64, &strict).expect("strict");
    assert_eq!(warnings, []);
    let container = mapped.container();
    assert_eq!(container.n_layer(), 2);
    let down = container.find("model.layers.1.mlp.down_proj.weight").expect("there");
    assert_eq!((down.role(), down.manifold_idx()), (p64_core::Role::FfnDown, 1));
    assert_eq!(down.shape().dims(), [6, 4]);
    // The masked hash of spec §8.
    let query = container.find("model.layers.0.self_attn.q_proj.weight").expect("there");
    assert_eq!(query.source_name_hash(), 0x0a29_6639_dc11_febb);
    assert_eq!(container.find("steps").expect("there").shape().dims(), [1]);
    drop(mapped);

    let out = folder.path().join("out.safetensors");
    let report = export(&p64, &out);
    assert_eq!((report.identical, report.tensors, report.notes.len()), (Some(true), 11, 0));
    assert_eq!(std::fs::read(&out).expect("written"), std::fs::read(&source).expect("read"));
    // From the safetensors themselves too, and into a folder.
    let out = folder.path().join("again");
    export(&source, &out);
    let again = std::fs::read(out.join("model.safetensors")).expect("written");
    assert_eq!(by_the_library(&again), by_the_library(&std::fs::read(&source).expect("read")));
}

/// A header in another order and with gaps between its words: the tensors come back, the bytes of the header do not.
#[test]
fn another_writers_file_comes_back_with_equal_tensors() {
    let folder = tempfile::tempdir().expect("folder");
    let source = write(folder.path(), "model.safetensors", &three_tensors());
    let p64 = folder.path().join("model.p64");
    transcode(&source, &p64);
    let out = folder.path().join("out.safetensors");
    assert_eq!(export(&p64, &out).identical, Some(false));
    let (before, after) = (three_tensors(), std::fs::read(&out).expect("written"));
    assert_eq!(by_the_library(&after), by_the_library(&before));
    let metadata = |bytes: &[u8]| SafeTensors::read_metadata(bytes).expect("good").1.metadata().clone();
    assert_eq!(metadata(&after), metadata(&before));
    assert!(after.ends_with(&before[before.len() - 28..]));
}

#[test]
fn a_sharded_model_comes_back_as_its_files() {
    let text = index(MAP);
    let folder = sharded(&text);
    let p64 = folder.path().join("model.p64");
    let report = transcode(folder.path(), &p64);
    assert_eq!((report.source_files, report.source_sha256.len()), (2, 2));
    let out = folder.path().join("out");
    let report = export(&p64, &out);
    // Written without spaces as these were, but filled up to eight bytes as these were not.
    assert_eq!((report.identical, report.tensors), (Some(false), 2));
    for name in ["m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors"] {
        let read = |folder: &Path| std::fs::read(folder.join(name)).expect("there");
        assert_eq!(by_the_library(&read(&out)), by_the_library(&read(folder.path())), "{name}");
    }
    let json = |folder: &Path| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(folder.join(INDEX)).expect("there")).expect("JSON")
    };
    assert_eq!(json(&out), json(folder.path()));
    // A second time the files are what the exporter writes, and identical.
    let again = folder.path().join("again.p64");
    transcode(&out, &again);
    assert_eq!(export(&again, &folder.path().join("third")).identical, Some(true));
    // As one file, where one was asked for.
    let one = folder.path().join("one.safetensors");
    assert_eq!(export(&p64, &one).identical, None);
    assert_eq!(SafetensorsSet::open(&one).expect("good").tensors().count(), 2);
}

#[test]
fn outputs_are_no_inputs_and_failures_leave_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let source = by_the_library_written(folder.path());
    let before = std::fs::read(&source).expect("read");
    let options = TensorOptions::default();
    for to in [&source, &folder.path().to_owned()] {
        let error = export_safetensors(&source, to, &options, &mut |_| ()).expect_err("the same file");
        assert!(matches!(error, Error::SameFile { .. }), "{error}");
    }
    let error = export_npz(&source, &source, &options, &mut |_| ()).expect_err("the same file");
    assert!(matches!(error, Error::SameFile { .. }), "{error}");
    assert_eq!(std::fs::read(&source).expect("read"), before);
    // Quantised tensors are refused by name before a folder is made.
    let out = folder.path().join("out");
    let tiny = data("tiny/tiny-stories-q8_0.gguf");
    let error = export_safetensors(&tiny, &out, &options, &mut |_| ()).expect_err("quantised");
    assert!(error.to_string().contains("--dequantize"), "{error}");
    assert!(!out.exists());
}
