//! Edits that are refused, and leave everything as it was.

use super::{TINY, convert, edit, edits, folder, in_place, read, set, small};
use p64_std::Error;
use p64_std::convert::ConvertOptions;
use p64_std::edit::Edits;
use p64_std::map::Mapping;
use p64_tests::data::data;
use p64_tests::mutate;

#[track_caller]
fn refused(model: &str, edits: &Edits, reason: &str) {
    let folder = folder();
    let gguf = if model == TINY { data(TINY) } else { small().write(folder.path(), "in.gguf") };
    let path = convert(&gguf, &folder.path().join("m.p64"), &ConvertOptions::default());
    let before = read(&path);
    let output = folder.path().join("out.p64");
    let error = edit(&path, &output, edits).expect_err("refused");
    assert!(matches!(error, Error::Refused { .. }) && error.exit_code() == 1, "{error:?}");
    assert!(error.to_string().contains(reason), "{error}");
    assert!(!output.exists());
    assert_eq!(in_place(&path, edits).expect_err("refused").to_string(), error.to_string());
    assert!(read(&path) == before);
}

#[test]
fn what_would_break_the_model() {
    let unset = |key: &str| {
        edits(|edits| {
            edits.unset(key);
        })
    };
    refused(TINY, &unset("general.architecture"), "complete model");
    refused(TINY, &unset("llama.block_count"), "complete model");
    refused(TINY, &unset("tokenizer.ggml.tokens"), "tokenizer");
    refused(TINY, &unset("llama.attention.layer_norm_rms_epsilon"), "does not run");
    refused(TINY, &set(&["llama.attention.head_count=7"]), "does not run");
    refused(TINY, &set(&["tokenizer.ggml.bos_token_id=4000000000"]), "the vocabulary has");
    refused(TINY, &set(&["llama.block_count:string=x"]), "llama.block_count");
    refused("small", &set(&["llama.block_count=70000"]), "layers");
}

#[test]
fn what_cannot_be_changed() {
    refused("small", &set(&["nothing=1"]), "there is no such key");
    refused("small", &set(&["llama.block_count=x"]), "is no u32");
    let rename = |names: &[&str]| {
        edits(|edits| {
            for names in names {
                edits.rename(names).expect("a form");
            }
        })
    };
    refused("small", &rename(&["nothing=x"]), "nothing: there is no such tensor");
    refused("small", &rename(&["token_embd.weight=output_norm.weight"]), "two tensors have the name");
    refused("small", &rename(&["token_embd.weight=a", "token_embd.weight=b"]), "two new names");
    refused("small", &rename(&["token_embd.weight=p64.x"]), "reserved");
    refused("small", &rename(&["p64.metadata=x"]), "reserved");
    refused("small", &rename(&["token_embd.weight=a\0b"]), "NUL");
}

#[cfg(unix)]
#[test]
fn output_and_input_of_one_inode() {
    let folder = folder();
    let path =
        convert(&small().write(folder.path(), "in.gguf"), &folder.path().join("m.p64"), &ConvertOptions::default());
    let (hard, soft) = (folder.path().join("hard.p64"), folder.path().join("soft.p64"));
    std::fs::hard_link(&path, &hard).expect("linked");
    std::os::unix::fs::symlink(&path, &soft).expect("linked");
    for output in [&path, &hard, &soft] {
        let error = edit(&path, output, &set(&["general.name=x"])).expect_err("one file");
        assert!(matches!(error, Error::SameFile { .. }), "{error}");
    }
    // In place goes through a link, and the link stays.
    in_place(&soft, &set(&["general.name=x"])).expect("edited");
    assert!(soft.is_symlink() && read(&path) == read(&hard));
}

#[test]
fn one_at_a_time() {
    let folder = folder();
    let path =
        convert(&small().write(folder.path(), "in.gguf"), &folder.path().join("m.p64"), &ConvertOptions::default());
    let before = read(&path);
    let mapping = Mapping::open(&path).expect("mapped");
    let error = in_place(&path, &set(&["general.name=x"])).expect_err("in use");
    assert_eq!(error.exit_code(), 2, "{error}");
    assert!(*mapping == *before);
    // A new file is no matter of the reader's.
    edit(&path, &folder.path().join("out.p64"), &set(&["general.name=x"])).expect("edited");
    drop(mapping);

    let lock = std::fs::File::open(&path).expect("there");
    lock.lock().expect("locked");
    for error in [
        Mapping::open(&path).map(|_| ()).expect_err("being edited"),
        edit(&path, &folder.path().join("out.p64"), &set(&["general.name=x"])).map(|_| ()).expect_err("being edited"),
        in_place(&path, &set(&["general.name=x"])).map(|_| ()).expect_err("being edited"),
    ] {
        assert!(
            matches!(&error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::ResourceBusy),
            "{error}"
        );
    }
    lock.unlock().expect("unlocked");
    in_place(&path, &set(&["general.name=x"])).expect("edited");
}

#[test]
fn files_that_are_no_strict_container() {
    let folder = folder();
    let gguf = small().write(folder.path(), "in.gguf");
    let path = convert(&gguf, &folder.path().join("m.p64"), &ConvertOptions::default());
    let output = folder.path().join("out.p64");
    let error = edit(&gguf, &output, &set(&["general.name=x"])).expect_err("a GGUF");
    assert!(matches!(error, Error::WrongFormat { .. }), "{error}");

    // An extension of the hyperparameters, which the compatible policy reads.
    let whole = read(&path);
    let mut bytes = whole.clone();
    bytes[64 + 28] = 1;
    mutate::refix(&mut bytes);
    std::fs::write(&path, &bytes).expect("written");
    let error = edit(&path, &output, &set(&["general.name=x"])).expect_err("not strict");
    assert!(error.to_string().contains("convert the model again"), "{error}");

    for len in [0, 10, 63, 64, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..len]).expect("written");
        edit(&path, &output, &set(&["general.name=x"])).expect_err("cut short");
        in_place(&path, &set(&["general.name=x"])).expect_err("cut short");
    }
    assert!(!output.exists());
}
