//! The arguments that `run` and `bench` share: how a model is opened and computed with.

use crate::failure::Result;
use crate::output::{Ui, number};
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
