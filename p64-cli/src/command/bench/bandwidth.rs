//! `p64 bench --bandwidth`: how fast the machine reads memory.

use crate::failure::Result;
use crate::output::Ui;
use p64_std::bandwidth::{self, Bandwidth};
use serde::Serialize;

/// Passes where bandwidth is what was asked for.
const PASSES: usize = 21;

/// Passes in front of the tests of a model: the whole takes a third of a second.
const QUICK_PASSES: usize = 7;

#[derive(Debug, Serialize)]
struct Report {
    threads: usize,
    bytes: usize,
    median_gb_s: f64,
    best_gb_s: f64,
    samples_gb_s: Vec<f64>,
    huge_pages: Option<String>,
}

pub fn run(threads: usize, ui: &Ui) -> Result<u8> {
    let found = bandwidth::measure(threads, bandwidth::uncached_bytes(), PASSES)?;
    if ui.json() {
        ui.object(&Report {
            threads: found.threads,
            bytes: found.bytes,
            median_gb_s: found.median() / 1e9,
            best_gb_s: found.best() / 1e9,
            samples_gb_s: found.passes.iter().map(|rate| rate / 1e9).collect(),
            huge_pages: bandwidth::huge_pages(),
        })?;
    } else {
        ui.text(&sentence(&found))?;
    }
    Ok(0)
}

/// In front of the tests of a model.
pub fn quick(threads: usize) -> Result<Bandwidth> {
    Ok(bandwidth::measure(threads, bandwidth::uncached_bytes(), QUICK_PASSES)?)
}

/// A line that says what was found and how.
pub fn sentence(found: &Bandwidth) -> String {
    let (median, best, mib) = (found.median() / 1e9, found.best() / 1e9, found.bytes >> 20);
    let threads = if found.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", found.threads) };
    let pages = bandwidth::huge_pages().map_or_else(String::new, |state| format!(", huge pages: {state}"));
    let passes = found.passes.len();
    format!("  memory: {median:.1} GB/s read by {threads}, best {best:.1}, {passes} passes over {mib} MiB{pages}\n")
}
