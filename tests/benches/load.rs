//! From a file's name to a model that is ready for its first forward pass: `cargo bench -p p64-tests --bench load`, after
//! `make model`. The page cache is warm; each container is made of its GGUF first.
//!
//! `touch` is what any reader of the whole file pays: a new mapping, and one byte of each of its pages.

use divan::{Bencher, black_box};
use p64_core::validate::Integrity;
use p64_std::convert::{ConvertOptions, convert_gguf};
use p64_std::map::{MapOptions, MappedContainer, Mapping};
use p64_std::model::LoadedModel;
use p64_std::session::{Session, SessionOptions};
use p64_std::tokenizer::Tokenizer;
use p64_tests::data::workspace;
use std::path::PathBuf;

const MODELS: [&str; 2] = ["smollm2-135m-q4_1", "gemma3-270m-q4_k_m"];
const LAZY: MapOptions =
    MapOptions { policy: p64_core::validate::Policy::Compatible, integrity: Integrity::Lazy, threads: 0 };

fn main() {
    divan::main();
}

fn container(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("p64-bench-load-{name}.p64"));
    let gguf = workspace(&format!("models/{name}.gguf"));
    convert_gguf(&gguf, &path, &ConvertOptions::default(), &mut |_| ()).expect("run `make model` first");
    path
}

#[divan::bench(args = MODELS)]
fn touch(bencher: Bencher<'_, '_>, name: &str) {
    let path = container(name);
    bencher.bench_local(|| {
        let mapping = Mapping::open(&path).expect("there");
        mapping.chunks(4096).map(|page| u64::from(page[0])).sum::<u64>()
    });
}

#[divan::bench(args = MODELS)]
fn open_lazy(bencher: Bencher<'_, '_>, name: &str) {
    let path = container(name);
    bencher.bench_local(|| black_box(MappedContainer::open(&path, &LAZY).expect("valid")).0.container().tensor_count());
}

#[divan::bench(args = MODELS)]
fn open_full(bencher: Bencher<'_, '_>, name: &str) {
    let path = container(name);
    bencher.bench_local(|| {
        black_box(MappedContainer::open(&path, &MapOptions::default()).expect("valid")).0.container().tensor_count()
    });
}

#[divan::bench(args = MODELS)]
fn tokenizer(bencher: Bencher<'_, '_>, name: &str) {
    let path = container(name);
    let (mapped, _) = MappedContainer::open(&path, &LAZY).expect("valid");
    let metadata = mapped.container().metadata().expect("valid").expect("there");
    bencher.bench_local(|| Tokenizer::from_metadata(&metadata).expect("known").vocab_size());
}

/// The model, a session and the tokens of a prompt.
fn ready(path: &std::path::Path, options: &MapOptions) -> usize {
    let model = LoadedModel::open(path, options).expect("a model");
    let session = Session::new(&model, &SessionOptions::default()).expect("memory");
    model.tokenizer().encode(b"Once upon a time, there was", true, false).len() + session.context()
}

#[divan::bench(args = MODELS)]
fn until_first_forward_pass_lazy(bencher: Bencher<'_, '_>, name: &str) {
    let path = container(name);
    bencher.bench_local(|| ready(&path, &LAZY));
}

#[divan::bench(args = MODELS)]
fn until_first_forward_pass_full(bencher: Bencher<'_, '_>, name: &str) {
    let path = container(name);
    bencher.bench_local(|| ready(&path, &MapOptions::default()));
}
