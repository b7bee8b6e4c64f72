//! `p64 bench`: speed of prompt and generation, as llama-bench defines them.

mod bandwidth;

use crate::command::session::{self, ComputeArgs};
use crate::failure::{Failure, Result};
use crate::output::table::{Align, Table};
use crate::output::{Ui, memory};
use p64_core::kernel::Level;
use p64_std::bandwidth::Bandwidth;
use p64_std::model::LoadedModel;
use p64_std::session::{Session, SessionOptions};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Positions that fill the cache at once.
const FILL: usize = 512;

const EXAMPLES: &str = "\
Examples:
  p64 bench model.p64
  p64 bench model.p64 -p 512 -n 128 -t 1 -r 5
  p64 bench model.p64 --level avx2
  p64 bench model.p64 -p 0 -n 32 -d 4096
  p64 bench --json model.p64 | jq .tg_tok_s
  p64 bench --bandwidth -t 1

pp: N prompt tokens in one batch, from an empty cache. tg: N tokens one by one, from an empty
cache. With -d both begin behind so many positions, which are not timed. Each is run once to
warm up and then -r times; shown are median and standard deviation.
GB/s is the bytes of weights that one token reads, times the tokens per second; beside it stands
what part that is of the GB/s at which the same threads read memory, measured before the tests.";

/// Measure prompt (pp) and generation (tg) speed
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The model, .p64 or GGUF
    #[arg(required_unless_present = "bandwidth")]
    model: Option<PathBuf>,
    /// Prompt tokens; 0 to leave this test out
    #[arg(short = 'p', long, value_name = "N", default_value_t = 512)]
    prompt: usize,
    /// Generated tokens; 0 to leave this test out
    #[arg(short = 'n', long, value_name = "N", default_value_t = 128)]
    tokens: usize,
    /// Positions in the cache before each test begins
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    depth: usize,
    /// Repetitions
    #[arg(short, long, value_name = "N", default_value_t = 5)]
    repetitions: usize,
    /// Use no better vector instructions than these; the results are the same
    #[arg(long, value_name = "LEVEL")]
    level: Option<LevelArg>,
    /// Measure how fast the threads read memory, and nothing else
    #[arg(long, conflicts_with = "model")]
    bandwidth: bool,
    /// Do not measure that before the tests; the peak memory is then the model's alone
    #[arg(long, conflicts_with = "bandwidth")]
    no_bandwidth: bool,
    #[command(flatten)]
    compute: ComputeArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum LevelArg {
    Scalar,
    Avx2,
    Avx512,
}

impl From<LevelArg> for Level {
    fn from(level: LevelArg) -> Self {
        match level {
            LevelArg::Scalar => Self::Scalar,
            LevelArg::Avx2 => Self::Avx2,
            LevelArg::Avx512 => Self::Avx512,
        }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    model: String,
    description: String,
    format: String,
    bytes: u64,
    threads: usize,
    level: &'static str,
    depth: usize,
    weight_bytes_per_token: u64,
    pp_tok_s: Option<f64>,
    tg_tok_s: Option<f64>,
    tg_gb_s: Option<f64>,
    tg_of_bandwidth: Option<f64>,
    bandwidth_gb_s: Option<f64>,
    bandwidth_best_gb_s: Option<f64>,
    peak_memory: Option<u64>,
    tests: Vec<Test>,
}

#[derive(Debug, Serialize)]
struct Test {
    test: String,
    tokens: usize,
    median_tok_s: f64,
    stddev_tok_s: f64,
    samples_tok_s: Vec<f64>,
}

pub fn run(args: &Args, ui: &Ui) -> Result<u8> {
    // Without a model it is the bandwidth that was asked for.
    let Some(path) = &args.model else { return bandwidth::run(args.compute.threads, ui) };
    if args.repetitions == 0 || (args.prompt == 0 && args.tokens == 0) {
        return Err(Failure::Usage("there is nothing to measure: -r, and -p or -n, must be at least 1".to_owned()));
    }
    if let Some(level) = args.level.map(Level::from) {
        if level > Level::detect() {
            let (asked, best) = (level.name(), Level::detect().name());
            let reason = format!("this processor has no {asked}; its best is {best}: leave --level out");
            return Err(Failure::Usage(reason));
        }
        level.cap();
    }
    let memory = (!args.no_bandwidth).then(|| bandwidth::quick(args.compute.threads)).transpose()?;
    let (model, _) = session::open(path, ui)?;
    let options = SessionOptions {
        context: Some(args.depth.saturating_add(args.prompt.max(args.tokens))),
        threads: args.compute.threads,
        activations: args.compute.activations(),
        kv: args.compute.kv,
        // What fills the cache is not timed: it goes in batches of its own where there is no prompt to measure.
        batch: if args.prompt == 0 && args.depth > 0 { FILL } else { args.prompt.max(1) },
    };
    let mut session = Session::new(&model, &options)?;
    if args.depth > 0 {
        session.prefill(&token_ids(&model, args.depth))?;
        ui.note(format_args!("{} positions in the cache", args.depth));
    }
    let pp = (args.prompt > 0).then(|| measure(args, ui, "pp", args.prompt, &mut session)).transpose()?;
    let tg = (args.tokens > 0).then(|| measure(args, ui, "tg", args.tokens, &mut session)).transpose()?;
    let report = report(args, path, &model, memory.as_ref(), pp, tg);
    if ui.json() {
        ui.object(&report)?;
    } else {
        ui.text(&render(&report))?;
        if let Some(memory) = &memory {
            ui.text(&bandwidth::sentence(memory))?;
        }
    }
    Ok(0)
}

/// One warm-up, then the repetitions.
fn measure(args: &Args, ui: &Ui, name: &str, tokens: usize, session: &mut Session<&LoadedModel>) -> Result<Test> {
    let ids = token_ids(session.model(), tokens);
    let test = if args.depth == 0 { format!("{name}{tokens}") } else { format!("{name}{tokens} @ d{}", args.depth) };
    let mut samples = Vec::new();
    for repetition in 0..=args.repetitions {
        session.truncate(args.depth);
        let began = Instant::now();
        if name == "pp" {
            session.prefill(&ids)?;
        } else {
            for &id in &ids {
                session.step(id)?;
            }
        }
        let time = began.elapsed();
        let rate = crate::output::number::per_second(tokens as u64, time);
        match repetition {
            0 => ui.note(format_args!("{test}: warm-up {rate:.1} tokens/s")),
            n => {
                ui.note(format_args!("{test}: {n} of {} {rate:.1} tokens/s", args.repetitions));
                samples.push(rate);
            }
        }
    }
    let (median, stddev) = (median(&samples), deviation(&samples));
    Ok(Test { test, tokens, median_tok_s: median, stddev_tok_s: stddev, samples_tok_s: samples })
}

/// Tokens that mean nothing; how fast they are does not depend on which they are. The first is BOS, as llama-bench has it.
fn token_ids(model: &LoadedModel, count: usize) -> Vec<u32> {
    let vocabulary = u32::try_from(model.model().n_vocab()).unwrap_or(u32::MAX).max(1);
    let mut state = 1u32;
    let mut ids: Vec<u32> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % vocabulary
        })
        .collect();
    if let (Some(first), Some(bos)) = (ids.first_mut(), model.tokenizer().bos()) {
        *first = bos;
    }
    ids
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match (sorted.get(half.wrapping_sub(1)), sorted.get(half)) {
        (Some(below), Some(above)) if sorted.len().is_multiple_of(2) => f64::midpoint(*below, *above),
        (_, Some(middle)) => *middle,
        _ => 0.0,
    }
}

/// Standard deviation of a sample (n - 1); 0 of a single value.
fn deviation(samples: &[f64]) -> f64 {
    if samples.len() < 2 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "a few repetitions")]
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (squares / (count - 1.0)).sqrt()
}

fn report(
    args: &Args,
    path: &Path,
    model: &LoadedModel,
    memory: Option<&Bandwidth>,
    pp: Option<Test>,
    tg: Option<Test>,
) -> Report {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let tg_tok_s = tg.as_ref().map(|test| test.median_tok_s);
    #[expect(clippy::cast_precision_loss, reason = "bytes of weights, for a rate with one decimal")]
    let weights = model.weight_bytes_per_token() as f64;
    let tg_gb_s = tg_tok_s.map(|rate| rate * weights / 1e9);
    let bandwidth_gb_s = memory.map(|memory| memory.median() / 1e9);
    Report {
        model: path.display().to_string(),
        description: model.description(),
        format: model.format().to_string().to_ascii_lowercase(),
        bytes: model.file_size(),
        threads: if args.compute.threads == 0 { cores } else { args.compute.threads },
        level: Level::current().name(),
        depth: args.depth,
        weight_bytes_per_token: model.weight_bytes_per_token(),
        pp_tok_s: pp.as_ref().map(|test| test.median_tok_s),
        tg_tok_s,
        tg_gb_s,
        tg_of_bandwidth: tg_gb_s.zip(bandwidth_gb_s).map(|(weights, memory)| weights / memory),
        bandwidth_gb_s,
        bandwidth_best_gb_s: memory.map(|memory| memory.best() / 1e9),
        peak_memory: memory::peak(),
        tests: pp.into_iter().chain(tg).collect(),
    }
}

fn render(report: &Report) -> String {
    let mut table = Table::new([
        ("test", Align::Left),
        ("level", Align::Left),
        ("threads", Align::Right),
        ("tokens/s", Align::Right),
        ("", Align::Left),
        ("GB/s", Align::Right),
        ("of memory's", Align::Right),
    ]);
    for test in &report.tests {
        let tg = test.test.starts_with("tg");
        let weights = report.tg_gb_s.filter(|_| tg);
        let part = report.tg_of_bandwidth.filter(|_| tg);
        table.row([
            test.test.clone(),
            report.level.to_owned(),
            report.threads.to_string(),
            format!("{:.1}", test.median_tok_s),
            format!("± {:.1}", test.stddev_tok_s),
            weights.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}")),
            part.map_or_else(|| "-".to_owned(), |part| format!("{:.0} %", part * 100.0)),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_deviations() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-12);
        assert!(median(&[]).abs() < 1e-12);
        assert!((deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert!(deviation(&[5.0]).abs() < 1e-12);
    }
}
