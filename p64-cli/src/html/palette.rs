//! Legends, and steps of the colour scales. The colours themselves are in `style.css`, for both themes.

use super::escape::escape;
use p64_std::stats::Part;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Steps of a colour scale, 0 to 8.
pub const STEPS: usize = 9;

/// The class of a part's colour.
pub fn of_part(part: Part) -> String {
    format!("p-{}", part.slug())
}

/// A legend of the parts that are there, and of what else `more` names as class and text.
pub fn legend(parts: &BTreeSet<Part>, more: &[(&str, &str)]) -> String {
    let parts = parts.iter().map(|part| (of_part(*part), part.name().to_owned()));
    let more = more.iter().map(|(class, name)| ((*class).to_owned(), (*name).to_owned()));
    entries(parts.chain(more))
}

/// A legend of classes and texts.
pub fn entries(entries: impl Iterator<Item = (String, String)>) -> String {
    let mut out = String::from("<ul class=\"legend\">");
    for (class, name) in entries {
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<li><svg class=\"swatch\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect width=\"10\" height=\"10\" \
             class=\"{class}\"/></svg>{}</li>",
            escape(&name)
        );
    }
    out + "</ul>\n"
}

/// A scale of all steps between two texts.
pub fn scale(prefix: &str, low: &str, high: &str) -> String {
    let mut out = format!("<p class=\"scale\">{}<svg viewBox=\"0 0 90 10\" aria-hidden=\"true\">", escape(low));
    for step in 0..STEPS {
        let _ = write!(out, "<rect x=\"{}\" width=\"10\" height=\"10\" class=\"{prefix}{step}\"/>", step * 10);
    }
    let _ = writeln!(out, "</svg>{}</p>", escape(high));
    out
}

/// The step of `share`, which goes from 0 to 1.
pub fn step(share: f64) -> usize {
    if share.is_nan() {
        return 0;
    }
    // From 0 to 9: the conversion only drops the fraction.
    let step = (share.clamp(0.0, 1.0) * STEPS as f64) as usize;
    step.min(STEPS - 1)
}
