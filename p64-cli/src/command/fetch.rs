//! `p64 fetch`: a container, or some of its tensors, from a server.

use crate::failure::{Failure, Result};
use crate::glob::Glob;
use crate::output::{Ui, number, progress::Progress};
use p64_core::container::TensorInfo;
use p64_core::validate::Policy;
use p64_std::export::{self, TensorOptions};
use p64_std::remote::{RemoteContainer, Traffic};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  p64 inspect https://example.org/model.p64                       what is in it, from a few requests
  p64 fetch https://example.org/model.p64 model.p64               all of it, checked before it appears
  p64 fetch https://example.org/model.p64 norms.npz --tensors '*_norm*'
  p64 fetch https://example.org/model.p64 layers.npz --layers 0..2

The server must answer requests for ranges, as object stores and most web servers do. A signed address is enough for
a private object. OUT appears whole or not at all.";

/// Fetch a container from a server, or some of its tensors for NumPy
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The container's address, https:// or http://
    url: String,
    /// The file to write, .p64 for all of it or .npz for tensors
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Tensors of names like this (`*` for any characters, `?` for one); may be repeated
    #[arg(long, value_name = "PATTERN")]
    tensors: Vec<Glob>,
    /// Tensors of these layers, A..B without B, or one layer
    #[arg(long, value_name = "A..B", value_parser = layers)]
    layers: Option<(u32, u32)>,
}

fn layers(text: &str) -> std::result::Result<(u32, u32), String> {
    let number = |text: &str| text.parse::<u32>().map_err(|_| "write A..B or one number".to_owned());
    match text.split_once("..") {
        Some((first, end)) => {
            let (first, end) = (number(first)?, number(end)?);
            if first < end { Ok((first, end)) } else { Err("the first layer is not before the end".to_owned()) }
        }
        None => number(text).map(|layer| (layer, layer.saturating_add(1))),
    }
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    let start = Instant::now();
    let extension = args.output.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    let some = !args.tensors.is_empty() || args.layers.is_some();
    let traffic = match (extension.as_deref(), some) {
        (Some("p64"), false) => whole(args, ui)?,
        (Some("npz"), true) => tensors(args, ui)?,
        (Some("npz"), false) => {
            return Err(Failure::Usage("say which tensors: --tensors PATTERN or --layers A..B".to_owned()));
        }
        (Some("p64"), true) => {
            let reason = "some tensors are no container; end the name in .npz, or leave --tensors and --layers out";
            return Err(Failure::Usage(format!("{}: {reason}", args.output.display())));
        }
        _ => return Err(Failure::Usage(format!("{}: end the name in .p64 or .npz", args.output.display()))),
    };
    let bytes = std::fs::metadata(&args.output).map_or(0, |about| about.len());
    if ui.json() {
        ui.object(&json!({
            "output": args.output.display().to_string(),
            "bytes": bytes,
            "requests": traffic.requests,
            "fetched_bytes": traffic.bytes,
            "seconds": start.elapsed().as_secs_f64(),
        }))?;
    } else if !ui.quiet() {
        ui.line(format_args!("{}: {}", args.output.display(), number::bytes(bytes)))?;
        let (requests, fetched) = (number::plural(traffic.requests, "request"), number::bytes(traffic.bytes));
        ui.line(format_args!("  fetched   {fetched} in {requests}, {}", number::duration(start.elapsed())))?;
    }
    Ok(0)
}

fn open(args: &Args, ui: &Ui) -> Result<RemoteContainer> {
    let remote = RemoteContainer::open(&args.url, Policy::Compatible)?;
    remote.warnings().iter().for_each(|warning| ui.warn(format_args!("{}: {warning}", remote.label().display())));
    Ok(remote)
}

/// Files of the set that the container is one of; 1 for a whole one.
fn files_of_set(remote: &RemoteContainer) -> u64 {
    let keys = remote.container().provenance().ok().flatten();
    keys.and_then(|keys| keys.get("split.count")?.as_u64()).unwrap_or(1)
}

fn whole(args: &Args, ui: &Ui) -> Result<Traffic> {
    let mut remote = open(args, ui)?;
    let count = files_of_set(&remote);
    if count > 1 {
        ui.note(format_args!(
            "this is one of the {count} files of a model: fetch the others too, under their own names"
        ));
    }
    let bar = Progress::new(ui, "fetching");
    remote.download(&args.output, &mut |step| bar.set(step.done, step.total))?;
    Ok(remote.traffic())
}

fn tensors(args: &Args, ui: &Ui) -> Result<Traffic> {
    let remote = open(args, ui)?;
    let count = files_of_set(&remote);
    if count > 1 {
        let reason = format!("this is one of the {count} files of a model: fetch each of them, then p64 export");
        return Err(Failure::Input { path: remote.label().to_owned(), reason });
    }
    let wanted = |info: &TensorInfo<'_>| {
        let by_name = args.tensors.iter().any(|glob| glob.matches(info.name()));
        let by_layer = args.layers.is_some_and(|(first, end)| (first..end).contains(&info.manifold_idx()));
        (by_name || by_layer) && !info.name().starts_with("p64.")
    };
    let names: Vec<String> = remote.container().tensors().filter(wanted).map(|info| info.name().to_owned()).collect();
    if names.is_empty() {
        let reason = "no tensor is of these names or layers; p64 inspect --tensors lists them".to_owned();
        return Err(Failure::Input { path: remote.label().to_owned(), reason });
    }
    let kept = {
        let bar = Progress::new(ui, "fetching");
        remote.keep(&wanted, &mut |step| bar.set(step.done, step.total))?
    };
    let mut options = TensorOptions::default();
    options.select = names;
    let report = export::export_npz(kept.path(), &args.output, &options, &mut |_| ())
        .map_err(|error| renamed(error, kept.path(), Path::new(&args.url)))?;
    report.notes.iter().for_each(|note| ui.note(note));
    Ok(kept.traffic())
}

/// An error about the local file is one about the remote one.
fn renamed(error: p64_std::Error, local: &Path, url: &Path) -> p64_std::Error {
    match error {
        p64_std::Error::Core { path, source } if path == local => {
            let path = p64_std::remote::label(url);
            p64_std::Error::Core { path, source }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_layers() {
        assert_eq!(layers("0..2"), Ok((0, 2)));
        assert_eq!(layers("7"), Ok((7, 8)));
        for bad in ["", "2..2", "3..1", "a..b", "..2", "-1"] {
            assert!(layers(bad).is_err(), "{bad}");
        }
    }
}
