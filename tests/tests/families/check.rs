//! One model, every way that it can be run.

use super::tolerance;
use p64_core::forward::kv::KvType;
use p64_core::kernel::Activations;
use p64_std::convert::{ConvertOptions, Layout, ProduceOptions, convert_file, convert_gguf};
use p64_std::export::export_gguf;
use p64_std::map::MapOptions;
use p64_std::model::LoadedModel;
use p64_std::session::{Session, SessionOptions};
use p64_tests::conformance::Recipe;
use std::fmt;
use std::path::Path;

/// Names of the columns of a [`Line`].
pub fn heading() -> String {
    let [family, variant, types, at] = ["family", "variant", "types", "after tokens"];
    let [exact, production, bar, rms, own] = ["exact", "production", "bar", "rms", "llama.cpp's"];
    format!("{family:10} {variant:31} {types:22} {at:12} {exact:8} {production:10} {bar:6} {rms:8} {own:11}")
}

/// What became of a model.
pub struct Line<'r> {
    recipe: &'r Recipe,
    /// Largest difference from the golden with exact activations, relative to the golden's largest value.
    pub exact: f64,
    /// The same on the production path.
    pub production: f64,
    rms: f64,
    caches: Vec<String>,
    /// What is wrong with it.
    pub problems: Vec<String>,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recipe { family, variant, at, own_rms, .. } = self.recipe;
        let types = self.recipe.types();
        let at: Vec<String> = at.iter().map(ToString::to_string).collect();
        let (types, at, bar) = (types.join(" "), at.join(" "), tolerance::production(self.recipe));
        let number = |value: f64| format!("{value:.1e}");
        let [exact, production, rms, own] = [self.exact, self.production, self.rms, *own_rms].map(number);
        let verdict = if self.problems.is_empty() { "ok" } else { "FAILED" };
        write!(f, "{family:10} {variant:31} {types:22} {at:12} {exact:8} {production:10} ")?;
        write!(f, "{:6} {rms:8} {own:11} {verdict}", format!("{bar:.0e}"))?;
        if !self.caches.is_empty() {
            write!(f, "  cache: {}", self.caches.join(", "))?;
        }
        Ok(())
    }
}

/// Runs it from the GGUF and from a P64, on both paths.
pub fn model(recipe: &Recipe) -> Line<'_> {
    let mut line =
        Line { recipe, exact: f64::NAN, production: f64::NAN, rms: f64::NAN, caches: Vec::new(), problems: Vec::new() };
    if let Err(problem) = run(recipe, &mut line) {
        line.problems.push(problem);
    }
    line
}

fn run(recipe: &Recipe, line: &mut Line<'_>) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let at = |extension: &str| folder.path().join(format!("model.{extension}"));
    let (gguf, p64, tuned, back) = (at("gguf"), at("p64"), at("tuned.p64"), at("back.gguf"));
    let bytes = recipe.file();
    std::fs::write(&gguf, &bytes).map_err(|error| error.to_string())?;

    // Any model converts and comes back, also one of a family that does not run.
    convert_gguf(&gguf, &p64, &ConvertOptions::default(), &mut |_| ()).map_err(|error| format!("convert: {error}"))?;
    let mut options = ProduceOptions::preserving(ConvertOptions::default());
    options.weights = Layout::Tuned;
    convert_file(&gguf, &tuned, &options, &mut |_| ()).map_err(|error| format!("convert tuned: {error}"))?;
    for p64 in [&p64, &tuned] {
        export_gguf(p64, &back, &mut |_| ()).map_err(|error| format!("export: {error}"))?;
        if std::fs::read(&back).map_err(|error| error.to_string())? != bytes {
            line.problems.push(format!("export of {} gives other bytes than the source", p64.display()));
        }
    }

    let golden = recipe.golden();
    let [exact, production] =
        [Activations::F32, Activations::Quantized].map(|path| same(recipe, &gguf, &[&p64, &tuned], path));
    let (exact, production) = (exact?, production?);
    line.exact = compare(recipe, &golden, &exact, tolerance::EXACT, "exact path", &mut line.problems);
    let bar = tolerance::production(recipe);
    line.production = compare(recipe, &golden, &production, bar, "production path", &mut line.problems);
    line.rms = rms(&golden, &production);
    let plain = recipe.types() == ["F32"];
    if !plain && (line.rms.is_nan() || line.rms > recipe.own_rms) {
        line.problems.push(format!("rms {:.2e} against llama.cpp's own {:.2e}", line.rms, recipe.own_rms));
    }
    for (name, own) in &recipe.caches {
        let kv = KvType::from_name(name).ok_or_else(|| format!("no cache type {name}"))?;
        let found = rms(&golden, &logits(recipe, &gguf, Activations::F32, kv)?);
        line.caches.push(format!("{name} {found:.1e} ({own:.1e})"));
        if !tolerance::CACHE.contains(&(found / own)) {
            line.problems.push(format!("cache {name}: rms {found:.2e} against llama.cpp's own {own:.2e}"));
        }
    }
    Ok(())
}

/// Logits of the golden's positions, the same from GGUF and every P64, and however the prompt is cut.
fn same(recipe: &Recipe, gguf: &Path, p64s: &[&Path], activations: Activations) -> Result<Vec<f32>, String> {
    let from_gguf = logits(recipe, gguf, activations, KvType::F32)?;
    for p64 in p64s {
        let from_p64 = logits(recipe, p64, activations, KvType::F32)?;
        if !same_bits(&from_gguf, &from_p64) {
            return Err(format!("{activations:?}: {} gives other logits than the GGUF", p64.display()));
        }
    }
    Ok(from_gguf)
}

fn logits(recipe: &Recipe, path: &Path, activations: Activations, kv: KvType) -> Result<Vec<f32>, String> {
    let model = LoadedModel::open(path, &MapOptions::default()).map_err(|error| error.to_string())?;
    let options = SessionOptions {
        context: Some(recipe.context),
        threads: 1,
        activations,
        kv: kv.into(),
        ..SessionOptions::default()
    };
    let mut session = Session::new(&model, &options).map_err(|error| error.to_string())?;
    let all = session.logits_of_all(&recipe.prompt).map_err(|error| error.to_string())?;

    let in_pieces = SessionOptions { threads: 2, batch: 7, ..options };
    let mut session = Session::new(&model, &in_pieces).map_err(|error| error.to_string())?;
    let last = session.prefill(&recipe.prompt).map_err(|error| error.to_string())?;
    if !same_bits(last, &all[all.len() - recipe.vocabulary..]) {
        return Err(format!("{activations:?}: logits depend on the batch or on the threads"));
    }
    let rows = recipe.at.iter().flat_map(|at| &all[(at - 1) * recipe.vocabulary..at * recipe.vocabulary]);
    Ok(rows.copied().collect())
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// The largest difference relative to the golden's largest value; a problem for each position above the bar.
fn compare(recipe: &Recipe, golden: &[f32], found: &[f32], bar: f64, what: &str, problems: &mut Vec<String>) -> f64 {
    let scale = recipe.max_logit();
    let rows = golden.chunks(recipe.vocabulary).zip(found.chunks(recipe.vocabulary));
    let mut worst = 0.0f64;
    for ((golden, found), at) in rows.zip(&recipe.at) {
        let differences = golden.iter().zip(found).map(|(a, b)| f64::from(*a) - f64::from(*b));
        let largest = differences.map(|d| if d.is_nan() { f64::INFINITY } else { d.abs() }).fold(0.0, f64::max);
        let relative = largest / scale;
        if relative > bar {
            problems.push(format!("{what}, after {at} tokens: {relative:.2e}, the bar is {bar:.0e}"));
        }
        worst = worst.max(relative);
    }
    worst
}

/// Root of the mean squared difference.
fn rms(a: &[f32], b: &[f32]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
    (squares.sum::<f64>() / f64::from(u32::try_from(a.len()).expect("few"))).sqrt()
}
