//! Every tensor by its spread and its farthest value.

use super::escape::{escape, short_name};
use super::palette;
use super::svg::{Anchor, Svg, mark};
use crate::output::number;
use crate::stats::{Report, Tensor};
use std::collections::BTreeSet;
use std::fmt::Write;

pub const INTRO: &str = "Each dot is a tensor: how wide its values spread, and how large the largest is. The lines are 3, 6, 12, \
                         24 and 48 standard deviations; what lies far above 6 is hard to quantise with one scale.";

const MAX_DOTS: usize = 1_500;

pub fn draw(report: &Report) -> String {
    let mut dots: Vec<(&Tensor, f64, f64)> = report
        .tensors
        .iter()
        .filter_map(|tensor| {
            let moments = &tensor.stats.as_ref()?.moments;
            let std = moments.std();
            (std > 0.0 && std.is_finite()).then(|| (tensor, std, moments.peak()))
        })
        .collect();
    if dots.is_empty() {
        return String::new();
    }
    dots.sort_by(|a, b| b.0.peak_sigmas().total_cmp(&a.0.peak_sigmas()));
    let top: Vec<&Tensor> = dots.iter().take(16).map(|(tensor, _, _)| *tensor).collect();
    let left_out = dots.len().saturating_sub(MAX_DOTS);
    dots.truncate(MAX_DOTS);
    let mut out = String::from("<div class=\"two\">\n");
    out.push_str(&scatter(&dots));
    out.push_str(&list(&top));
    out.push_str("</div>\n");
    if left_out > 0 {
        let _ = writeln!(out, "<p class=\"left-out\">{left_out} tensors with nearer values are not drawn.</p>");
    }
    out
}

fn scatter(dots: &[(&Tensor, f64, f64)]) -> String {
    const WIDTH: f64 = 620.0;
    const HEIGHT: f64 = 380.0;
    const LEFT: f64 = 56.0;
    const BOTTOM: f64 = 34.0;
    let range = |values: Vec<f64>| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min).log10();
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max).log10();
        (low - 0.1, high.max(low + 0.1) + 0.1)
    };
    let across = range(dots.iter().map(|dot| dot.1).collect());
    let up = range(dots.iter().map(|dot| dot.2.max(f64::MIN_POSITIVE)).collect());
    let to_x = |log: f64| LEFT + (log - across.0) / (across.1 - across.0) * (WIDTH - LEFT - 10.0);
    let to_y = |log: f64| HEIGHT - BOTTOM - (log - up.0) / (up.1 - up.0) * (HEIGHT - BOTTOM - 10.0);
    let mut svg = Svg::new("scatter", WIDTH, HEIGHT, "spread and largest magnitude of each tensor");
    for (log, text) in decades(across) {
        svg.line((to_x(log), 10.0), (to_x(log), HEIGHT - BOTTOM), "grid");
        svg.text(to_x(log), HEIGHT - BOTTOM + 15.0, Anchor::Middle, "small", &text);
    }
    for (log, text) in decades(up) {
        svg.line((LEFT, to_y(log)), (WIDTH - 10.0, to_y(log)), "grid");
        svg.text(LEFT - 7.0, to_y(log) + 4.0, Anchor::End, "small", &text);
    }
    svg.text(WIDTH - 10.0, HEIGHT - 4.0, Anchor::End, "small", "standard deviation");
    svg.text(4.0, 8.0, Anchor::Start, "small", "largest magnitude");
    for sigmas in [3.0f64, 6.0, 12.0, 24.0, 48.0] {
        let offset = sigmas.log10();
        // Where the line enters and leaves the frame.
        let (from, to) = (across.0.max(up.0 - offset), across.1.min(up.1 - offset));
        if to > from {
            svg.line((to_x(from), to_y(from + offset)), (to_x(to), to_y(to + offset)), "sigma");
            if to - from > 0.15 {
                svg.text(to_x(to) - 4.0, to_y(to + offset) + 13.0, Anchor::End, "small faint", &format!("{sigmas} σ"));
            }
        }
    }
    let mut parts = BTreeSet::new();
    // The farthest were sorted to the front; they are drawn last, on top.
    for (tensor, std, peak) in dots.iter().rev() {
        parts.insert(tensor.place.part);
        let tip = format!(
            "{} · {} · std {} · largest {} ({:.1} σ) · {}",
            short_name(&tensor.name),
            tensor.dtype,
            number::short(*std),
            number::short(*peak),
            tensor.peak_sigmas(),
            number::plural(tensor.stats.as_ref().map_or(0, |stats| stats.outliers()), "outlier"),
        );
        svg.dot(to_x(std.log10()), to_y(peak.log10()), 4.0, &palette::of_part(tensor.place.part), &tip);
    }
    format!("<div>{}{}</div>\n", palette::legend(&parts, &[]), svg.framed())
}

fn decades(range: (f64, f64)) -> Vec<(f64, String)> {
    let factors: &[f64] = match range.1 - range.0 {
        wide if wide > 2.5 => &[1.0],
        middle if middle > 0.9 => &[1.0, 3.0],
        _ => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
    };
    let mut found = Vec::new();
    for power in -320i32..309 {
        for factor in factors {
            let log = f64::from(power) + factor.log10();
            if log > range.0 && log < range.1 {
                found.push((log, mark(factor * 10f64.powi(power))));
            }
        }
    }
    found
}

fn list(tensors: &[&Tensor]) -> String {
    let mut out = String::from(
        "<div class=\"scroll\"><table class=\"top\"><thead><tr><th>farthest values</th><th>σ</th><th>largest</th><th>outliers</th></tr>\
         </thead><tbody>\n",
    );
    for tensor in tensors {
        let Some(stats) = &tensor.stats else { continue };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{:.1}</td><td>{}</td><td>{}</td></tr>",
            escape(&short_name(&tensor.name)),
            tensor.peak_sigmas(),
            number::short(stats.moments.peak()),
            number::grouped(stats.outliers()),
        );
    }
    out + "</tbody></table></div>\n"
}
