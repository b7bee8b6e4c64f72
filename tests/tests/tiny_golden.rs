//! The bundled model against golden answers that `scripts/tiny/golden.py` computed in 64-bit floats with numpy, without a
//! line of this code: tokens, logits and greedy choices, from the GGUF and from the container made of it, on both paths.

use p64_core::kernel::Activations;
use p64_std::convert::{ConvertOptions, convert_gguf};
use p64_std::map::MapOptions;
use p64_std::model::LoadedModel;
use p64_std::sample::argmax;
use p64_std::session::{Session, SessionOptions};
use p64_tests::data::data;
use serde::Deserialize;
use std::fs;

const NAME: &str = "tiny-stories-q8_0";
/// Largest difference of a logit from the 64-bit result; logits reach about 20. The exact path differs by rounding in
/// 32 bits, the production path by activations of 16 bits.
const BARS: [(Activations, f32); 2] = [(Activations::F32, 1e-4), (Activations::Quantized, 2e-3)];

#[derive(Deserialize)]
struct Golden {
    n_vocab: usize,
    cases: Vec<Case>,
    strings: Vec<Text>,
}

#[derive(Deserialize)]
struct Case {
    prompt: String,
    prompt_ids: Vec<u32>,
    first_logits_file: String,
    gen_ids: Vec<u32>,
    top1_logit: Vec<f32>,
    top1_top2_margin: Vec<f32>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    ids: Vec<u32>,
    ids_parse_special: Vec<u32>,
}

fn golden() -> Golden {
    let text = fs::read_to_string(data("tiny").join(format!("{NAME}.json"))).expect("in the repository");
    serde_json::from_str(&text).expect("well-formed")
}

fn logits(file: &str) -> Vec<f32> {
    let bytes = fs::read(data("tiny").join(file)).expect("in the repository");
    bytes.chunks_exact(4).map(|chunk| f32::from_le_bytes(chunk.try_into().expect("four bytes"))).collect()
}

fn check(model: &LoadedModel, golden: &Golden, threads: usize) {
    for (activations, bar) in BARS {
        let options = SessionOptions { threads, activations, ..SessionOptions::default() };
        let mut session = Session::new(model, &options).expect("fits");
        for case in &golden.cases {
            session.reset();
            let expected = logits(&case.first_logits_file);
            let mut found = session.prefill(&case.prompt_ids).expect("fits").to_vec();
            assert_eq!((found.len(), expected.len()), (golden.n_vocab, golden.n_vocab));
            let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst <= bar, "{:?}, {activations:?}: first logits differ by {worst}", case.prompt);
            for (step, &id) in case.gen_ids.iter().enumerate() {
                let difference = (found[id as usize] - case.top1_logit[step]).abs();
                assert!(difference <= bar, "{:?}, {activations:?}, step {step}: {difference}", case.prompt);
                if case.top1_top2_margin[step] > 2.0 * bar {
                    assert_eq!(argmax(&found), Some(id), "{:?}, {activations:?}, step {step}", case.prompt);
                }
                found = session.step(id).expect("fits").to_vec();
            }
        }
    }
}

#[test]
fn logits_and_choices_of_the_gguf_and_of_its_container() {
    let golden = golden();
    let gguf = data("tiny").join(format!("{NAME}.gguf"));
    let folder = tempfile::tempdir().expect("a folder");
    let p64 = folder.path().join("tiny.p64");
    convert_gguf(&gguf, &p64, &ConvertOptions::default(), &mut |_| ()).expect("converts");
    for path in [&gguf, &p64] {
        let model = LoadedModel::open(path, &MapOptions::default()).expect("opens");
        for threads in [1, 2] {
            check(&model, &golden, threads);
        }
    }
}

#[test]
fn tokens() {
    let golden = golden();
    let path = data("tiny").join(format!("{NAME}.gguf"));
    let model = LoadedModel::open(&path, &MapOptions::default()).expect("opens");
    let tokenizer = model.tokenizer();
    assert_eq!(tokenizer.vocab_size(), golden.n_vocab);
    for Text { text, ids, ids_parse_special } in &golden.strings {
        assert_eq!(&tokenizer.encode(text.as_bytes(), false, false), ids, "{text:?}");
        assert_eq!(&tokenizer.encode(text.as_bytes(), false, true), ids_parse_special, "{text:?}, special");
        assert_eq!(String::from_utf8_lossy(&tokenizer.decode_special(ids)), *text);
    }
    for case in golden.cases {
        assert_eq!(tokenizer.encode(case.prompt.as_bytes(), true, true), case.prompt_ids, "{:?}", case.prompt);
    }
}
