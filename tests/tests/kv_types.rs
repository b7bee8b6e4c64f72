//! Caches of keys and values in f16 and q8_0 against llama.cpp's, on conformance models with F32 weights, where nothing but
//! the cache is rounded. The goldens are made by `scripts/conformance/kv.py`.

use p64_core::forward::{KvType, KvTypes};
use p64_core::kernel::Activations;
use p64_std::Error;
use p64_std::map::MapOptions;
use p64_std::model::LoadedModel;
use p64_std::session::{Session, SessionOptions};
use p64_tests::conformance::Recipe;
use p64_tests::data::data;

const MODELS: [&str; 3] = ["llama-grouped-heads", "gemma3-linear-scaling", "qwen3-head-norms"];

const TYPES: [KvTypes; 3] = [
    KvTypes { keys: KvType::F16, values: KvType::F16 },
    KvTypes { keys: KvType::Q8_0, values: KvType::F16 },
    KvTypes { keys: KvType::Q8_0, values: KvType::Q8_0 },
];

/// How far a logit may be from llama.cpp's with the same types, relative to the largest. llama.cpp rounds queries to the
/// keys' type as well, so this is the size of what rounding does to these models, whose attention is sharp. A block in the
/// wrong place moves logits by their own size.
fn bar(types: KvTypes) -> f64 {
    if types.keys == KvType::Q8_0 || types.values == KvType::Q8_0 { 8e-2 } else { 2e-3 }
}

fn with_model<R>(recipe: &Recipe, test: impl FnOnce(&LoadedModel) -> R) -> R {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, recipe.file()).expect("written");
    test(&LoadedModel::open(&path, &MapOptions::default()).expect("opens"))
}

/// Logits of the golden's positions, and those after the prompt in pieces on two threads.
fn logits(recipe: &Recipe, model: &LoadedModel, kv: KvTypes) -> (Vec<f32>, Vec<f32>) {
    let options = SessionOptions {
        context: Some(recipe.context),
        threads: 1,
        activations: Activations::F32,
        kv,
        ..SessionOptions::default()
    };
    let all = Session::new(model, &options).expect("fits").logits_of_all(&recipe.prompt).expect("runs");
    let rows = recipe.at.iter().flat_map(|at| &all[(at - 1) * recipe.vocabulary..at * recipe.vocabulary]);
    let pieces = SessionOptions { threads: 2, batch: 7, ..options };
    let mut session = Session::new(model, &pieces).expect("fits");
    (rows.copied().collect(), session.prefill(&recipe.prompt).expect("runs").to_vec())
}

fn golden(name: &str, KvTypes { keys, values }: KvTypes) -> Vec<f32> {
    let bytes = std::fs::read(data(&format!("kv/{name}-{keys}-{values}.f32"))).expect("the golden is there");
    bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
}

fn largest(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    differences.map(|d| if d.is_nan() { f64::INFINITY } else { d }).fold(0.0, f64::max)
}

#[expect(clippy::cast_precision_loss, reason = "some thousand")]
fn rms(a: &[f32], b: &[f32]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
    (squares.sum::<f64>() / a.len() as f64).sqrt()
}

#[test]
fn rounded_caches_give_what_llama_cpps_do() {
    println!("model                    keys  values  from llama.cpp's  bar    rms      llama.cpp's");
    let mut failed = Vec::new();
    for name in MODELS {
        let recipe = Recipe::load(name);
        let plain = recipe.golden();
        with_model(&recipe, |model| {
            for types in TYPES {
                let (ours, last) = logits(&recipe, model, types);
                let theirs = golden(name, types);
                let (off, bar) = (largest(&ours, &theirs) / recipe.max_logit(), bar(types));
                let (own, their_own) = (rms(&ours, &plain), rms(&theirs, &plain));
                let KvTypes { keys, values } = types;
                println!("{name:24} {keys:5} {values:7} {off:.1e}           {bar:.0e}   {own:.1e}  {their_own:.1e}");
                // Keys and values are rounded alike, queries by llama.cpp alone: about as near to the result without
                // rounding as theirs, and not as near as if nothing were rounded.
                let rounds = largest(&ours, &plain) / recipe.max_logit() > 1e-5;
                if !(off <= bar && own <= 1.25 * their_own && rounds) {
                    failed.push(format!("{name} {keys} {values}"));
                }
                let bits = |logits: &[f32]| logits.iter().map(|logit| logit.to_bits()).collect::<Vec<_>>();
                let end = bits(&ours[ours.len() - recipe.vocabulary..]);
                assert_eq!(end, bits(&last), "{name} {keys} {values}: the batch or the threads show");
            }
        });
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn heads_that_are_no_blocks_are_refused_with_a_sentence() {
    let recipe = Recipe::load("llama-heads-wider-than-the-model");
    with_model(&recipe, |model| {
        let session =
            |kv: KvTypes| Session::new(model, &SessionOptions { kv, ..SessionOptions::default() }).map(|_| ());
        assert!(session(KvType::F16.into()).is_ok());
        for kv in [TYPES[1], KvTypes { keys: KvType::F32, values: KvType::Q8_0 }] {
            let error = session(kv).expect_err("heads of 80");
            assert!(matches!(error, Error::Usage { .. }));
            assert!(error.to_string().contains("this model's have 80; choose f16 or f32"), "{error}");
        }
    });
}
