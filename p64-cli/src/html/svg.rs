//! The few SVG elements that the figures are made of. Colours come from classes, so that both themes fit.

use super::escape::escape;
use std::fmt::Write;

/// A figure under construction, in its own units.
pub struct Svg {
    out: String,
}

/// Where text stands relative to its point.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A number with two decimals at most.
pub fn n(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A number for an axis, in three digits: `0.3`, `1.42`, `10`, `2e-5`.
pub fn mark(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e5).contains(&magnitude) {
        let text = format!("{value:.1e}");
        return text.replace(".0e", "e");
    }
    // From -3 to 4: the conversion only drops the fraction.
    let places = usize::try_from((2 - magnitude.log10().floor() as i32).max(0)).unwrap_or(0);
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl Svg {
    /// A figure of that size; `label` says what it shows to those who do not see it.
    pub fn new(class: &str, width: f64, height: f64, label: &str) -> Self {
        // Bars fill the cell of a table whatever its shape.
        let stretched = if class == "bar" { " preserveAspectRatio=\"none\"" } else { "" };
        let out = format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {} {}\"{stretched} role=\"img\" aria-label=\"{}\">\n",
            n(width),
            n(height),
            escape(label)
        );
        Self { out }
    }

    /// A filled rectangle; `tip` is shown under the pointer.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str, tip: &str) -> &mut Self {
        let (x, y, width, height) = (n(x), n(y), n(width.max(0.05)), n(height));
        // Writing to a string cannot fail, here and below.
        let _ = write!(self.out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" class=\"{class}\"");
        self.tip(tip)
    }

    fn tip(&mut self, tip: &str) -> &mut Self {
        if !tip.is_empty() {
            let _ = write!(self.out, " data-t=\"{}\"", escape(tip));
        }
        self.out.push_str("/>\n");
        self
    }

    /// A dot.
    pub fn dot(&mut self, x: f64, y: f64, radius: f64, class: &str, tip: &str) -> &mut Self {
        let _ = write!(self.out, "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{class}\"", n(x), n(y), n(radius));
        self.tip(tip)
    }

    /// A line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) -> &mut Self {
        let (x1, y1, x2, y2) = (n(from.0), n(from.1), n(to.0), n(to.1));
        let _ = writeln!(self.out, "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"{class}\"/>");
        self
    }

    /// A path of these commands.
    pub fn path(&mut self, commands: &str, class: &str, tip: &str) -> &mut Self {
        let _ = write!(self.out, "<path d=\"{commands}\" class=\"{class}\"");
        self.tip(tip)
    }

    /// Text on one line.
    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) -> &mut Self {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let _ =
            writeln!(self.out, "<text x=\"{}\" y=\"{}\"{anchor} class=\"{class}\">{}</text>", n(x), n(y), escape(text));
        self
    }

    /// The figure.
    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }

    /// The figure in a frame that scrolls sideways where the window is narrow.
    pub fn framed(self) -> String {
        format!("<div class=\"scroll\">{}</div>\n", self.finish())
    }
}

/// Round steps from 0 to `most`, about `count` of them.
pub fn ticks(most: f64, count: f64) -> Vec<f64> {
    if most.is_nan() || most <= 0.0 || !most.is_finite() {
        return vec![0.0];
    }
    let raw = most / count;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= raw);
    let step = step.unwrap_or(10.0 * power);
    let mut ticks = Vec::new();
    let mut tick = 0.0;
    while tick <= most * 1.000_001 && ticks.len() < 50 {
        ticks.push(tick);
        tick += step;
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ticks() {
        assert_eq!([0.0, -0.001, 1.5, 100.0, 0.126].map(n), ["0", "0", "1.5", "100", "0.13"]);
        assert_eq!([0.0, 0.3, 10.0, -1.417, 2e-5, 1649.0].map(mark), ["0", "0.3", "10", "-1.42", "2e-5", "1649"]);
        assert_eq!(ticks(98.4, 5.0), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!(ticks(0.0, 5.0), [0.0]);
        assert_eq!(ticks(f64::NAN, 5.0), [0.0]);
    }
}
