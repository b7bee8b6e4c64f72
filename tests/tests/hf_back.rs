//! Hugging Face folders there and back: the tensors and the `config.json` of each folder of `tests/data/hf`.

use p64_std::convert::{ProduceOptions, convert, convert_file};
use p64_std::export::{TensorOptions, export_gguf, export_safetensors};
use p64_std::hf;
use p64_std::safetensors::SafetensorsSet;
use p64_tests::data::data;
use safetensors::{Dtype, SafeTensors};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folders that are complete models.
fn folders() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data("hf")).expect("the folders");
    let mut folders: Vec<_> = entries.map(|entry| entry.expect("entry").path()).collect();
    folders.retain(|path| path.is_dir() && hf::is_complete_folder(path));
    folders.sort();
    folders
}

fn container(folder: &Path, output: &Path) {
    let set = SafetensorsSet::open(folder).expect("well-formed");
    let model = hf::source_model(&set, folder).expect("a known model");
    convert(&model, &set.paths(), output, &ProduceOptions::default(), &mut |_| ()).expect("converted");
}

type Stored = (Dtype, Vec<usize>, Vec<u8>);

/// Equal, byte for byte. Norms of Gemma in F32 alone have lost what adding 1 to them has rounded off, as in every GGUF of such
/// a model: half of the last bit that a number below 2 has.
#[track_caller]
fn check(model: &str, tensor: &str, expected: &Stored, found: &Stored) {
    if expected == found {
        return;
    }
    assert!(model.starts_with("gemma") && tensor.ends_with("norm.weight"), "{model}: {tensor} differs");
    assert_eq!((expected.0, &expected.1), (found.0, &found.1), "{model}: {tensor}");
    assert_eq!(expected.0, Dtype::F32, "{model}: {tensor} differs");
    let values = |stored: &Stored| -> Vec<f32> {
        stored.2.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes"))).collect()
    };
    for (a, b) in values(expected).into_iter().zip(values(found)) {
        assert!(a.abs() < 1.0 && (a - b).abs() <= 2f32.powi(-24), "{model}: {tensor}: {a:e} became {b:e}");
    }
}

/// Name to type, shape and bytes of every tensor of a folder's files, as the library reads them.
fn tensors(folder: &Path) -> BTreeMap<String, Stored> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|extension| extension == "safetensors") {
            let bytes = std::fs::read(&path).expect("read");
            for (name, view) in SafeTensors::deserialize(&bytes).expect("well-formed").iter() {
                all.insert(name.to_owned(), (view.dtype(), view.shape().to_vec(), view.data().to_vec()));
            }
        }
    }
    all
}

fn text(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("config.json")).expect("a configuration")
}

#[test]
fn folders_come_back_with_equal_tensors_and_configuration() {
    let folders = folders();
    assert!(folders.len() >= 15, "{} folders", folders.len());
    let mut identical = 0;
    for folder in folders {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let work = tempfile::tempdir().expect("folder");
        let (p64, back) = (work.path().join("model.p64"), work.path().join("back"));
        container(&folder, &p64);
        let report = export_safetensors(&p64, &back, &TensorOptions::default(), &mut |_| ())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        identical += u32::from(report.identical == Some(true));
        assert_eq!(text(&back), text(&folder), "{name}");
        let (expected, found) = (tensors(&folder), tensors(&back));
        let names = |all: &BTreeMap<String, _>| all.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "{name}");
        for (tensor, expected) in &expected {
            check(&name, tensor, expected, &found[tensor]);
        }
    }
    assert!(identical >= 5, "{identical} files came back byte for byte");
}

/// Without the source's configuration: from the GGUF that a folder became, whose keys make a configuration that means the
/// same. What that is shows in the container made of it.
/// A head of its own that only happens to equal the embedding comes back as one.
#[test]
fn an_untied_head_that_is_the_embedding_comes_back() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path().join("in");
    std::fs::create_dir(&folder).expect("created");
    for entry in std::fs::read_dir(data("hf/llama-f32")).expect("a folder") {
        let path = entry.expect("entry").path();
        std::fs::copy(&path, folder.join(path.file_name().expect("a name"))).expect("copied");
    }
    let mut all = tensors(&folder);
    let embedding = all["model.embed_tokens.weight"].clone();
    all.insert("lm_head.weight".to_owned(), embedding);
    let views = all.iter().map(|(name, (dtype, shape, bytes))| {
        (name.clone(), safetensors::tensor::TensorView::new(*dtype, shape.clone(), bytes).expect("fits"))
    });
    let file = safetensors::serialize(views, None).expect("serialised");
    std::fs::write(folder.join("model.safetensors"), file).expect("written");
    let config = text(&folder).replace("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    std::fs::write(folder.join("config.json"), &config).expect("written");
    let (p64, back) = (scratch.path().join("m.p64"), scratch.path().join("back"));
    container(&folder, &p64);
    export_safetensors(&p64, &back, &TensorOptions::default(), &mut |_| ()).expect("exported");
    assert!(tensors(&back) == all, "the head is lost");
}

/// An older container in the model's own folder is replaced, as anywhere else.
#[test]
fn a_folder_is_converted_into_itself_twice() {
    let scratch = tempfile::tempdir().expect("a folder");
    for entry in std::fs::read_dir(data("hf/llama-f32")).expect("a folder") {
        let path = entry.expect("entry").path();
        std::fs::copy(&path, scratch.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    let options = ProduceOptions::default();
    let output = scratch.path().join("m.p64");
    let once = || convert_file(scratch.path(), &output, &options, &mut |_| ()).map(|_| std::fs::read(&output));
    let first = once().expect("converted").expect("read");
    assert!(once().expect("converted again").expect("read") == first);
    let config = scratch.path().join("config.json");
    let error = convert_file(scratch.path(), &config, &options, &mut |_| ()).expect_err("what is read");
    assert!(matches!(error, p64_std::Error::SameFile { .. }), "{error}");
}

#[test]
fn a_gguf_becomes_a_folder_that_converts_to_the_same_tensors() {
    for name in ["llama-f32", "gemma3-f32"] {
        let work = tempfile::tempdir().expect("folder");
        let path = |name: &str| work.path().join(name);
        container(&data(&format!("hf/{name}")), &path("a.p64"));
        export_gguf(&path("a.p64"), &path("a.gguf"), &mut |_| ()).expect("exported");
        let back = path("back");
        export_safetensors(&path("a.gguf"), &back, &TensorOptions::default(), &mut |_| ()).expect("exported");
        let (expected, found) = (tensors(&data(&format!("hf/{name}"))), tensors(&back));
        assert_eq!(found.len(), expected.len(), "{name}");
        for (tensor, expected) in &expected {
            check(name, tensor, expected, &found[tensor]);
        }
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        let (made, own) = (value(&text(&back)), value(&text(&data(&format!("hf/{name}")))));
        for key in [
            "architectures",
            "model_type",
            "hidden_size",
            "intermediate_size",
            "num_attention_heads",
            "num_key_value_heads",
            "num_hidden_layers",
            "max_position_embeddings",
            "rms_norm_eps",
            "vocab_size",
            "tie_word_embeddings",
        ] {
            assert_eq!(made[key], own[key], "{name}: {key}");
        }
    }
}
