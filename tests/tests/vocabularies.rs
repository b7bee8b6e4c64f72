//! The tokenizers on the vocabularies of llama.cpp's own tests (`scripts/setup_vocabularies.sh` fetches them).

mod vocabularies {
    pub mod golden;
    pub mod source;
}

use p64_std::tokenizer::Tokenizer;
use p64_tests::data::{bless, data, workspace};
use serde_json::Value;
use vocabularies::golden::{self, fnv, hex, line, strings};
use vocabularies::source::{Gguf, Vocabulary, vocabularies, vocabulary};

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";

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

fn result(wrong: &[String]) -> String {
    if wrong.is_empty() { "equal".to_owned() } else { format!("{} DIFFER", wrong.len()) }
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
        let mut wrong = Vec::new();
        for (format, tokenizer) in [("GGUF", gguf.tokenizer()), ("P64", gguf.tokenizer_of_container())] {
            match tokenizer {
                Ok(tokenizer) => wrong.extend(differences(&tokenizer, &pairs)),
                Err(error) => wrong.push(format!("    {format}: {error}")),
            }
        }
        let result = result(&wrong);
        println!("{name:<18} {model:<9} {pre:<16} {:>5}  {result}", pairs.len());
        failed += wrong.len();
        if !wrong.is_empty() {
            report.push(format!("{name}\n{}", wrong.join("\n")));
        }
    }
    assert!(failed == 0, "{failed} differences\n{}", report.join("\n"));
}

/// The strings of `tests/data/tokenizers` with every vocabulary there is: llama.cpp's, ours of the models that it has none
/// of, and some with keys changed. From the GGUF and from the container that is made of it.
#[test]
fn every_string_with_every_vocabulary() {
    let strings = strings();
    let mut all: Vec<(String, Gguf)> = vocabularies().into_iter().map(|all| (all.name, all.gguf)).collect();
    let mut own: Vec<_> =
        std::fs::read_dir(data("tokenizers")).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    own.retain(|path| path.extension().is_some_and(|extension| extension == "gguf"));
    own.sort();
    all.extend(
        own.iter().map(|path| (path.file_stem().expect("a name").to_string_lossy().into_owned(), Gguf::read(path))),
    );
    for (name, variant) in names()["variants"].as_object().expect("variants") {
        let mut gguf = vocabulary(variant[0].as_str().expect("a vocabulary"));
        for (key, value) in variant[1].as_object().expect("keys") {
            match value {
                Value::Bool(value) => gguf.set_bool(key, *value),
                value => gguf.set_str(key, value.as_str().expect("text")),
            }
        }
        all.push((name.clone(), gguf));
    }
    let (mut report, mut failed) = (Vec::new(), 0);
    println!("{:<18} {:<10} {:<16} {:>7}  result", "vocabulary", "model", "pre", "strings");
    let mut table =
        String::from("| vocabulary | model | pre | pairs | strings | result |\n|---|---|---|---:|---:|---|\n");
    let with_pairs = vocabularies().into_iter().filter_map(|all| {
        let (inp, out) = all.pairs?;
        Some((all.name, pairs(&inp, &out).len().to_string()))
    });
    let with_pairs: std::collections::HashMap<String, String> = with_pairs.collect();
    for (name, mut gguf) in all {
        let (model, pre) = gguf.names();
        if (model.as_str(), pre.as_str()) == ("gpt2", "-") {
            // llama.cpp warns and takes "default"; here it must be said.
            let error = gguf.tokenizer().expect_err("refused").to_string();
            assert!(error.starts_with("tokenizer.ggml.pre is missing: "), "{error}");
            gguf.set_str(PRE, "default");
        }
        let tokenizers = [("GGUF", gguf.tokenizer()), ("P64", gguf.tokenizer_of_container())];
        let mut wrong = Vec::new();
        for (format, tokenizer) in tokenizers {
            match tokenizer {
                Ok(tokenizer) => wrong.extend(golden::differences(&name, &tokenizer, &strings)),
                Err(error) => wrong.push(format!("    {format}: {error}")),
            }
        }
        println!("{name:<18} {model:<10} {pre:<16} {:>7}  {}", strings.len(), result(&wrong));
        let pairs = with_pairs.get(&name).map_or("", String::as_str);
        table += &format!("| {name} | `{model}` | {pre} | {pairs} | {} | {} |\n", strings.len(), result(&wrong));
        failed += wrong.len();
        if !wrong.is_empty() {
            report.push(format!("{name}\n{}", wrong.join("\n")));
        }
    }
    assert!(failed == 0, "{failed} differences\n{}", report.join("\n"));
    check_document(&table);
}

/// The table of results in `docs/tokenizers.md` is this one (`P64_BLESS=1` writes it).
fn check_document(table: &str) {
    let path = workspace("docs/tokenizers.md");
    let text = std::fs::read_to_string(&path).expect("in the repository");
    let (before, rest) = text.split_once("<!-- vocabularies -->\n").expect("a place for the table");
    let (block, after) = rest.split_once("<!-- end -->").expect("its end");
    if bless() {
        std::fs::write(path, format!("{before}<!-- vocabularies -->\n{table}<!-- end -->{after}")).expect("written");
    } else {
        assert!(block == table, "the table of docs/tokenizers.md is stale: run with P64_BLESS=1");
    }
}

fn names() -> Value {
    let json = std::fs::read(data("tokenizers/names.json")).expect("in the repository");
    serde_json::from_slice(&json).expect("well-formed")
}

/// Every name that llama.cpp knows, put into a vocabulary that has another: the same words, and so the same ids.
#[test]
fn every_pre_tokenizer() {
    let strings = strings();
    let table = std::fs::read_to_string(data("tokenizers/pre-names.tsv")).expect("in the repository");
    let (mut seen, mut wrong) = (0, Vec::new());
    let mut base = (String::new(), None);
    for row in table.lines() {
        let mut columns = row.split(' ');
        let mut column = || columns.next().expect("a column");
        let (vocabulary_name, names, bos) = (column(), column(), column());
        let hashes: Vec<&str> = columns.collect();
        assert_eq!(hashes.len(), strings.len(), "{names}");
        if base.0 != vocabulary_name {
            let mut gguf = vocabulary(vocabulary_name);
            gguf.set_str(MODEL, "gpt2");
            base = (vocabulary_name.to_owned(), Some(gguf));
        }
        let gguf = base.1.as_mut().expect("read");
        let before = wrong.len();
        for (index, name) in names.split(',').enumerate() {
            gguf.set_str(PRE, name);
            let tokenizer = gguf.tokenizer().expect("known");
            seen += 1;
            if u8::from(tokenizer.vocabulary().add_bos()).to_string() != bos {
                wrong.push(format!("{name}: BOS"));
            }
            // Names of one row differ in nothing else: the first shows it, of the others a part is looked at.
            for (string, hash) in strings.iter().zip(&hashes).step_by(if index == 0 { 1 } else { 9 }) {
                let ids = tokenizer.encode(string, false, false);
                let ours = format!("{}|{}", line(&ids), hex(&tokenizer.detokenize(&ids, false)));
                if format!("{:08x}", fnv(ours.as_bytes()) & 0xffff_ffff) != **hash {
                    let text = string.iter().take(60).copied().collect::<Vec<u8>>().escape_ascii().to_string();
                    wrong.push(format!("{name}: \"{text}\" {ids:?}"));
                }
            }
        }
        println!("{vocabulary_name:<10} {:<9} {names}", result(&wrong[before..]));
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(seen, 90, "all names but \"whitespace\", which needs a vocabulary of its own");
}
