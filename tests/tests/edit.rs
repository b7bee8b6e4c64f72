//! Edits of a container: what comes out is what a conversion of the edited source would be, in a new file and in place.

#[path = "edit/interrupted.rs"]
mod interrupted;
#[path = "edit/refused.rs"]
mod refused;

use p64_core::DType;
use p64_core::container::{Container, METADATA_NAME, PROVENANCE_NAME};
use p64_core::validate::{Integrity, Policy};
use p64_std::Error;
use p64_std::convert::{ConvertOptions, convert_gguf};
use p64_std::edit::{EditReport, Edits, Recovery, Verify, edit_file, edit_in_place, journal_path};
use p64_std::export::export_gguf;
use p64_std::map::{MapOptions, MappedContainer};
use p64_std::model::LoadedModel;
use p64_tests::data::{data, model};
use p64_tests::gguf::GgufBuilder;
use std::path::{Path, PathBuf};

const STRICT: MapOptions = MapOptions { policy: Policy::Strict, integrity: Integrity::Full, threads: 1 };
const TINY: &str = "tiny/tiny-stories-q8_0.gguf";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn edits(build: impl FnOnce(&mut Edits)) -> Edits {
    let mut edits = Edits::new();
    build(&mut edits);
    edits
}

fn set(assignments: &[&str]) -> Edits {
    edits(|edits| {
        for assignment in assignments {
            edits.set(assignment).expect("a form");
        }
    })
}

fn convert(gguf: &Path, output: &Path, options: &ConvertOptions) -> PathBuf {
    convert_gguf(gguf, output, options, &mut |_| ()).expect("converted");
    output.to_owned()
}

fn edit(input: &Path, output: &Path, edits: &Edits) -> Result<EditReport, Error> {
    edit_file(input, output, edits, Verify::OnUse, &mut |_| ())
}

fn in_place(path: &Path, edits: &Edits) -> Result<EditReport, Error> {
    edit_in_place(path, edits, Verify::OnUse, &mut |_| ())
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("there")
}

fn open_strict(path: &Path) -> MappedContainer {
    let (container, warnings) = MappedContainer::open(path, &STRICT).expect("strict");
    assert!(warnings.is_empty(), "{warnings:?}");
    container
}

/// Everything that two containers of one model must have in common, whatever their provenance says.
fn same_model(a: &Container<'_>, b: &Container<'_>) {
    assert_eq!(a.hparams(), b.hparams());
    assert_eq!(a.flags(), b.flags());
    let tokens = |container: &Container<'_>| {
        let section = container.tokenizer().expect("a tokenizer");
        let tokens: Vec<String> = section.tokens().map(str::to_owned).collect();
        let merges = section.merges().map(|(left, right)| (left.to_owned(), right.to_owned())).collect::<Vec<_>>();
        (section.bos(), section.eos(), section.add_bos(), section.pre().to_owned(), tokens, merges)
    };
    assert_eq!(tokens(a), tokens(b));
    assert_eq!(a.tensor_count(), b.tensor_count());
    for (a_info, b_info) in a.tensors().zip(b.tensors()).filter(|(info, _)| info.name() != PROVENANCE_NAME) {
        assert_eq!(a_info.name(), b_info.name());
        assert_eq!((a_info.role(), a_info.manifold_idx()), (b_info.role(), b_info.manifold_idx()));
        assert_eq!((a_info.dtype(), a_info.shape()), (b_info.dtype(), b_info.shape()));
        assert_eq!(a_info.source_offset(), b_info.source_offset());
        assert_eq!(a_info.extent().start(), b_info.extent().start());
        let (a_bytes, b_bytes) = (a.tensor(&a_info).expect("verified"), b.tensor(&b_info).expect("verified"));
        assert!(a_bytes.bytes() == b_bytes.bytes(), "{}", a_info.name());
    }
}

/// Converts both GGUFs; the edited container of the first must be the container of the second, in a new file and in place,
/// and be exported as the second.
#[track_caller]
fn becomes(before: &GgufBuilder, edits: &Edits, after: &GgufBuilder, options: &ConvertOptions) {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let source = convert(&before.write(folder.path(), "a.gguf"), &at("a.p64"), options);
    let wanted = convert(&after.write(folder.path(), "b.gguf"), &at("b.p64"), options);
    let report = edit(&source, &at("edited.p64"), edits).expect("edited");
    assert_eq!(report.bytes, read(&at("edited.p64")).len() as u64);
    same_model(open_strict(&at("edited.p64")).container(), open_strict(&wanted).container());

    let exported = export_gguf(&at("edited.p64"), &at("back.gguf"), &mut |_| ()).expect("exported");
    assert_eq!(exported.identical, None);
    assert!(!exported.edited.is_empty());
    assert!(read(&at("back.gguf")) == after.build(), "the export is not the edited GGUF");

    let copy = at("copy.p64");
    std::fs::copy(&source, &copy).expect("copied");
    match in_place(&copy, edits) {
        Ok(_) => assert!(read(&copy) == read(&at("edited.p64")), "in place is not as in a new file"),
        Err(Error::Refused { reason, .. }) => {
            assert!(reason.contains("the weights would have to move") && reason.contains("with -o"), "{reason}");
            assert!(read(&copy) == read(&source), "refused, and changed");
        }
        Err(error) => panic!("{error}"),
    }
    assert!(!journal_path(&copy).exists());
}

fn small() -> GgufBuilder {
    GgufBuilder::new(3).str("general.name", "one").f32("llama.rope.freq_base", 10_000.0).small_model()
}

#[test]
fn keys_and_what_follows_from_them() {
    let options = ConvertOptions::default();
    let longer = "a name that is longer than the first one by far, so that what follows moves".repeat(9);
    for name in ["two", "", longer.as_str()] {
        let after = GgufBuilder::new(3).str("general.name", name).f32("llama.rope.freq_base", 10_000.0).small_model();
        becomes(&small(), &set(&[&format!("general.name={name}")]), &after, &options);
    }
    // The hyperparameters follow.
    let after = GgufBuilder::new(3).str("general.name", "one").f32("llama.rope.freq_base", 5e5).small_model();
    becomes(&small(), &set(&["llama.rope.freq_base=5e5"]), &after, &options);
    // New keys stand behind the others.
    let after = small().str("general.url", "x").u32("llama.context_length", 7);
    becomes(&small(), &set(&["general.url:string=x", "llama.context_length:u32=7"]), &after, &options);
    // The order is that of the changes.
    let after = GgufBuilder::new(3).f32("llama.rope.freq_base", 10_000.0).small_model();
    let dropped = edits(|edits| {
        edits.set("general.name=three").expect("a form").unset("general.name");
    });
    becomes(&small(), &dropped, &after, &options);
}

#[test]
fn the_tokenizer_section_follows_from_its_keys() {
    let keys = |tokens: &[&str], bos: u32| {
        let builder = GgufBuilder::new(3).str("general.architecture", "llama").u32("llama.block_count", 1);
        builder
            .u32("llama.embedding_length", 32)
            .u32("llama.attention.head_count", 4)
            .str("tokenizer.ggml.model", "gpt2")
            .strings("tokenizer.ggml.tokens", tokens)
            .strings("tokenizer.ggml.merges", &["a b"])
            .u32("tokenizer.ggml.bos_token_id", bos)
            .u32("tokenizer.ggml.eos_token_id", 1)
            .tensor("token_embd.weight", DType::F32, &[32, 3])
    };
    let before = keys(&["a", "b", "ab"], 0);
    for page_size in [256, 16_384] {
        let options = ConvertOptions { page_size, ..ConvertOptions::default() };
        becomes(&before, &set(&["tokenizer.ggml.bos_token_id=2"]), &keys(&["a", "b", "ab"], 2), &options);
        let after = keys(&["a", "b", "ab", "c"], 0);
        becomes(&before, &set(&["tokenizer.ggml.tokens=[\"a\",\"b\",\"ab\",\"c\"]"]), &after, &options);
        // With pages of 256 bytes this does not fit before the weights.
        let long = "d".repeat(1000);
        let after = keys(&["a", "b", "ab", &long], 0);
        let assignment = format!("tokenizer.ggml.tokens=[\"a\",\"b\",\"ab\",\"{long}\"]");
        becomes(&before, &set(&[&assignment]), &after, &options);
    }
}

/// A GGUF with the names of `small`, some of them others. The name in the source stays what it was.
fn renamed(names: &[(&str, &str)], order: Option<&[usize]>) -> GgufBuilder {
    let mut builder = GgufBuilder::new(3).model_keys(2);
    for layer in 0..2 {
        for (name, dtype, dims) in [
            ("ffn_down.weight", DType::Q8_0, &[64, 32][..]),
            ("attn_q.weight", DType::Q4_0, &[32, 32]),
            ("attn_q.bias", DType::F32, &[32]),
            ("attn_norm.weight", DType::F32, &[32]),
        ] {
            let name = format!("blk.{layer}.{name}");
            let name = names.iter().find(|(old, _)| *old == name).map_or(name.as_str(), |(_, new)| new);
            builder = builder.tensor(name, dtype, dims);
        }
    }
    match order {
        Some(order) => builder.data_order(order),
        None => builder,
    }
}

#[test]
fn names_roles_and_order() {
    let cases: [&[(&str, &str)]; 5] = [
        // To a role, from a role, to another layer's place, both at once, and a longer one.
        &[("blk.0.attn_q.bias", "blk.0.attn_k.weight")],
        &[("blk.1.attn_q.weight", "something.else")],
        &[("blk.0.ffn_down.weight", "blk.1.ffn_up.weight")],
        &[("blk.0.attn_q.weight", "blk.1.attn_q.weight"), ("blk.1.attn_q.weight", "blk.0.attn_q.weight")],
        &[("blk.0.attn_q.bias", "a name with spaces and ü, longer than the old one")],
    ];
    for order in [None, Some(&[7, 3, 1, 0, 5, 2, 4, 6][..])] {
        for names in cases {
            let edits = edits(|edits| {
                for (old, new) in names {
                    edits.rename(&format!("{old}={new}")).expect("a form");
                }
            });
            let (before, after) = (renamed(&[], order), renamed(names, order));
            for layer_major in [true, false] {
                let options = ConvertOptions { layer_major, schedule: layer_major, ..ConvertOptions::default() };
                becomes(&before, &edits, &after, &options);
            }
        }
    }
}

#[test]
fn every_layout_stays_what_it_is() {
    for page_size in [256, 4096] {
        for (layer_major, pack, schedule) in
            [(true, true, true), (true, false, false), (false, true, false), (false, false, false)]
        {
            let options = ConvertOptions { page_size, layer_major, pack, schedule };
            let after = small().str("general.url", "x");
            becomes(&small(), &set(&["general.url:string=x"]), &after, &options);
        }
    }
}

#[test]
fn edits_add_up_in_the_provenance() {
    let folder = folder();
    let path =
        convert(&small().write(folder.path(), "a.gguf"), &folder.path().join("a.p64"), &ConvertOptions::default());
    let edited = || {
        let mapped = open_strict(&path);
        let provenance = mapped.container().provenance().expect("well-formed").expect("there");
        let list = provenance.array("p64.edited").expect("an array");
        list.map(|list| list.strings().map(|text| String::from_utf8_lossy(text).into_owned()).collect::<Vec<_>>())
    };
    assert_eq!(edited(), None);
    let report = in_place(&path, &set(&["general.name=one"])).expect("nothing to do");
    assert!(!report.is_changed());
    assert_eq!((report.written, edited()), (0, None));
    in_place(&path, &set(&["general.name=two", "llama.rope.freq_base=7"])).expect("edited");
    let rename = edits(|edits| {
        edits.rename("blk.0.attn_q.bias=bias").expect("a form").set("general.name=three").expect("a form");
    });
    let report = in_place(&path, &rename).expect("edited");
    assert_eq!(report.renamed, [("blk.0.attn_q.bias".to_owned(), "bias".to_owned())]);
    let expected = ["blk.0.attn_q.bias=bias", "general.name", "llama.rope.freq_base"];
    assert_eq!(edited().as_deref(), Some(&expected.map(str::to_owned)[..]));
}

#[test]
fn a_model_runs_with_its_new_template() {
    let folder = folder();
    let path = convert(&data(TINY), &folder.path().join("tiny.p64"), &ConvertOptions::default());
    let output = folder.path().join("out.p64");
    let template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
    let report = edit(
        &path,
        &output,
        &edits(|edits| {
            edits.set_text("tokenizer.chat_template", template);
        }),
    );
    let report = report.expect("edited");
    assert!(report.warnings.is_empty() && report.recovered == Recovery::Nothing, "{report:?}");
    let loaded = LoadedModel::open(&output, &STRICT).expect("runs");
    assert_eq!(loaded.tokenizer().chat_template(), Some(template));
    // A template that does not compile is kept, and told.
    let report = in_place(
        &output,
        &edits(|edits| {
            edits.set_text("tokenizer.chat_template", "{% for %}");
        }),
    );
    // The model is mapped.
    let error = report.expect_err("in use");
    assert!(error.to_string().contains("while another program uses it"), "{error}");
    drop(loaded);
    let report = in_place(
        &output,
        &edits(|edits| {
            edits.set_text("tokenizer.chat_template", "{% for %}");
        }),
    );
    let warnings = report.expect("edited").warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("chat template"), "{warnings:?}");
}

#[test]
fn the_weights_go_over_unread_unless_asked() {
    let folder = folder();
    let path = convert(&data(TINY), &folder.path().join("tiny.p64"), &ConvertOptions::default());
    let mut bytes = read(&path);
    let (at, name) = {
        let mapped = open_strict(&path);
        let info = mapped.container().tensors().nth(3).expect("several");
        (usize::try_from(info.extent().start()).expect("small"), info.name().to_owned())
    };
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).expect("written");
    let output = folder.path().join("out.p64");
    edit(&path, &output, &set(&["general.name:string=x"])).expect("edited");
    let error = MappedContainer::open(&output, &STRICT).map(|_| ()).expect_err("damaged as before");
    assert!(error.to_string().contains("CRC-32C"), "{error}");
    let error = edit_file(&path, &output, &set(&["general.name:string=x"]), Verify::Now, &mut |_| ());
    let error = error.expect_err("told to look");
    assert!(error.to_string().contains("CRC-32C"), "{name}: {error}");
    let before = read(&path);
    edit_in_place(&path, &set(&["general.name:string=x"]), Verify::Now, &mut |_| ()).expect_err("told to look");
    assert!(read(&path) == before);
}

/// Pages of 1 GiB before each layer: what is written does not grow with what lies between.
#[test]
fn a_container_past_4_gib() {
    let folder = folder();
    let options = ConvertOptions { page_size: 1 << 30, ..ConvertOptions::default() };
    let path = convert(&data(TINY), &folder.path().join("large.p64"), &options);
    assert!(path.metadata().expect("there").len() > 4 << 30);
    let output = folder.path().join("out.p64");
    let edits = set(&["general.name:string=x", "tokenizer.ggml.eos_token_id=3"]);
    let report = edit(&path, &output, &edits).expect("edited");
    assert!(report.written < 1 << 20, "{report:?}");
    let report = in_place(&path, &edits).expect("edited");
    assert!(report.written < 1 << 20, "{report:?}");
    let lazy = MapOptions { integrity: Integrity::Lazy, ..STRICT };
    let [a, b] = [&path, &output].map(|path| MappedContainer::open(path, &lazy).expect("strict").0);
    assert_eq!(a.container().header(), b.container().header());
    same_model(a.container(), b.container());
    #[cfg(unix)]
    for path in [&path, &output] {
        use std::os::unix::fs::MetadataExt;
        assert!(path.metadata().expect("there").blocks() * 512 < 4 << 20, "{}", path.display());
    }
}

#[test]
fn real_models() {
    for name in ["smollm2-135m-q4_1", "gemma3-270m-q4_k_m"] {
        let folder = folder();
        let path = convert(&model(&format!("{name}.gguf")), &folder.path().join("m.p64"), &ConvertOptions::default());
        let output = folder.path().join("out.p64");
        let edits = set(&["general.name=Mine", "tokenizer.ggml.add_bos_token:bool=true"]);
        let report = edit_file(&path, &output, &edits, Verify::Now, &mut |_| ()).expect("edited");
        assert!(report.written < report.bytes / 10, "{report:?}");
        let report = in_place(&path, &edits).expect("edited");
        assert!(report.written < report.bytes / 10, "{report:?}");
        assert!(read(&path) == read(&output), "{name}");
        let loaded = LoadedModel::open(&output, &STRICT).expect("runs");
        let metadata = loaded.metadata().expect("there");
        assert_eq!(metadata.str("general.name"), Ok(Some("Mine")));
        assert!(loaded.container().expect("a P64").find(METADATA_NAME).is_some());
    }
}
