//! The shape of each kind's distribution, a line for each layer.

use super::escape::{escape, short_name};
use super::palette;
use super::svg::{Anchor, Svg, mark, n};
use crate::output::number;
use crate::stats::{Report, Tensor};
use p64_std::stats::{BINS, Part};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Panels, and lines of one.
const MAX_PANELS: usize = 18;
const MAX_LINES: usize = 32;
/// A histogram of fewer values is mostly noise: norms and biases are left to the table.
const MIN_VALUES: u64 = 8_192;
/// Decades of the vertical scale.
const DECADES: f64 = 4.0;

pub fn intro(report: &Report) -> String {
    let more = kinds(report).len().saturating_sub(MAX_PANELS);
    let more = if more > 0 { format!(" {more} smaller kinds are not drawn.") } else { String::new() };
    format!(
        "Each line is the histogram of one layer's tensor. The height is logarithmic, four decades from the mode downwards, \
         which shows the tails: a normal distribution is a parabola, straight flanks are heavy tails. Tensors of fewer than \
         {MIN_VALUES} values are left out.{more}"
    )
}

fn kinds(report: &Report) -> Vec<((Part, &str), Vec<&Tensor>)> {
    let mut kinds: BTreeMap<(Part, &str), Vec<&Tensor>> = BTreeMap::new();
    for tensor in &report.tensors {
        let drawable = tensor.elements >= MIN_VALUES
            && tensor.stats.as_ref().is_some_and(|stats| stats.histogram.high > stats.histogram.low);
        if drawable {
            kinds.entry((tensor.place.part, &tensor.place.kind)).or_default().push(tensor);
        }
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    let bytes = |tensors: &[&Tensor]| tensors.iter().map(|tensor| tensor.elements).fold(0, u64::saturating_add);
    kinds.sort_by_key(|(_, tensors)| std::cmp::Reverse(bytes(tensors)));
    kinds
}

pub fn draw(report: &Report) -> String {
    let mut kinds = kinds(report);
    if kinds.is_empty() {
        return String::new();
    }
    kinds.truncate(MAX_PANELS);
    kinds.sort_by_key(|((part, kind), _)| (*part, *kind));
    let last = report.tensors.iter().filter_map(|tensor| tensor.place.layer).max().unwrap_or(0);
    let mut out = palette::scale("l", "first layer", "last layer");
    out.push_str("<div class=\"panels\">\n");
    for ((_, kind), tensors) in kinds {
        let _ = writeln!(
            out,
            "<figure><figcaption>{}</figcaption>{}</figure>",
            escape(&short_name(kind)),
            panel(kind, &tensors, last)
        );
    }
    out + "</div>\n"
}

fn panel(kind: &str, tensors: &[&Tensor], last: u32) -> String {
    const WIDTH: f64 = 260.0;
    const HEIGHT: f64 = 130.0;
    const BASE: f64 = 112.0;
    let histograms = || tensors.iter().filter_map(|tensor| Some((*tensor, &tensor.stats.as_ref()?.histogram)));
    // A few layers with far outliers would press the others into a line: the scale is the widest of the middle nine tenths.
    let mut reaches: Vec<f64> = histograms().map(|(_, h)| h.high.abs().max(h.low.abs())).collect();
    reaches.sort_by(f64::total_cmp);
    let reach = reaches.get((reaches.len() * 9 / 10).min(reaches.len().saturating_sub(1))).copied().unwrap_or(1.0);
    let signed = histograms().any(|(_, h)| h.low < 0.0);
    let left = if signed { -reach } else { 0.0 };
    let to_x = |value: f64| ((value - left) / (reach - left)).clamp(0.0, 1.0) * WIDTH;

    let mut svg = Svg::new("panel", WIDTH, HEIGHT, &format!("distribution of {}", short_name(kind)));
    for decade in 1..=3 {
        let y = BASE * f64::from(decade) / DECADES;
        svg.line((0.0, y), (WIDTH, y), "grid");
    }
    svg.line((0.0, BASE), (WIDTH, BASE), "rule");
    if signed {
        svg.line((WIDTH / 2.0, 0.0), (WIDTH / 2.0, BASE), "grid");
    }
    let every = tensors.len().div_ceil(MAX_LINES);
    for (tensor, histogram) in histograms().step_by(every.max(1)) {
        let most = histogram.counts.iter().copied().max().unwrap_or(0).max(1);
        let width = (histogram.high - histogram.low) / BINS as f64;
        let mut path = String::new();
        // A line joins the bins that hold something: of a few thousand values most outer ones are empty.
        let filled = histogram.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        for (bin, count) in filled {
            let x = to_x(histogram.low + (bin as f64 + 0.5) * width);
            let height = (1.0 + number::ratio(*count, most).log10() / DECADES).max(0.0);
            let command = if path.is_empty() { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            let _ = write!(path, "{command}{} {}", n(x.round()), n((BASE * (1.0 - height)).round()));
        }
        let depth = match tensor.place.layer {
            Some(layer) => palette::step(f64::from(layer) / f64::from(last.max(1))),
            None => palette::STEPS - 1,
        };
        let layer = tensor.place.layer.map_or_else(|| short_name(&tensor.name), |layer| format!("layer {layer}"));
        let moments = tensor.stats.as_ref().map(|stats| stats.moments).unwrap_or_default();
        let tip = format!(
            "{layer} · std {} · from {} to {}",
            number::short(moments.std()),
            number::short(moments.min),
            number::short(moments.max)
        );
        svg.path(&path, &format!("line l{depth}"), &tip);
    }
    svg.text(2.0, HEIGHT - 4.0, Anchor::Start, "small", &mark(left));
    if signed {
        svg.text(WIDTH / 2.0, HEIGHT - 4.0, Anchor::Middle, "small", "0");
    }
    svg.text(WIDTH - 2.0, HEIGHT - 4.0, Anchor::End, "small", &mark(reach));
    svg.finish()
}
