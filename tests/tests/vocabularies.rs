//! The tokenizers on the vocabularies of llama.cpp's own tests (`scripts/setup_vocabularies.sh` fetches them).

mod vocabularies {
    pub mod source;
}

use p64_std::tokenizer::Tokenizer;
use vocabularies::source::{Vocabulary, vocabularies};

/// The texts and ids of llama.cpp's own test: texts with a line between them, ids one line per text.
fn pairs(inp: &[u8], out: &str) -> Vec<(Vec<u8>, Vec<u32>)> {
    const BETWEEN: &[u8] = b"\n__ggml_vocab_test__\n";
    let mut texts = Vec::new();
    let mut rest = inp;
    while let Some(at) = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
        texts.push(rest[..at].to_vec());
        rest = &rest[at + BETWEEN.len()..];
    }
    if !rest.is_empty() {
        texts.push(rest.to_vec());
    }
    let ids = out.lines().map(|line| line.split_whitespace().map(|id| id.parse().expect("an id")).collect());
    let ids: Vec<Vec<u32>> = ids.collect();
    assert_eq!(texts.len(), ids.len(), "as many texts as lines of ids");
    texts.into_iter().zip(ids).collect()
}

fn differences(tokenizer: &Tokenizer, pairs: &[(Vec<u8>, Vec<u32>)]) -> Vec<String> {
    let wrong = |(text, ids): &(Vec<u8>, Vec<u32>)| {
        let ours = tokenizer.encode(text, false, false);
        (ours != *ids)
            .then(|| format!("    \"{}\"\n      ours      {ours:?}\n      llama.cpp {ids:?}", text.escape_ascii()))
    };
    pairs.iter().filter_map(wrong).collect()
}

#[test]
fn every_pair_of_llama_cpp() {
    let mut report = Vec::new();
    let mut failed = 0;
    println!("{:<18} {:<9} {:<16} {:>5}  result", "vocabulary", "model", "pre", "pairs");
    for Vocabulary { name, gguf, pairs: files } in vocabularies() {
        let (model, pre) = gguf.names();
        let Some((inp, out)) = files else {
            println!("{name:<18} {model:<9} {pre:<16} {:>5}  no pairs", "-");
            continue;
        };
        let pairs = pairs(&inp, &out);
        let wrong = match gguf.tokenizer() {
            Ok(tokenizer) => differences(&tokenizer, &pairs),
            Err(error) => vec![format!("    {error}")],
        };
        let result = if wrong.is_empty() { "equal".to_owned() } else { format!("{} DIFFER", wrong.len()) };
        println!("{name:<18} {model:<9} {pre:<16} {:>5}  {result}", pairs.len());
        failed += wrong.len();
        if !wrong.is_empty() {
            report.push(format!("{name}\n{}", wrong.join("\n")));
        }
    }
    assert!(failed == 0, "{failed} differences\n{}", report.join("\n"));
}
