//! The README's example: `cargo run --release -p p64-std --example tour -- IN.gguf OUT.p64`.

use p64_std::convert::{ConvertOptions, convert_gguf};
use p64_std::map::{MapOptions, MappedContainer};
use p64_std::model::LoadedModel;
use p64_std::sample::{Sampler, SamplerParams};
use p64_std::session::{GenerateOptions, Session, SessionOptions};
use std::ops::ControlFlow;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [gguf, p64] = paths.as_slice() else { panic!("usage: tour IN.gguf OUT.p64") };

    // The container appears under its name when it is complete, or not at all.
    convert_gguf(gguf, p64, &ConvertOptions::default(), &mut |_| ())?;

    // Every check of the format and every checksum; what the container says cannot fail from here on.
    let (mapped, warnings) = MappedContainer::open(p64, &MapOptions::default())?;
    assert!(warnings.is_empty(), "our own files have no deviations");
    for tensor in mapped.container().tensors() {
        println!("{:<32} {:<6} {}", tensor.name(), tensor.dtype(), tensor.shape());
    }

    let model = LoadedModel::open(p64, &MapOptions::default())?;
    let mut session = Session::new(&model, &SessionOptions::default())?;
    let prompt = model.tokenizer().encode(b"Once upon a time", true, false);
    let options = GenerateOptions { max_tokens: 64, ..GenerateOptions::default() };
    let mut sampler = Sampler::new(SamplerParams::default())?;
    session.generate(&prompt, &options, &mut sampler, &mut |text| {
        print!("{text}");
        ControlFlow::Continue(())
    })?;
    Ok(())
}
