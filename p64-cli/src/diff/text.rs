//! The differences as text.

use super::values;
use crate::output::number;
use crate::output::table::{Align, Table, one_line};
use p64_std::diff::{Change, Difference, Fact, KeyDiff, TensorDiff};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// What differs, part by part; parts in which nothing does are left out.
pub fn render(a: &Path, b: &Path, difference: &Difference<'_>, summary: bool, is_selection: bool) -> String {
    let mut out = format!("a  {}\nb  {}\n\n{}\n", a.display(), b.display(), verdict(difference, is_selection));
    let different: Vec<&TensorDiff> = difference.tensors.iter().filter(|tensor| tensor.is_different()).collect();
    if !different.is_empty() {
        block(&mut out, "Changes", &changes(&different));
        if !summary {
            block(&mut out, "Tensors", &tensors(&different));
        }
    }
    let (tokenizer, keys): (Vec<&KeyDiff<'_>>, Vec<&KeyDiff<'_>>) =
        difference.keys.iter().partition(|key| key.is_of_tokenizer());
    for (title, keys) in [("Keys", keys), ("Tokenizer", tokenizer)] {
        if !keys.is_empty() {
            block(&mut out, title, &key_table(&keys));
        }
    }
    let layout = layout(difference);
    if !layout.is_empty() {
        block(&mut out, "Layout", &layout);
    }
    out
}

fn block(out: &mut String, title: &str, body: &str) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\n{title}\n{body}");
}

fn verdict(difference: &Difference<'_>, is_selection: bool) -> String {
    let same = if is_selection { "equal as far as compared" } else { "the same model" };
    let all = difference.tensors.len() as u64;
    let different = difference.tensors.iter().filter(|tensor| tensor.is_different()).count() as u64;
    let keys = difference.keys.len() as u64;
    let tensors = number::plural(all, "tensor");
    match difference.key_counts {
        [Some(a), Some(_)] if different == 0 && keys == 0 => {
            format!("{same}: {tensors} and {} are equal", number::plural(a.into(), "key"))
        }
        _ if different == 0 && keys == 0 => format!("{same}: {tensors} are equal, and neither has keys"),
        counts => {
            let which = match counts {
                [Some(_), Some(_)] => "",
                [_, None] => " (b has none)",
                [None, _] => " (a has none)",
            };
            let differ = |count: u64, thing: &str| match count {
                0 => format!("no {thing} differs"),
                1 => format!("1 {thing} differs"),
                count => format!("{} {thing}s differ", number::grouped(count)),
            };
            let of_tensors = match different {
                0 => format!("all {tensors} are equal"),
                _ => format!("{} of {tensors} differ", number::grouped(different)),
            };
            format!("{of_tensors}, {}{which}", differ(keys, "key"))
        }
    }
}

/// The kind of a change, with the types of a retyped tensor.
fn kind(diff: &TensorDiff) -> String {
    let mut parts = Vec::new();
    for change in diff.changes().into_iter().filter(|change| change.is_of_model()) {
        match (change, &diff.a, &diff.b) {
            (Change::Retyped, Some(a), Some(b)) => parts.push(format!("{} to {}", a.dtype, b.dtype)),
            (change, _, _) => parts.push(change.name().to_owned()),
        }
    }
    parts.join(", ")
}

fn changes(different: &[&TensorDiff]) -> String {
    let mut groups: BTreeMap<String, Vec<&TensorDiff>> = BTreeMap::new();
    for diff in different {
        groups.entry(kind(diff)).or_default().push(diff);
    }
    let head = [
        ("change", Align::Left),
        ("tensors", Align::Right),
        ("bytes a", Align::Right),
        ("bytes b", Align::Right),
        ("relative error", Align::Right),
        ("largest", Align::Right),
        ("in", Align::Left),
    ];
    let mut table = Table::new(head);
    for (kind, group) in groups {
        let bytes = |side: fn(&TensorDiff) -> u64| number::grouped(group.iter().map(|diff| side(diff)).sum());
        let errors = || group.iter().filter_map(|diff| Some((diff.numbers?.relative()?, name(diff))));
        let worst = errors().max_by(|a, b| a.0.total_cmp(&b.0));
        // Over all values of the group, as one vector.
        let (error, energy) = group
            .iter()
            .filter_map(|diff| diff.numbers)
            .fold((0.0, 0.0), |(error, energy), n| (error + n.error, energy + n.energy_a));
        let overall = if energy > 0.0 { percent((error / energy).sqrt()) } else { "-".to_owned() };
        table.row([
            kind,
            number::grouped(group.len() as u64),
            bytes(|diff| diff.a.as_ref().map_or(0, |a| a.bytes)),
            bytes(|diff| diff.b.as_ref().map_or(0, |b| b.bytes)),
            overall,
            worst.as_ref().map_or_else(|| "-".to_owned(), |(error, _)| percent(*error)),
            worst.map(|(_, name)| name).unwrap_or_default(),
        ]);
    }
    table.render()
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 { "0 %".to_owned() } else { format!("{} %", number::short(percent)) }
}

/// The name, or both where it has changed.
fn name(diff: &TensorDiff) -> String {
    match (&diff.a, &diff.b) {
        (Some(a), Some(b)) if a.name != b.name => format!("{} to {}", one_line(&a.name), one_line(&b.name)),
        (Some(tensor), _) | (None, Some(tensor)) => one_line(&tensor.name),
        (None, None) => String::new(),
    }
}

fn tensors(different: &[&TensorDiff]) -> String {
    let head = [
        ("change", Align::Left),
        ("shape", Align::Right),
        ("rmse", Align::Right),
        ("relative", Align::Right),
        ("max", Align::Right),
        ("cosine", Align::Right),
        ("name", Align::Left),
    ];
    let mut table = Table::new(head);
    for diff in different {
        let shape = match (&diff.a, &diff.b) {
            (Some(a), Some(b)) if a.shape != b.shape => format!("{} to {}", a.shape, b.shape),
            (Some(tensor), _) | (None, Some(tensor)) => tensor.shape.to_string(),
            (None, None) => String::new(),
        };
        let dash = || "-".to_owned();
        let of = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(dash, show);
        let numbers = diff.numbers.as_ref();
        let mut change = kind(diff);
        if let (None, Some(tensor)) | (Some(tensor), None) = (&diff.a, &diff.b) {
            // Writing to a string cannot fail.
            let _ = write!(change, " {}", tensor.dtype);
        }
        table.row([
            change,
            shape,
            of(numbers.map(|n| n.rmse()), number::short),
            of(numbers.and_then(|n| n.relative()), percent),
            of(numbers.map(|n| n.max), number::short),
            of(numbers.and_then(|n| n.cosine()), |cosine| format!("{cosine:.6}")),
            name(diff),
        ]);
    }
    table.render()
}

fn key_table(keys: &[&KeyDiff<'_>]) -> String {
    let mut table = Table::new([("", Align::Left), ("key", Align::Left), ("", Align::Left)]);
    for diff in keys {
        let (sign, what) = match (diff.a, diff.b, diff.array) {
            (Some(a), Some(b), Some(array)) => {
                let at = format!("first at {}: {} to {}", array.first, values::text(array.a), values::text(array.b));
                let all = a.as_array().map_or(0, |a| a.len()).max(b.as_array().map_or(0, |b| b.len()));
                let (differing, all) = (number::grouped(array.differing), number::grouped(all));
                ("~", format!("{differing} of {all} elements differ, {at}"))
            }
            (Some(a), Some(b), None) if a.kind() != b.kind() => {
                let with = |value: p64_core::metadata::Value<'_>| {
                    format!("{} {}", value.kind().name(), values::text(Some(value)))
                };
                ("~", format!("{} to {}", with(a), with(b)))
            }
            (Some(a), Some(b), None) => ("~", format!("{} to {}", values::text(Some(a)), values::text(Some(b)))),
            (Some(a), None, _) => ("-", values::text(Some(a))),
            (None, b, _) => ("+", values::text(b)),
        };
        table.row([sign.to_owned(), one_line(diff.key), what]);
    }
    table.render()
}

fn layout(difference: &Difference<'_>) -> String {
    let mut table = Table::new([("", Align::Left), ("a", Align::Left), ("b", Align::Left)]);
    let mut empty = true;
    // Of two formats only what both have can be compared.
    let two_formats = difference.facts.iter().any(|fact| fact.name == "format");
    let comparable = |fact: &&Fact| !two_formats || (fact.a.is_some() && fact.b.is_some());
    for fact in difference.facts.iter().filter(comparable) {
        let side = |value: &Option<String>| value.as_ref().map_or_else(|| "-".to_owned(), |value| one_line(value));
        table.row([fact.name.to_owned(), side(&fact.a), side(&fact.b)]);
        empty = false;
    }
    let mut out = if empty { String::new() } else { table.render() };
    for (change, what) in [(Change::Moved, "in another order"), (Change::Placed, "in another layer or role")] {
        let count = difference.tensors.iter().filter(|tensor| tensor.changes().contains(&change)).count() as u64;
        if count > 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "  {} {what}", number::plural(count, "tensor"));
        }
    }
    out
}
