//! A report of `p64 stats` as one page that needs nothing else: no network, no other file.
//!
//! Everything is drawn here as SVG; the script only shows what lies under the pointer, sorts, filters and zooms. Names and
//! keys come from files that nobody vouches for: all text passes [`escape`](fn@escape), and the page's own policy permits no script and
//! no style but the two it was made with, by their digests. How much is drawn of a large model is bounded, so that the page
//! stays below 3 MB; what is left out is said.

mod escape;
mod grid;
mod map;
mod outliers;
mod palette;
mod sizes;
mod spread;
mod svg;
mod table;

use crate::output::number;
use crate::stats::Report;
use escape::{digest, escape, short_name};
use std::fmt::Write;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

/// The page.
pub fn page(report: &Report) -> String {
    let mut body = String::new();
    header(&mut body, report);
    warnings(&mut body, report);
    section(&mut body, "map", "What lies where", &map::intro(report), &map::draw(report));
    section(&mut body, "sizes", "Where the bytes are", sizes::INTRO, &sizes::draw(report));
    section(&mut body, "types", "Element types", sizes::TYPES_INTRO, &(sizes::types(report) + &grid::types(report)));
    section(&mut body, "std", "Spread of the weights", grid::STD_INTRO, &grid::std(report));
    section(&mut body, "shapes", "Distributions, layer by layer", &spread::intro(report), &spread::draw(report));
    section(&mut body, "peaks", "Outliers", outliers::INTRO, &(outliers::draw(report) + &grid::peaks(report)));
    section(&mut body, "tensors", "Every tensor", &table::intro(report), &table::draw(report));
    let title = escape(&title(report));
    let (style, script) = (digest(STYLE), digest(SCRIPT));
    let policy =
        format!("default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}: weights</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\
         <footer>Made by p64 {}. An outlier stands more than 6 standard deviations from its tensor's mean.</footer>\n\
         </main>\n<div id=\"tip\" role=\"status\" hidden></div>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn title(report: &Report) -> String {
    let file = std::path::Path::new(&report.path).file_name().map(|name| name.to_string_lossy().into_owned());
    report.name.clone().filter(|name| !name.trim().is_empty()).or(file).unwrap_or_else(|| report.path.clone())
}

fn section(out: &mut String, id: &str, title: &str, intro: &str, body: &str) {
    if body.is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _ =
        write!(out, "<section id=\"{id}\">\n<h2>{title}</h2>\n<p class=\"intro\">{intro}</p>\n{body}\n</section>\n");
}

fn header(out: &mut String, report: &Report) {
    let bytes = report.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
    let (elements, payload) = (report.elements(), report.bytes());
    let bits = number::ratio(payload, elements) * 8.0;
    let padding = report.padding();
    let layers =
        report.outlines.iter().filter_map(|outline| outline.place.layer).collect::<std::collections::BTreeSet<_>>();
    let architecture = report.architecture.as_ref().map(|name| format!("{} · ", escape(&short_name(name))));
    let figures = [
        ("file", number::bytes(bytes), report.format.clone()),
        ("values", number::count(elements), format!("{} tensors", number::grouped(report.tensors.len() as u64))),
        ("layers", layers.len().to_string(), format!("{bits:.2} bits a value")),
        ("padding", number::share(padding, bytes), number::bytes(padding)),
        ("not finite", number::grouped(report.not_finite()), "NaN or infinite".to_owned()),
        ("outliers", number::grouped(report.outliers()), "beyond 6 sigma".to_owned()),
    ];
    let _ = write!(
        out,
        "<header>\n<div><h1>{}</h1>\n<p class=\"path\">{}{}</p></div>\n\
         <button id=\"theme\" type=\"button\" aria-label=\"Light or dark\">Light / dark</button>\n</header>\n<dl class=\"figures\">\n",
        escape(&short_name(&title(report))),
        architecture.unwrap_or_default(),
        escape(&report.path),
    );
    for (name, value, note) in figures {
        let _ = writeln!(
            out,
            "<div><dt>{name}</dt><dd>{}</dd><dd class=\"note\">{}</dd></div>",
            escape(&value),
            escape(&note)
        );
    }
    out.push_str("</dl>\n");
}

fn warnings(out: &mut String, report: &Report) {
    const SHOWN: usize = 20;
    let bad: Vec<_> = report.tensors.iter().filter(|tensor| tensor.not_finite() > 0).collect();
    if bad.is_empty() {
        return;
    }
    out.push_str("<div class=\"alarm\" role=\"alert\"><strong>There are values that are no numbers.</strong>\n<ul>\n");
    for tensor in bad.iter().take(SHOWN) {
        let _ = writeln!(out, "<li>{}</li>", escape(&crate::stats::not_finite(tensor)));
    }
    if bad.len() > SHOWN {
        let _ = writeln!(out, "<li>and {} tensors more</li>", bad.len() - SHOWN);
    }
    out.push_str("</ul></div>\n");
}
