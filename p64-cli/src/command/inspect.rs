//! `p64 inspect`: what is in a file.

use crate::failure::Result;
use crate::input::Input;
use crate::inspect::{self, Parts};
use crate::output::Ui;
use p64_core::validate::Integrity;
use p64_std::map::MapOptions;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  p64 inspect model.p64                     a summary
  p64 inspect model.p64 --tensors | less    every tensor
  p64 inspect model.gguf --metadata --full  every key with its whole value
  p64 inspect Llama-3-8B/ --tensors         every tensor of all safetensors files of a folder
  p64 inspect --json model.p64 | jq .space

Structure and metadata are checked, the tensors' checksums are not: see `p64 verify`.";

/// Show what is in a file: header, sections, tensors, layers, metadata
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file: .p64, GGUF, safetensors, its index, or a folder with safetensors
    file: PathBuf,
    /// Every section with its place
    #[arg(long)]
    sections: bool,
    /// Every layer as the unit that is loaded together
    #[arg(long)]
    layers: bool,
    /// Every tensor: type, shape, place, checksum, role, name
    #[arg(long)]
    tensors: bool,
    /// The key-value pairs of the model and of the conversion
    #[arg(long)]
    metadata: bool,
    /// Do not shorten long values
    #[arg(long)]
    full: bool,
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let report = describe(&args.file, args.full)?;
    if ui.json() {
        ui.object(&report)?;
        return Ok(0);
    }
    let Args { sections, layers, tensors, metadata, .. } = *args;
    ui.text(&inspect::render(&report, Parts { sections, layers, tensors, metadata }))?;
    Ok(0)
}

/// The description of a file, opened lazily under the compatible policy.
pub fn describe(path: &Path, full: bool) -> Result<inspect::Report> {
    let options = MapOptions { integrity: Integrity::Lazy, ..MapOptions::default() };
    #[cfg(feature = "remote")]
    if p64_std::remote::is_url(path) {
        use p64_std::map::MappedSet;
        use p64_std::remote::{RemoteSet, label};
        let remote = RemoteSet::open(&path.to_string_lossy(), options.policy)?;
        let (set, warnings) = MappedSet::open(remote.path(), &options)?;
        return Ok(inspect::describe_p64(&label(path), &set, &warnings, full)?);
    }
    match Input::open(path, &options)? {
        Input::P64(set, warnings) => Ok(inspect::describe_p64(path, &set, &warnings, full)?),
        Input::Safetensors(set) => Ok(inspect::describe_safetensors(path, &set, full)),
        Input::Gguf(mapped) => Ok(inspect::describe_gguf(path, mapped.gguf(), full)),
    }
}
