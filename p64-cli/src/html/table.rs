//! All tensors in a table that can be sorted and filtered.

use super::escape::{escape, short_name};
use super::palette;
use super::svg::{Svg, n};
use crate::output::number;
use crate::stats::{Report, Tensor};
use p64_std::stats::{BINS, Histogram};
use std::fmt::Write;

const MAX_ROWS: usize = 800;

const HEAD: [(&str, &str); 12] = [
    ("name", ""),
    ("type", ""),
    ("shape", ""),
    ("bytes", "num"),
    ("min", "num"),
    ("max", "num"),
    ("mean", "num"),
    ("std", "num"),
    ("zeros", "num"),
    ("outliers", "num"),
    ("NaN, inf", "num"),
    ("histogram", ""),
];

pub fn intro(report: &Report) -> String {
    let left_out = report.tensors.len().saturating_sub(MAX_ROWS);
    let some = match left_out {
        0 => String::new(),
        _ => format!(" The {MAX_ROWS} largest are here; <code>p64 stats --json</code> has the other {left_out}, too."),
    };
    format!("A click on a head sorts by it. Histograms span the values within 6 standard deviations.{some}")
}

pub fn draw(report: &Report) -> String {
    let mut chosen: Vec<&Tensor> = report.tensors.iter().collect();
    if chosen.len() > MAX_ROWS {
        chosen.sort_by_key(|tensor| std::cmp::Reverse(tensor.bytes));
        chosen.truncate(MAX_ROWS);
        chosen.sort_by_key(|tensor| tensor.index);
    }
    let mut out = String::from(
        "<p><label>Filter <input id=\"filter\" type=\"search\" placeholder=\"ffn_down\" autocomplete=\"off\" spellcheck=\"false\">\
         </label> <output id=\"shown\"></output></p>\n<div class=\"scroll\"><table id=\"all\"><thead><tr>",
    );
    for (name, class) in HEAD {
        let _ = write!(out, "<th scope=\"col\" class=\"{class}\"><button type=\"button\">{name}</button></th>");
    }
    out.push_str("</tr></thead><tbody>\n");
    for tensor in chosen {
        row(&mut out, tensor);
    }
    out + "</tbody></table></div>\n"
}

fn row(out: &mut String, tensor: &Tensor) {
    let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
    let name = escape(&short_name(&tensor.name));
    let alarm = if tensor.not_finite() > 0 { " class=\"alarmed\"" } else { "" };
    // Writing to a string cannot fail, here and below. `data-v` is what a column is sorted by.
    let _ = write!(
        out,
        "<tr{alarm}><th scope=\"row\" data-v=\"{}\">{name}</th><td>{}</td><td data-v=\"{}\">{}</td>",
        tensor.index,
        escape(&tensor.dtype.to_string()),
        tensor.elements,
        escape(&shape.join(" × ")),
    );
    cell(out, &tensor.bytes.to_string(), &number::grouped(tensor.bytes));
    let Some(stats) = &tensor.stats else {
        out.push_str("<td colspan=\"8\">not decoded</td></tr>\n");
        return;
    };
    let moments = &stats.moments;
    for value in [moments.min, moments.max, moments.mean, moments.std()] {
        let shown = if moments.finite() > 0 { number::short(value) } else { "–".to_owned() };
        cell(out, &format!("{value:e}"), &shown);
    }
    let zeros = number::ratio(moments.zeros, moments.elements);
    let shown = if moments.zeros == 0 { "0".to_owned() } else { number::share(moments.zeros, moments.elements) };
    cell(out, &format!("{zeros:e}"), &shown);
    cell(out, &stats.outliers().to_string(), &number::grouped(stats.outliers()));
    cell(out, &moments.not_finite().to_string(), &number::grouped(moments.not_finite()));
    let _ = writeln!(out, "<td>{}</td></tr>", spark(&stats.histogram, &palette::of_part(tensor.place.part)));
}

fn cell(out: &mut String, value: &str, shown: &str) {
    let _ = write!(out, "<td class=\"num\" data-v=\"{value}\">{shown}</td>");
}

/// A histogram as one outline; two bins are a step.
fn spark(histogram: &Histogram, class: &str) -> String {
    const STEP: usize = 2;
    let sums: Vec<u64> = histogram.counts.chunks(STEP).map(|bins| bins.iter().sum()).collect();
    let most = sums.iter().copied().max().unwrap_or(0);
    let mut path = String::from("M0 20");
    for (at, sum) in sums.iter().enumerate() {
        let y = 20.0 - number::ratio(*sum, most) * 20.0;
        let _ = write!(path, "V{}H{}", n((y * 2.0).round() / 2.0), (at + 1) * STEP);
    }
    path.push_str("V20Z");
    let mut svg = Svg::new("spark", BINS as f64, 20.0, "histogram");
    svg.path(&path, class, "");
    svg.finish()
}
