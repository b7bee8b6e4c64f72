//! Split models: a set of GGUF files becomes one container, and the set again.

use super::{convert, entries, export, folder, open_strict};
use p64_core::DType;
use p64_std::Error;
use p64_std::convert::check_parity;
use p64_tests::gguf::GgufBuilder;
use std::path::{Path, PathBuf};

fn part(number: u16, count: u16, tensors: i32) -> GgufBuilder {
    let builder = GgufBuilder::new(3);
    let builder = if number == 0 { builder.model_keys(2) } else { builder };
    builder.u16("split.no", number).u16("split.count", count).i32("split.tensors.count", tensors)
}

fn set() -> [GgufBuilder; 3] {
    [
        part(0, 3, 5),
        part(1, 3, 5).tensor("blk.1.attn_q.weight", DType::F32, &[4]).tensor(
            "blk.0.attn_q.weight",
            DType::F32,
            &[2, 2],
        ),
        part(2, 3, 5)
            .tensor("token_embd.weight", DType::F16, &[4, 3])
            .tensor("odd", DType::I8, &[7])
            .tensor("blk.0.attn_k.weight", DType::Q8_0, &[32])
            .data_order(&[1, 2, 0]),
    ]
}

fn write(folder: &Path, parts: &[GgufBuilder]) -> Vec<PathBuf> {
    let count = parts.len();
    let named = parts.iter().enumerate();
    named.map(|(i, part)| part.write(folder, &format!("m-{:05}-of-{count:05}.gguf", i + 1))).collect()
}

#[test]
fn a_set_comes_back_file_by_file() {
    let folder = folder();
    let inputs = write(folder.path(), &set());
    let output = folder.path().join("out.p64");
    let report = convert(&inputs[0], &output).expect("converted");
    assert_eq!((report.source_files, report.tensors), (3, 5));
    drop(open_strict(&output));
    let parity = check_parity(&inputs[0], &output, &mut |_| ()).expect("comparable");
    assert!(parity.is_equal(), "{:?}", parity.differences);

    let back = folder.path().join("back");
    std::fs::create_dir(&back).expect("created");
    let exported = export(&output, &back.join("n-00001-of-00003.gguf"));
    assert_eq!(exported.identical, Some(true));
    for (input, file) in inputs.iter().zip(&exported.files) {
        assert_eq!(std::fs::read(input).expect("there"), std::fs::read(&file.path).expect("there"));
    }
    assert_eq!(entries(&back), ["n-00001-of-00003.gguf", "n-00002-of-00003.gguf", "n-00003-of-00003.gguf"]);
}

#[test]
fn a_set_becomes_one_gguf() {
    let folder = folder();
    let inputs = write(folder.path(), &set());
    let (output, back) = (folder.path().join("out.p64"), folder.path().join("one.gguf"));
    convert(&inputs[0], &output).expect("converted");
    assert_eq!(export(&output, &back).identical, None);
    let merged = p64_std::gguf::GgufFile::open(&back).expect("well-formed");
    assert_eq!(merged.gguf().tensors().len(), 5);
    assert!(merged.gguf().metadata().get("split.count").is_none());
    assert_eq!(merged.gguf().metadata().u32("llama.block_count"), Ok(Some(2)));
    // It has the same tensors with the same bytes: a conversion of its own round-trips.
    let again = folder.path().join("again.p64");
    convert(&back, &again).expect("converted");
    let (one, two) = (open_strict(&output), open_strict(&again));
    for info in one.container().tensors().filter(|info| !info.name().starts_with("p64.")) {
        let other = two.container().tensor_named(info.name()).expect("verified").expect("there");
        assert_eq!(one.container().tensor(&info).expect("verified").bytes(), other.bytes(), "{}", info.name());
    }
}

#[test]
fn files_that_are_no_set() {
    let refuse = |parts: &[GgufBuilder], open: usize, words: &str| {
        let folder = folder();
        let inputs = write(folder.path(), parts);
        let error = convert(&inputs[open], &folder.path().join("out.p64")).expect_err("no set");
        assert!(error.to_string().contains(words), "{error}");
        assert!(matches!(error, Error::Gguf { .. }), "{error:?}");
    };
    refuse(&set(), 1, "this is not the first file of its set: open ");
    let [a, b, c] = set();
    refuse(&[a.clone(), c.clone(), b.clone()], 0, "split.no is 2, the name says 1");
    refuse(&[a.clone(), b.clone(), part(2, 4, 5)], 0, "split.count is 4, the first file says 3");
    refuse(&[a.clone(), b.clone(), part(2, 3, 5)], 0, "split.tensors.count is 5, the files hold 2 tensors");
    refuse(
        &[a, b.clone(), part(2, 3, 5).tensor("blk.0.attn_q.weight", DType::F32, &[1])],
        0,
        "another file of the set",
    );

    let folder = folder();
    let inputs = write(folder.path(), &set());
    std::fs::remove_file(&inputs[2]).expect("removed");
    let error = convert(&inputs[0], &folder.path().join("out.p64")).expect_err("a file is missing");
    assert!(error.to_string().contains("m-00003-of-00003.gguf: cannot open it: "), "{error}");
    let alone = part(0, 3, 0).write(folder.path(), "renamed.gguf");
    let error = convert(&alone, &folder.path().join("out.p64")).expect_err("another name");
    assert!(error.to_string().contains("must be named <stem>-00001-of-00003.gguf"), "{error}");
}
