//! The arguments that `run` and `bench` share: how a model is opened and computed with.

use crate::failure::Result;
use crate::output::{Ui, number};
use p64_core::forward::{KvType, KvTypes};
use p64_core::kernel::Activations;
use p64_std::map::MapOptions;
use p64_std::model::LoadedModel;
use std::path::Path;
use std::time::{Duration, Instant};

/// How a model computes.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ComputeArgs {
    /// Threads; 0 for one per core
    #[arg(short, long, value_name = "THREADS", default_value_t = 0)]
    pub threads: usize,
    /// Activations: f32 is exact; auto rounds them where the weights are integers
    #[arg(long, value_enum, default_value = "auto")]
    activations: Precision,
    /// Types of the cached keys and values: f32, f16 or q8_0, or two with a comma between them
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = kv_types)]
    pub kv: KvTypes,
}

/// `f16` for both, `q8_0,f16` for keys and values.
fn kv_types(text: &str) -> std::result::Result<KvTypes, String> {
    let kind = |name: &str| {
        let known = KvType::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        KvType::from_name(name).ok_or_else(|| format!("\"{name}\" is no type of a cache; there are {known}"))
    };
    match text.split_once(',') {
        Some((keys, values)) => Ok(KvTypes { keys: kind(keys)?, values: kind(values)? }),
        None => kind(text).map(KvTypes::from),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Precision {
    F32,
    Auto,
}

impl ComputeArgs {
    pub const fn activations(&self) -> Activations {
        match self.activations {
            Precision::F32 => Activations::F32,
            Precision::Auto => Activations::Quantized,
        }
    }
}

/// Opens a model, verified completely, and says so.
pub fn open(path: &Path, ui: &Ui) -> Result<(LoadedModel, Duration)> {
    let began = Instant::now();
    let model = LoadedModel::open(path, &MapOptions::default())?;
    let time = began.elapsed();
    model.warnings().iter().for_each(|warning| ui.warn(warning));
    let (format, size) = (model.format(), number::bytes(model.file_size()));
    let name = path.file_name().unwrap_or_default().display();
    ui.note(format_args!("{name}: {format}, {size}, {}, loaded in {}", model.description(), number::duration(time)));
    Ok((model, time))
}
