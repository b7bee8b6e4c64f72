//! The README's table of families, made from the list of conformance models.

use p64_core::forward::Architecture;
use p64_tests::conformance::{FamilyRow, Recipe, families};
use p64_tests::data::{bless, workspace};
use std::fmt::Write;

const BEGIN: &str = "<!-- families: written by `P64_BLESS=1 cargo test -p p64-tests --test families` -->\n";
const END: &str = "<!-- families end -->";

/// Compares the README's table with the list, or writes it.
pub fn check() {
    let path = workspace("README.md");
    let text = std::fs::read_to_string(&path).expect("the README");
    let (before, rest) = text.split_once(BEGIN).expect("the README has a place for the table");
    let (table, after) = rest.split_once(END).expect("the table has an end");
    let wanted = table_of(&families());
    if bless() {
        std::fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).expect("written");
    } else {
        assert_eq!(table, wanted, "the README's table of families is stale; P64_BLESS=1 writes it");
    }
}

fn table_of(families: &[FamilyRow]) -> String {
    let mut out = String::from("| family | `general.architecture` | conformance models | their types | status |\n");
    out.push_str("|---|---|---|---|---|\n");
    for family in families {
        let arch: Vec<String> = family.arch.iter().map(|name| format!("`{name}`")).collect();
        let recipes: Vec<Recipe> = family.models.iter().map(|name| Recipe::load(name)).collect();
        let variants: Vec<&str> = recipes.iter().map(|recipe| recipe.variant.as_str()).collect();
        let mut types: Vec<&str> = Vec::new();
        for one in recipes.iter().flat_map(Recipe::types) {
            if !types.contains(&one) {
                types.push(one);
            }
        }
        let runs = family.arch.iter().all(|name| Architecture::from_name(name).is_some());
        let status = if runs { "runs" } else { "**does not run**" };
        let (arch, variants, types) = (arch.join(", "), variants.join("; "), types.join(", "));
        writeln!(out, "| {} | {arch} | {variants} | {types} | {status} |", family.text).expect("a string");
    }
    out
}
