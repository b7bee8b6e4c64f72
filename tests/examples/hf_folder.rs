//! Compares what this workspace makes of a Hugging Face folder with the GGUF that another converter made of it.
//!
//! ```text
//! hf_folder FOLDER GGUF [PROMPT.json LOGITS.f32 ...]
//! ```
//!
//! Tensors are compared byte for byte, keys by their values; then the folder is converted, and the logits after the prompt are
//! compared with those of each file, relative to the largest. Exit status 1 when a tensor differs or a logit by more than 1e-4.

use p64_core::kernel::Activations;
use p64_std::convert::{ProduceOptions, convert};
use p64_std::hf;
use p64_std::map::MapOptions;
use p64_std::model::LoadedModel;
use p64_std::safetensors::SafetensorsSet;
use p64_std::session::{Session, SessionOptions};
use p64_std::source::{OpenSource, Payload};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, gguf, rest @ ..] = arguments.as_slice() else {
        return Err("usage: hf_folder FOLDER GGUF [PROMPT.json LOGITS.f32 ...]".into());
    };
    let (folder, gguf) = (Path::new(folder), Path::new(gguf));
    let mut problems = 0;
    {
        let set = SafetensorsSet::open(folder)?;
        let model = hf::source_model(&set, folder)?;
        for note in &model.notes {
            println!("note: {note}");
        }
        let other = OpenSource::open(gguf)?;
        let mut theirs: BTreeMap<String, _> =
            other.tensors().into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect();
        let (mut count, mut bytes) = (0, 0);
        for tensor in &model.tensors {
            let Some(their) = theirs.remove(&tensor.name) else {
                println!("{}: the GGUF has none", tensor.name);
                problems += 1;
                continue;
            };
            let about =
                |payload: &dyn Payload| (payload.dtype().name(), payload.shape().dims().to_vec(), payload.len());
            if about(&*tensor.payload) != about(&*their.payload) || !same(&*tensor.payload, &*their.payload)? {
                println!("{}: {:?} and {:?} differ", tensor.name, about(&*tensor.payload), about(&*their.payload));
                problems += 1;
            }
            (count, bytes) = (count + 1, bytes + tensor.payload.len());
        }
        for name in theirs.keys() {
            println!("{name}: the folder gives none");
            problems += 1;
        }
        println!("{count} tensors, {bytes} bytes compared");
        let area = model.metadata.as_ref().map(p64_std::write::Pairs::to_area).unwrap_or_default();
        let ours = p64_core::metadata::Metadata::parse(&area, 0).map_err(|error| error.to_string())?;
        if let Some(theirs) = other.metadata()? {
            for (key, value) in theirs.iter() {
                if ours.get(key) != Some(value) {
                    println!("key {key}: differs or is missing");
                }
            }
            println!("{} keys, {} of the GGUF", ours.len(), theirs.len());
        }
        if !rest.is_empty() {
            let out = tempfile::tempdir()?;
            let path = out.path().join("model.p64");
            convert(&model, &set.paths(), &path, &ProduceOptions::default(), &mut |_| ())?;
            problems += logits(&path, rest)?;
        }
    }
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether two payloads of one length have the same bytes.
fn same(a: &dyn Payload, b: &dyn Payload) -> p64_std::Result<bool> {
    const PIECE: usize = 1 << 20;
    let (mut left, mut right) = (vec![0u8; PIECE], vec![0u8; PIECE]);
    let mut at = 0;
    while at < a.len() {
        let len = usize::try_from(a.len() - at).unwrap_or(PIECE).min(PIECE);
        a.read_at(at, &mut left[..len])?;
        b.read_at(at, &mut right[..len])?;
        if left[..len] != right[..len] {
            return Ok(false);
        }
        at += len as u64;
    }
    Ok(true)
}

/// How many of the files have other logits.
fn logits(path: &Path, rest: &[String]) -> Result<usize, Box<dyn std::error::Error>> {
    let [prompt, files @ ..] = rest else { return Ok(0) };
    let prompt: Vec<u32> = serde_json::from_slice(&std::fs::read(prompt)?)?;
    let model = LoadedModel::open(path, &MapOptions::default())?;
    let options = SessionOptions { context: Some(256), activations: Activations::F32, ..SessionOptions::default() };
    let mut session = Session::new(&model, &options)?;
    let own = session.prefill(&prompt)?.to_vec();
    let mut problems = 0;
    for file in files {
        let bytes = std::fs::read(file)?;
        let expected: Vec<f32> = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let largest = expected.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        let apart = own.iter().zip(&expected).fold(0.0f32, |apart, (a, b)| apart.max((a - b).abs())) / largest;
        println!("{file}: {} logits, the largest {largest:.3}, {apart:.1e} apart", expected.len());
        problems += usize::from(apart > 1e-4 || apart.is_nan() || own.len() != expected.len());
    }
    Ok(problems)
}
