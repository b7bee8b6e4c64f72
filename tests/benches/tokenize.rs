//! Text to ids: without allocation on the bundled model (280 bytes, with an index and without, and building the index), and
//! `p64-std`'s encoder on a megabyte with vocabularies of llama.cpp.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use p64_core::metadata::Metadata;
use p64_core::tokenizer::Vocabulary;
use p64_core::tokenizer::encode::{Options, Slot, encode};
use p64_std::tokenizer::Tokenizer;
use p64_tests::data::{data, workspace};

const TEXT: &[u8] = b"Once upon a time, there was a little girl named Lily. She loved to play outside in the park \
with her friends. One day, she saw a big red ball under a tree and wanted to play with it. Her mom said, \
\"Be careful, Lily, that is not your ball.\" Lily smiled and went home with her mom.\n";

fn main() {
    divan::main();
}

fn with_vocabulary(work: impl FnOnce(Vocabulary<'_>)) {
    let gguf = std::fs::read(data("tiny/tiny-stories-q8_0.gguf")).expect("in the repository");
    let count = u64::from_le_bytes(gguf[16..24].try_into().expect("eight bytes"));
    let (metadata, _) = Metadata::parse_pairs(&gguf[24..], count, 24).expect("well-formed");
    work(Vocabulary::read(&metadata).expect("known"));
}

fn bench_encode(bencher: Bencher<'_, '_>, vocabulary: &Vocabulary<'_>) {
    let (mut slots, mut ids) = ([Slot::default(); 64], [0; 512]);
    bencher
        .counter(BytesCount::of_slice(TEXT))
        .bench_local(|| encode(vocabulary, black_box(TEXT), Options::default(), &mut slots, &mut ids).expect("enough"));
}

#[divan::bench]
fn without_index(bencher: Bencher<'_, '_>) {
    with_vocabulary(|vocabulary| bench_encode(bencher, &vocabulary));
}

#[divan::bench]
fn with_index(bencher: Bencher<'_, '_>) {
    with_vocabulary(|vocabulary| {
        let mut memory = vec![0; vocabulary.index_len()];
        let index = vocabulary.build_index(&mut memory).expect("enough");
        bench_encode(bencher, &vocabulary.with_index(index).expect("its own"));
    });
}

#[divan::bench]
fn build_index(bencher: Bencher<'_, '_>) {
    with_vocabulary(|vocabulary| {
        let mut memory = vec![0; vocabulary.index_len()];
        bencher.bench_local(|| vocabulary.build_index(&mut memory).expect("enough").len());
    });
}

/// A mebibyte of this repository's documents.
fn documents() -> Vec<u8> {
    let mut paths: Vec<_> =
        std::fs::read_dir(workspace("docs")).expect("there").map(|e| e.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    let all: Vec<u8> = paths.iter().flat_map(|path| std::fs::read(path).expect("readable")).collect();
    all.iter().copied().cycle().take(1 << 20).collect()
}

#[divan::bench(args = ["gpt-2", "llama-bpe", "qwen2", "deepseek-llm", "gemma-4", "llama-spm", "bert-bge", "nomic-bert-moe"], sample_count = 10)]
fn vocabulary(bencher: Bencher<'_, '_>, name: &str) {
    let path = workspace(&format!("models/vocabularies/ggml-vocab-{name}.gguf"));
    let gguf = std::fs::read(path).expect("run `make vocabularies` first");
    let count = u64::from_le_bytes(gguf[16..24].try_into().expect("eight bytes"));
    let (metadata, _) = Metadata::parse_pairs(&gguf[24..], count, 24).expect("well-formed");
    let tokenizer = Tokenizer::from_metadata(&metadata).expect("known");
    let text = documents();
    bencher.counter(BytesCount::of_slice(&text)).bench_local(|| tokenizer.encode(black_box(&text), false, false).len());
}
