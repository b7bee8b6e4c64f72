//! Binding and running refuse, with the right code, what they cannot do: the codes that no container check can give.

use p64_core::forward::{Config, KvCache, Layer, Logits, Model, Options, Scratch, forward, kv, scratch};
use p64_core::quant::ActivationBlock;
use p64_core::{Code, Container, Error, Place};
use p64_tests::assemble::Assembly;
use p64_tests::toy::{self, Area};

/// Opens, binds and runs one pass of `tokens` over a cache of four positions.
fn run(assembly: &Assembly, tokens: &[u32]) -> Result<Vec<f32>, Error> {
    let file = assembly.build();
    let container = Container::open(&file)?;
    let metadata = container.metadata()?.expect("the toy has metadata");
    let config = Config::read(&metadata)?;
    config.check_hparams(container.hparams())?;
    let layers = (0..config.n_layer()).map(|layer| Layer::bind(&container, &config, layer));
    let model = Model::new(&container, config, layers.collect::<Result<Vec<_>, _>>()?)?;
    let need = scratch::required_len(&config, 8, 4);
    let (mut floats, mut blocks) = (vec![0.0; need.floats], vec![ActivationBlock::ZERO; need.activations]);
    let mut kv = KvCache::new(&config, 4, vec![0.0; kv::required_len(&config, 4)])?;
    let mut scratch = Scratch::new(&config, 8, 4, &mut floats, &mut blocks)?;
    let mut logits = vec![0.0; model.n_vocab()];
    forward(&model, tokens, &mut kv, &mut scratch, &mut Options::default(), Logits::Last(&mut logits))?;
    Ok(logits)
}

fn with(change: impl FnOnce(&mut Assembly)) -> Error {
    let mut assembly = toy::model(&toy::metadata());
    change(&mut assembly);
    run(&assembly, &[0]).expect_err("cannot run")
}

fn with_metadata(area: &Area) -> Error {
    run(&toy::model(area), &[0]).expect_err("cannot run")
}

/// The toy's metadata with the value of a `u32` key replaced, found by its bytes.
fn changed(key: &str, value: u32) -> Error {
    let mut assembly = toy::model(&toy::metadata());
    let area = &mut assembly.tensors.iter_mut().find(|tensor| tensor.name == b"p64.metadata").expect("there").bytes;
    let at = area.windows(key.len()).position(|window| window == key.as_bytes()).expect("there") + key.len() + 4;
    area[at..at + 4].copy_from_slice(&value.to_le_bytes());
    run(&assembly, &[0]).expect_err("cannot run")
}

#[test]
fn the_toy_itself_runs() {
    let logits = run(&toy::model(&toy::metadata()), &[0, 1, 2]).expect("runs");
    assert!(logits.iter().all(|logit| logit.is_finite()) && logits.iter().any(|logit| *logit != 0.0));
}

#[test]
fn models_that_cannot_run() {
    let mut unknown = Area::default();
    unknown.str("general.architecture", "mamba");
    assert_eq!(with_metadata(&unknown).code, Code::UnsupportedArchitecture);
    let mut bare = Area::default();
    bare.str("general.architecture", "llama");
    assert_eq!(with_metadata(&bare).code, Code::MissingKey);
    assert_eq!(
        with_metadata(toy::metadata().f32("llama.final_logit_softcapping", 30.0)).code,
        Code::UnsupportedFeature
    );

    let missing = with(|a| drop(a.tensors.remove(3)));
    assert_eq!((missing.code, missing.place), (Code::MissingTensor, Place::Layer(0)));
    let bias = with(|a| {
        let mut bias = a.tensors[0].clone();
        bias.name = b"blk.0.attn_norm.bias".to_vec();
        (bias.role, bias.layer) = (0xfffe, 2);
        let at = a.tensors.len() - 1;
        a.tensors.insert(at, bias);
    });
    assert_eq!(bias.code, Code::UnsupportedFeature);
    // Which of the two is meant? Taking either in silence may be wrong text.
    let twice = with(|a| {
        let mut second = a.tensors[1].clone();
        second.name = b"blk.0.attn_q.other".to_vec();
        a.tensors.insert(2, second);
    });
    assert_eq!(twice.code, Code::UnsupportedFeature);
    let shape = with(|a| {
        a.tensors[2].dims = vec![32, 8];
        a.tensors[2].bytes.truncate(8 * 34);
    });
    assert_eq!((shape.code, shape.place), (Code::WrongShape, Place::Tensor(2)));
    let dtype = with(|a| {
        // The output norm as 32-bit integers: the right shape, of a type no kernel reads.
        let norm = a.tensors.iter_mut().find(|tensor| tensor.name == b"output_norm.weight").expect("there");
        norm.dtype = 26;
    });
    assert_eq!(dtype.code, Code::UnsupportedDType);
}

#[test]
fn numbers_out_of_range_and_contradictions() {
    assert_eq!(changed("llama.attention.head_count_kv", 3).code, Code::MetadataRange);
    assert_eq!(changed("llama.attention.head_count", 0).code, Code::MetadataRange);
    let contradiction = with(|a| a.hparams[1] = 64);
    assert_eq!(
        (contradiction.code, contradiction.expected, contradiction.found),
        (Code::MetadataContradiction, 32, 64)
    );
}

#[test]
fn calls_that_cannot_be() {
    let toy = toy::model(&toy::metadata());
    assert_eq!(run(&toy, &[0, 99]).expect_err("no such token").code, Code::TokenRange);
    assert_eq!(run(&toy, &[0; 5]).expect_err("five in four").code, Code::ContextFull);
    assert_eq!(run(&toy, &[]).expect_err("nothing to pass").code, Code::LengthMismatch);
}
