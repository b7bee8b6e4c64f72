//! What llama.cpp makes of the strings in `tests/data/tokenizers` (`scripts/make_tokenizer_goldens.sh`).

use p64_std::tokenizer::{TokenType, Tokenizer};
use p64_tests::data::data;
use serde_json::Value;

/// Lines longer than this are told by their length and hash.
const LONG: usize = 240;

/// The strings, in the order of the results.
pub fn strings() -> Vec<Vec<u8>> {
    let json = std::fs::read(data("tokenizers/strings.json")).expect("in the repository");
    let entries: Vec<Value> = serde_json::from_slice(&json).expect("well-formed");
    let string = |entry: &Value| match entry {
        Value::String(text) => text.clone().into_bytes(),
        entry => match entry["hex"].as_str() {
            Some(hex) => unhex(hex),
            None => {
                let times = usize::try_from(entry["times"].as_u64().expect("a number")).expect("small");
                let repeated = entry["repeat"].as_str().expect("text").repeat(times);
                (repeated + entry["tail"].as_str().expect("text")).into_bytes()
            }
        },
    };
    entries.iter().map(string).collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 64-bit FNV-1a.
pub fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A line as the results have it.
fn short(line: String) -> String {
    if line.len() <= LONG { line } else { format!("#{} {:016x}", line.len(), fnv(line.as_bytes())) }
}

/// Ids as a line has them.
pub fn line(ids: &[u32]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// What differs from the results of a name; the first says what the vocabulary is.
pub fn differences(name: &str, tokenizer: &Tokenizer, strings: &[Vec<u8>]) -> Vec<String> {
    let path = data(&format!("tokenizers/{name}.txt"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{} is missing", path.display()));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2 + 3 * strings.len(), "{}", path.display());
    let vocabulary = tokenizer.vocabulary();
    let id = |id: Option<u32>| id.map_or("-1".to_owned(), |id| id.to_string());
    let facts = [
        vocabulary.len().to_string(),
        id(vocabulary.bos()),
        id(vocabulary.eos()),
        id(vocabulary.separator()),
        id(vocabulary.padding()),
        u8::from(vocabulary.add_bos()).to_string(),
        u8::from(vocabulary.add_eos()).to_string(),
    ];
    let mut wrong = Vec::new();
    let mut compare = |what: &str, ours: String, theirs: &str| {
        if ours != theirs {
            wrong.push(format!("    {what}\n      ours      {ours}\n      llama.cpp {theirs}"));
        }
    };
    compare("tokens, BOS, EOS, separator, padding, adds BOS, adds EOS", facts.join(" "), lines[0]);
    // llama.cpp ends generation at `</s>` wherever a vocabulary has it; here only where the file calls it a control token.
    let text = vocabulary.find(b"</s>").filter(|&id| vocabulary.token_type(id) != Some(TokenType::Control));
    let ends = lines[1].split(' ').filter(|id| text.is_none_or(|text| id.parse() != Ok(text)));
    compare("ends of generation", line(vocabulary.end_of_generation()), &ends.collect::<Vec<_>>().join(" "));
    for (index, (string, lines)) in strings.iter().zip(lines[2..].chunks(3)).enumerate() {
        let what = string.iter().take(60).copied().collect::<Vec<u8>>().escape_ascii().to_string();
        let plain = tokenizer.encode(string, false, false);
        compare(&format!("{index} \"{what}\""), short(line(&plain)), lines[0]);
        let special = tokenizer.encode(string, true, true);
        let special_line = if special == plain { "=".to_owned() } else { short(line(&special)) };
        compare(&format!("{index} \"{what}\", special tokens"), special_line, lines[1]);
        // llama.cpp reads the texts of this model in the alphabet of bytes, which they are not written in.
        if name.starts_with("whitespace") {
            continue;
        }
        let back = tokenizer.detokenize(&plain, false);
        let back = if back == *string { "=".to_owned() } else { short(hex(&back)) };
        compare(&format!("{index} \"{what}\", detokenised"), back, lines[2]);
    }
    wrong
}
