//! Bytes by layer and part, and by element type.

use super::escape::{escape, short_name};
use super::palette;
use super::svg::{Anchor, Svg, ticks};
use crate::output::number;
use crate::stats::{Outline, Report};
use p64_core::DType;
use p64_std::stats::Part;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

pub const INTRO: &str = "The bytes of each layer's tensors, stacked by part, and what lies outside the layers.";
pub const TYPES_INTRO: &str = "How the values are stored. Below, the type of each kind of tensor in each layer: stronger colour is more bits a value.";

const WIDTH: f64 = 1120.0;
const MAX_LAYERS: usize = 256;

pub fn draw(report: &Report) -> String {
    let mut layers: BTreeMap<u32, BTreeMap<Part, u64>> = BTreeMap::new();
    let mut outside: Vec<&Outline> = Vec::new();
    for outline in &report.outlines {
        match outline.place.layer {
            Some(layer) => {
                let sum = layers.entry(layer).or_default().entry(outline.place.part).or_default();
                *sum = sum.saturating_add(outline.bytes);
            }
            None => outside.push(outline),
        }
    }
    outside.sort_by_key(|outline| std::cmp::Reverse(outline.bytes));
    let mut out = String::new();
    if !layers.is_empty() {
        out.push_str(&columns(&layers));
    }
    if !outside.is_empty() {
        out.push_str(&globals(report, &outside));
    }
    out
}

fn columns(layers: &BTreeMap<u32, BTreeMap<Part, u64>>) -> String {
    const HEIGHT: f64 = 220.0;
    const LEFT: f64 = 64.0;
    const BOTTOM: f64 = 26.0;
    let parts: BTreeSet<Part> = layers.values().flat_map(|parts| parts.keys().copied()).collect();
    let most = layers.values().map(|parts| parts.values().sum::<u64>()).max().unwrap_or(0);
    let mut svg = Svg::new("columns", WIDTH, HEIGHT + BOTTOM, "bytes of each layer, stacked by part");
    for tick in ticks(most as f64, 4.0) {
        let y = HEIGHT - tick / most.max(1) as f64 * (HEIGHT - 10.0);
        svg.line((LEFT, y), (WIDTH, y), "grid");
        svg.text(LEFT - 8.0, y + 4.0, Anchor::End, "small", &number::bytes(tick as u64));
    }
    let shown = layers.len().min(MAX_LAYERS);
    let step = ((WIDTH - LEFT) / shown as f64).min(60.0);
    let every = ((24.0 / step).ceil() as usize).max(1);
    for (at, (layer, parts)) in layers.iter().take(MAX_LAYERS).enumerate() {
        let x = LEFT + at as f64 * step;
        let sum: u64 = parts.values().sum();
        let mut y = HEIGHT;
        for (part, bytes) in parts {
            let height = *bytes as f64 / most.max(1) as f64 * (HEIGHT - 10.0);
            y -= height;
            let tip = format!(
                "layer {layer} · {} · {} ({} of {})",
                part.name(),
                number::bytes(*bytes),
                number::share(*bytes, sum),
                number::bytes(sum)
            );
            svg.rect(x + step * 0.08, y, (step * 0.84).min(48.0), height, &palette::of_part(*part), &tip);
        }
        if at % every == 0 {
            svg.text(
                x + (step * 0.5).min(24.0 + step * 0.08),
                HEIGHT + 16.0,
                Anchor::Middle,
                "small",
                &layer.to_string(),
            );
        }
    }
    palette::legend(&parts, &[]) + &svg.framed()
}

/// A row with a bar for each tensor outside the layers, the layers together among them.
fn globals(report: &Report, outside: &[&Outline]) -> String {
    const SHOWN: usize = 12;
    let all = report.outlines.iter().map(|outline| outline.bytes).fold(0, u64::saturating_add);
    let without: u64 = outside.iter().map(|outline| outline.bytes).sum();
    let mut rows = Vec::new();
    if all > without {
        rows.push(("all layers together".to_owned(), all - without, "p-attn".to_owned()));
    }
    for outline in outside.iter().take(SHOWN) {
        rows.push((short_name(&outline.name), outline.bytes, palette::of_part(outline.place.part)));
    }
    if outside.len() > SHOWN {
        let rest = outside.iter().skip(SHOWN).map(|outline| outline.bytes).sum();
        rows.push((format!("{} more", outside.len() - SHOWN), rest, "p-other".to_owned()));
    }
    let mut out = String::from("<div class=\"scroll\"><table class=\"bars\"><tbody>\n");
    for (name, bytes, class) in rows {
        row(&mut out, &name, &[number::bytes(bytes), number::share(bytes, all)], number::ratio(bytes, all), &class);
    }
    out + "</tbody></table></div>\n"
}

fn row(out: &mut String, name: &str, cells: &[String], share: f64, class: &str) {
    let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(name));
    for cell in cells {
        let _ = write!(out, "<td>{}</td>", escape(cell));
    }
    let mut bar = Svg::new("bar", 400.0, 12.0, &format!("{:.1} %", share * 100.0));
    bar.rect(0.0, 0.0, share * 400.0, 12.0, class, "");
    let _ = writeln!(out, "<td class=\"wide\">{}</td></tr>", bar.finish());
}

/// The types that are there, those with most bits a value first, with their step on the scale.
pub fn ranked(report: &Report) -> Vec<(DType, usize)> {
    let bits = |dtype: DType| match dtype.block() {
        Some(block) => f64::from(block.bytes) * 8.0 / f64::from(block.elements),
        None if dtype == DType::Ternary => 1.6,
        None => 0.0,
    };
    let mut types: Vec<DType> = report.outlines.iter().map(|outline| outline.dtype).collect();
    types.sort_by(|a, b| bits(*b).total_cmp(&bits(*a)).then(a.id().cmp(&b.id())));
    types.dedup();
    let last = types.len().saturating_sub(1).max(1);
    // The two faintest steps are too near to the page's own colour.
    let room = palette::STEPS - 3;
    let steps = (0..).map(|place: usize| palette::STEPS - 1 - (place * room / last).min(room));
    types.into_iter().zip(steps).collect()
}

pub fn types(report: &Report) -> String {
    let all: u64 = report.outlines.iter().map(|outline| outline.bytes).sum();
    let mut out = String::from(
        "<div class=\"scroll\"><table class=\"bars\"><thead><tr><th>type</th><th>tensors</th><th>values</th><th>bytes</th>\
         <th>bits a value</th><th>share</th><th></th></tr></thead><tbody>\n",
    );
    for (dtype, step) in ranked(report) {
        let of = || report.outlines.iter().filter(move |outline| outline.dtype == dtype);
        // Of a type that nobody knows a shape may claim anything.
        let sum = |number: fn(&Outline) -> u64| of().map(number).fold(0, u64::saturating_add);
        let (bytes, elements) = (sum(|outline| outline.bytes), sum(|outline| outline.elements));
        let cells = [
            number::grouped(of().count() as u64),
            number::count(elements),
            number::bytes(bytes),
            format!("{:.2}", number::ratio(bytes, elements) * 8.0),
            number::share(bytes, all),
        ];
        row(&mut out, &dtype.to_string(), &cells, number::ratio(bytes, all), &format!("t{step}"));
    }
    out + "</tbody></table></div>\n"
}
