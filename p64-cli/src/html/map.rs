//! The files to scale: one strip for each, and under it a row for each layer.

use super::palette;
use super::svg::{Anchor, Svg, n, ticks};
use crate::output::number;
use crate::stats::Report;
use p64_std::stats::{FileLayout, Region, What};
use std::collections::BTreeSet;

const WIDTH: f64 = 1120.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 150.0;
/// Rectangles of all rows together, and rows, beyond which neighbours are drawn as one, and rows left out.
const MAX_RECTS: usize = 3_000;
/// Files that are drawn as strips.
const MAX_STRIPS: usize = 16;
const MAX_ROWS: usize = 128;

/// A run of neighbours that belong together.
struct Row<'f> {
    label: String,
    layer: Option<u32>,
    regions: &'f [Region],
}

impl Row<'_> {
    fn start(&self) -> u64 {
        self.regions.first().map_or(0, |region| region.start)
    }

    fn len(&self) -> u64 {
        self.regions.last().map_or(0, |last| last.start.saturating_add(last.len).saturating_sub(self.start()))
    }
}

pub fn intro(report: &Report) -> String {
    let files = match report.files.len() {
        1 => "The file from its first byte to its last, to scale".to_owned(),
        files => format!("The {files} files from first byte to last, to one scale"),
    };
    format!(
        "{files}: turn the wheel over a strip to zoom, double-click to see all of it again. Below, the same bytes row by row. \
         Layers share one scale; what is marked <i>own scale</i> fills its row whatever its size."
    )
}

pub fn draw(report: &Report) -> String {
    let longest = report.files.iter().map(|file| file.bytes).max().unwrap_or(0);
    let mut out = String::new();
    let mut parts = BTreeSet::new();
    let mut more = BTreeSet::new();
    for region in report.files.iter().flat_map(|file| &file.regions) {
        match &region.what {
            What::Tensor(index) => {
                parts.extend(report.outlines.get(*index).map(|outline| outline.place.part));
            }
            What::Padding => {
                more.insert(("pad", "padding"));
            }
            _ => {
                more.insert(("sec", "header, tables, keys, tokenizer"));
            }
        }
    }
    out.push_str(&palette::legend(&parts, &more.into_iter().collect::<Vec<_>>()));
    let strips = report.files.len().min(MAX_STRIPS);
    let least = (WIDTH * strips as f64 / MAX_RECTS as f64).max(0.6);
    for file in report.files.iter().take(MAX_STRIPS) {
        out.push_str(&strip(report, file, longest, least));
    }
    if report.files.len() > strips {
        out.push_str(&format!("<p class=\"left-out\">{} files more have no strip.</p>\n", report.files.len() - strips));
    }
    out.push_str(&rows(report));
    out
}

fn class(report: &Report, what: &What) -> String {
    match what {
        What::Tensor(index) => {
            report.outlines.get(*index).map_or_else(|| "p-other".to_owned(), |o| palette::of_part(o.place.part))
        }
        What::Padding => "pad".to_owned(),
        _ => "sec".to_owned(),
    }
}

fn name(report: &Report, what: &What) -> String {
    match what {
        What::Tensor(index) => {
            let Some(outline) = report.outlines.get(*index) else { return String::new() };
            format!("{} · {}", super::short_name(&outline.name), outline.dtype)
        }
        What::Section(name) => (*name).to_owned(),
        What::Added(name) => super::short_name(name),
        What::Padding => "padding".to_owned(),
    }
}

/// Draws neighbours, those narrower than `least` together.
fn bars(svg: &mut Svg, report: &Report, regions: &[Region], place: (f64, f64, f64), scale: f64, least: f64) {
    let (left, top, height) = place;
    let origin = regions.first().map_or(0, |region| region.start);
    let mut at = 0;
    while let Some(first) = regions.get(at) {
        let mut count = 0;
        let (mut len, mut widest) = (0u64, first);
        for region in regions.get(at..).unwrap_or_default() {
            if count > 0 && float(len) * scale >= least {
                break;
            }
            len = len.saturating_add(region.len);
            count += 1;
            if region.len > widest.len {
                widest = region;
            }
        }
        let (x, width) = (left + float(first.start.saturating_sub(origin)) * scale, float(len) * scale);
        let what = match count {
            1 => name(report, &widest.what),
            _ => format!("{} and {} more", name(report, &widest.what), count - 1),
        };
        let tip = format!("{what} · {} at {}", number::bytes(len), number::grouped(first.start));
        svg.rect(x, top, width, height, &class(report, &widest.what), &tip);
        at += count;
    }
}

fn strip(report: &Report, file: &FileLayout, longest: u64, least: f64) -> String {
    const HEIGHT: f64 = 36.0;
    let width = WIDTH * number::ratio(file.bytes, longest.max(1));
    let scale = width / float(file.bytes.max(1));
    let path = file.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let label = format!("{}, {} to scale", super::short_name(&path), number::bytes(file.bytes));
    let mut bars_only = Svg::new("strip", WIDTH, HEIGHT, &label);
    bars(&mut bars_only, report, &file.regions, (0.0, 0.0, HEIGHT), scale, least);
    let mut axis = Svg::new("axis", WIDTH, 16.0, "scale");
    for tick in ticks(float(longest), 8.0) {
        let x = tick * WIDTH / float(longest.max(1));
        // A tick is a round number of bytes, far below 2^63.
        let bytes = number::bytes(tick as u64);
        let anchor = if x < 20.0 {
            Anchor::Start
        } else if x > WIDTH - 20.0 {
            Anchor::End
        } else {
            Anchor::Middle
        };
        axis.line((x, 0.0), (x, 4.0), "rule").text(x, 14.0, anchor, "small", &bytes);
    }
    let (bars_only, axis) = (bars_only.finish(), axis.finish());
    format!(
        "<figure class=\"file\"><figcaption>{} <span class=\"zoomed\"></span></figcaption>\n\
         <div class=\"scroll\"><div class=\"stripbox\" data-bytes=\"{}\" data-width=\"{}\">{bars_only}{axis}</div></div></figure>\n",
        super::escape(&label),
        file.bytes,
        n(WIDTH),
    )
}

/// Cuts a file into runs of one layer, of tensors outside layers, and of tables. Padding goes with what stands before it.
fn cut<'f>(report: &Report, file: &'f FileLayout) -> Vec<Row<'f>> {
    // Some(Some(n)) for layer n, Some(None) for other tensors, None for tables.
    let kind = |region: &Region| match &region.what {
        What::Tensor(index) => Some(report.outlines.get(*index).and_then(|outline| outline.place.layer)),
        _ => None,
    };
    let mut rows = Vec::new();
    let mut begin = 0;
    for end in 1..=file.regions.len() {
        let (Some(first), next) = (file.regions.get(begin), file.regions.get(end)) else { break };
        let goes_on = next.is_some_and(|next| next.what == What::Padding || kind(next) == kind(first));
        if !goes_on {
            let (label, layer) = match kind(first) {
                Some(Some(layer)) => (format!("layer {layer}"), Some(layer)),
                Some(None) => ("no layer".to_owned(), None),
                None if matches!(first.what, What::Added(_)) => ("keys".to_owned(), None),
                None => ("tables".to_owned(), None),
            };
            rows.push(Row { label, layer, regions: file.regions.get(begin..end).unwrap_or_default() });
            begin = end;
        }
    }
    rows
}

fn rows(report: &Report) -> String {
    let mut rows: Vec<Row<'_>> = report.files.iter().flat_map(|file| cut(report, file)).collect();
    let all = rows.len();
    rows.truncate(MAX_ROWS);
    let widest = rows.iter().filter(|row| row.layer.is_some()).map(Row::len).max().unwrap_or(0);
    let (height, gap) = if rows.len() > 48 { (9.0, 2.0) } else { (14.0, 3.0) };
    let width = WIDTH - LEFT - RIGHT;
    let rects: usize = rows.iter().map(|row| row.regions.len()).sum();
    let least = if rects > MAX_RECTS { width * rows.len() as f64 / MAX_RECTS as f64 } else { 0.6 };
    let mut svg = Svg::new("rows", WIDTH, (height + gap) * rows.len() as f64 + 8.0, "each layer's bytes");
    for (at, row) in rows.iter().enumerate() {
        let y = 3.0 + at as f64 * (height + gap);
        let own = row.layer.is_none();
        let scale = width / float(if own { row.len() } else { widest }.max(1));
        bars(&mut svg, report, row.regions, (LEFT, y, height), scale, least);
        // Narrow rows have room for every second label.
        if height < 12.0 && at % 2 == 1 {
            continue;
        }
        svg.text(LEFT - 8.0, y + height - (height - 8.0) / 2.0, Anchor::End, "small", &row.label);
        let note = format!("{}{}", number::bytes(row.len()), if own { " · own scale" } else { "" });
        svg.text(WIDTH - RIGHT + 8.0, y + height - (height - 8.0) / 2.0, Anchor::Start, "small", &note);
    }
    let mut out = svg.framed();
    if all > rows.len() {
        out.push_str(&format!("<p class=\"left-out\">{} rows more are not drawn.</p>\n", all - rows.len()));
    }
    out
}

#[expect(clippy::cast_precision_loss, reason = "places on a screen")]
fn float(bytes: u64) -> f64 {
    bytes as f64
}
