//! Token ids, pieces and detokenised bytes of both real models against llama.cpp's, on every golden string.
//!
//! The models come from `make model`; the expected values are `tests/data/llama/tok_*.json` (llama.cpp, commit inside).

use std::fs::File;
use std::io::Read;

use p64_core::metadata::Metadata;
use p64_std::tokenizer::Tokenizer;
use p64_tests::data::{data, model};
use serde_json::Value;

/// The tokenizer of a model in `models/`, from the head of its GGUF.
fn tokenizer(name: &str) -> Tokenizer {
    let path = model(name);
    let mut file = File::open(&path).unwrap();
    let mut bytes = Vec::new();
    // The key-value area has no length of its own: read on until it fits.
    for step in [1_u64 << 24, 1 << 25, 1 << 26, u64::MAX] {
        file.by_ref().take(step).read_to_end(&mut bytes).unwrap();
        let count = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
        if let Ok((metadata, _)) = Metadata::parse_pairs(&bytes[24..], count, 24) {
            return Tokenizer::from_metadata(&metadata).unwrap();
        }
    }
    panic!("{}: the key-value area does not parse", path.display());
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// Compares everything and reports all differences at once.
fn check(model: &str, cases: usize) {
    let tokenizer = tokenizer(&format!("{model}.gguf"));
    let path = data(&format!("llama/tok_{model}.json"));
    let golden: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(tokenizer.vocab_size() as u64, golden["n_vocab"].as_u64().unwrap());
    assert_eq!(tokenizer.bos().map(u64::from), golden["bos"].as_u64());
    assert_eq!(tokenizer.eos().map(u64::from), golden["eos"].as_u64());
    assert_eq!(Some(tokenizer.vocabulary().add_bos()), golden["add_bos"].as_bool());
    assert_eq!(Some(tokenizer.vocabulary().add_eos()), golden["add_eos"].as_bool());
    let all = golden["cases"].as_array().unwrap();
    assert_eq!(all.len(), cases);
    let mut differences = Vec::new();
    for case in all {
        let note = case["note"].as_str().unwrap();
        let text = hex(case["bytes_hex"].as_str().unwrap());
        if let Some(utf8) = case["text"].as_str() {
            assert_eq!(utf8.as_bytes(), text, "{note}: the golden file contradicts itself");
        }
        for (key, add_special, parse_special) in
            [("ids", false, false), ("ids_parse_special", false, true), ("ids_add_special_parse_special", true, true)]
        {
            let (ours, theirs) = (tokenizer.encode(&text, add_special, parse_special), ids(&case[key]));
            if ours != theirs {
                differences.push(format!("{note}, {key}: ours {ours:?}, llama.cpp {theirs:?}"));
            }
        }
        let ids = ids(&case["ids"]);
        let pieces: Vec<Vec<u8>> =
            case["piece_hex"].as_array().unwrap().iter().map(|piece| hex(piece.as_str().unwrap())).collect();
        let ours: Vec<Vec<u8>> = ids.iter().map(|&id| tokenizer.token_bytes(id, true)).collect();
        if ours != pieces {
            differences.push(format!("{note}, pieces: ours {ours:?}, llama.cpp {pieces:?}"));
        }
        let whole = hex(case["detok_hex_ids"].as_str().unwrap());
        if tokenizer.decode(&ids) != whole {
            differences.push(format!("{note}, detokenised: ours {:?}, llama.cpp {whole:?}", tokenizer.decode(&ids)));
        }
        if case["roundtrip_exact"].as_bool().unwrap() {
            assert_eq!(tokenizer.decode(&tokenizer.encode(&text, false, false)), text, "{note}");
        }
    }
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn smollm2_equals_llama_cpp() {
    check("smollm2-135m-q4_1", 47);
}

#[test]
fn gemma3_equals_llama_cpp() {
    check("gemma3-270m-q4_k_m", 47);
}

/// The tokens that end generation are the ones a person expects, and chat templates are there.
#[test]
fn ends_and_templates() {
    let smollm = tokenizer("smollm2-135m-q4_1.gguf");
    // <|endoftext|>, <|im_end|>, <reponame>
    assert_eq!(smollm.vocabulary().end_of_generation(), [0, 2, 4]);
    assert!(smollm.chat_template().unwrap().contains("<|im_start|>"));
    let gemma = tokenizer("gemma3-270m-q4_k_m.gguf");
    // <eos>, <end_of_turn>; not 212, the HTML tag </s>
    assert_eq!(gemma.vocabulary().end_of_generation(), [1, 106]);
    assert_eq!(gemma.token_text(212), Some(&b"</s>"[..]));
}
