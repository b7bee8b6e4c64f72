//! Converts a GGUF, checks the container against it, and exports it again; with two paths, only converts:
//! `cargo run --release -p p64-std --example round_trip IN.gguf OUT.p64 [BACK.gguf]`
use p64_core::validate::Policy;
use p64_std::convert::{ConvertOptions, check_parity, convert_gguf};
use p64_std::export::export_gguf;
use p64_std::map::{MapOptions, MappedContainer};
use std::path::PathBuf;
use std::process::ExitCode;

fn run() -> p64_std::Result<bool> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [input, output, rest @ ..] = paths.as_slice() else {
        let reason = "paths are needed: IN.gguf OUT.p64 [BACK.gguf]".to_owned();
        return Err(p64_std::Error::Usage { reason });
    };
    let converted = convert_gguf(input, output, &ConvertOptions::default(), &mut |_| ())?;
    println!("{} tensors, {} bytes, {:.2?}", converted.tensors, converted.bytes, converted.duration);
    for warning in &converted.warnings {
        println!("warning: {warning}");
    }
    let [back, ..] = rest else { return Ok(true) };
    let strict = MapOptions { policy: Policy::Strict, ..MapOptions::default() };
    let (opened, _) = MappedContainer::open(output, &strict)?;
    println!("strict: {} tensors verified", opened.container().tensor_count());
    let parity = check_parity(input, output, &mut |_| ())?;
    println!("parity: {} tensors, {} differences", parity.tensors, parity.differences.len());
    let exported = export_gguf(output, back, &mut |_| ())?;
    for file in &exported.files {
        println!("{}  {}", file.sha256, file.path.display());
    }
    println!("identical: {:?}, {:.2?}", exported.identical, exported.duration);
    Ok(parity.is_equal() && exported.identical == Some(true))
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}
