//! Every model family against llama.cpp, on models with random weights.
//!
//! The golden is llama.cpp's result with the same weights in f32. Each model is made from its recipe, run from the GGUF and
//! from the P64 that it converts to, and exported again. `P64_FAMILY=NAME` runs one family, `P64_MODEL=NAME` one model.

#[path = "families/check.rs"]
mod check;
#[path = "families/matrix.rs"]
mod matrix;
#[path = "families/tolerance.rs"]
mod tolerance;

use p64_tests::conformance::{FamilyRow, Recipe, families};
use std::collections::BTreeSet;

fn chosen(variable: &str, name: &str) -> bool {
    std::env::var(variable).map_or(true, |wanted| wanted == name)
}

#[test]
fn every_family_gives_llama_cpps_logits() {
    println!("{}", check::heading());
    let mut failed = Vec::new();
    let mut count = 0;
    let mut summary = Vec::new();
    for family in families().iter().filter(|row| chosen("P64_FAMILY", &row.family)) {
        let (mut exact, mut production, before) = (0.0f64, 0.0f64, (count, failed.len()));
        for name in family.models.iter().filter(|name| chosen("P64_MODEL", name)) {
            let recipe = Recipe::load(name);
            let line = check::model(&recipe);
            println!("{line}");
            count += 1;
            (exact, production) = (exact.max(line.exact), production.max(line.production));
            failed.extend(line.problems.into_iter().map(|problem| format!("{name}: {problem}")));
        }
        let (models, verdict) = (count - before.0, if failed.len() == before.1 { "ok" } else { "FAILED" });
        let FamilyRow { family, text, .. } = family;
        summary.push(format!("{family:10} {text:55} {models:2} models, {exact:.1e} and {production:.1e}: {verdict}"));
    }
    println!("\nfamily by family, with the largest difference on the exact and on the production path:");
    println!("{}", summary.join("\n"));
    println!("{count} models, {} failures", failed.len());
    assert!(count > 0, "no model of that name");
    assert!(failed.is_empty(), "{} failures:\n  {}", failed.len(), failed.join("\n  "));
}

#[test]
fn every_family_has_models_and_every_model_a_family() {
    let mut listed = BTreeSet::new();
    for family in families() {
        assert!(!family.models.is_empty(), "{}", family.family);
        for name in family.models {
            let recipe = Recipe::load(&name);
            assert_eq!(recipe.family, family.family);
            assert!(family.arch.contains(&recipe.arch), "{name}");
            assert!(listed.insert(name), "listed twice");
        }
    }
    let folder = std::fs::read_dir(p64_tests::data::data("conformance")).expect("the folder is there");
    for entry in folder {
        let path = entry.expect("readable").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let known = ["families", "README"].contains(&stem.as_str());
        assert!(known || listed.contains(&stem), "{} belongs to no family", path.display());
    }
}

/// Each type that this build computes with and that GGUF has is in at least one model.
#[test]
fn every_type_has_a_model() {
    let names: Vec<String> = families().into_iter().flat_map(|family| family.models).collect();
    let recipes: Vec<Recipe> = names.iter().map(|name| Recipe::load(name)).collect();
    let used: BTreeSet<&str> = recipes.iter().flat_map(|recipe| recipe.types()).collect();
    let missing: Vec<String> = tolerance::types().filter(|name| !used.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "no conformance model has {}", missing.join(", "));
}

#[test]
fn the_readme_says_what_runs() {
    matrix::check();
}
