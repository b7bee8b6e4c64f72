//! Grids of kinds by layers: element types, spread, outliers.

use super::escape::short_name;
use super::palette::{self, STEPS};
use super::sizes;
use super::svg::{Anchor, Svg};
use crate::output::number;
use crate::stats::{Report, Tensor};
use p64_core::DType;
use p64_std::stats::Part;
use std::collections::{BTreeMap, BTreeSet};

pub const STD_INTRO: &str = "The standard deviation of each kind of tensor in each layer, against the kind's own median over \
                             the layers (at the right): blue is narrower, orange wider.";

const WIDTH: f64 = 1120.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 90.0;
const ROW: f64 = 20.0;
/// Cells of a grid; of a model with more, the largest kinds are drawn.
const MAX_CELLS: usize = 2_400;
const MAX_LAYERS: usize = 200;

/// The tensors of one kind in one layer: mostly one, with experts apart many.
#[derive(Clone, Debug, Default)]
struct Cell {
    tensors: usize,
    norm: bool,
    dtypes: BTreeSet<u16>,
    /// The mean of the standard deviations.
    std: f64,
    /// The greatest magnitude, in standard deviations.
    peak: f64,
    outliers: u64,
    bad: u64,
}

/// The cells of a kind, by layer.
type Cells = BTreeMap<u32, Cell>;

struct Grid {
    layers: Vec<u32>,
    /// Kinds with their cells by layer, in the order of the computation.
    rows: Vec<(String, Cells)>,
    left_out: usize,
    layers_left_out: usize,
}

fn collect(report: &Report) -> Grid {
    let mut kinds: BTreeMap<(Part, &str), (u64, Cells)> = BTreeMap::new();
    for tensor in &report.tensors {
        let Some(layer) = tensor.place.layer else { continue };
        let (bytes, row) = kinds.entry((tensor.place.part, &tensor.place.kind)).or_default();
        *bytes = bytes.saturating_add(tensor.bytes);
        add(row.entry(layer).or_default(), tensor);
    }
    let layers: BTreeSet<u32> = kinds.values().flat_map(|(_, row)| row.keys().copied()).collect();
    let layers_left_out = layers.len().saturating_sub(MAX_LAYERS);
    let layers: Vec<u32> = layers.into_iter().take(MAX_LAYERS).collect();
    let room = MAX_CELLS / layers.len().max(1);
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, (bytes, _))| std::cmp::Reverse(*bytes));
    let left_out = kinds.len().saturating_sub(room);
    kinds.truncate(room);
    kinds.sort_by_key(|(key, _)| *key);
    let rows = kinds.into_iter().map(|((_, kind), (_, row))| (kind.to_owned(), row)).collect();
    Grid { layers, rows, left_out, layers_left_out }
}

fn add(cell: &mut Cell, tensor: &Tensor) {
    cell.dtypes.insert(tensor.dtype.id());
    cell.norm = tensor.place.part == Part::Norm;
    if let Some(stats) = &tensor.stats {
        let (before, after) = (cell.tensors as f64, cell.tensors as f64 + 1.0);
        cell.std = (cell.std * before + stats.moments.std()) / after;
        cell.peak = cell.peak.max(tensor.peak_sigmas());
        cell.outliers = cell.outliers.saturating_add(stats.outliers());
        cell.bad = cell.bad.saturating_add(stats.moments.not_finite());
    }
    cell.tensors += 1;
}

/// What a cell looks like: class, text under the pointer, text in it where there is room.
type Look = (String, String, String);

fn draw(
    grid: &Grid,
    class: &str,
    label: &str,
    note: &dyn Fn(usize) -> String,
    look: &dyn Fn(usize, &Cell) -> Look,
) -> String {
    let step = ((WIDTH - LEFT - RIGHT) / grid.layers.len().max(1) as f64).min(60.0);
    let height = ROW * grid.rows.len() as f64;
    let mut svg = Svg::new(class, WIDTH, height + 20.0, label);
    for (at, (kind, row)) in grid.rows.iter().enumerate() {
        let y = at as f64 * ROW;
        svg.text(LEFT - 8.0, y + 14.0, Anchor::End, "small", &fit(kind));
        for (column, layer) in grid.layers.iter().enumerate() {
            let Some(cell) = row.get(layer) else { continue };
            let (class, tip, text) = look(at, cell);
            let x = LEFT + column as f64 * step;
            let many = if cell.tensors > 1 { format!(" ({} tensors)", cell.tensors) } else { String::new() };
            let tip = format!("layer {layer} · {}{many} · {tip}", short_name(kind));
            svg.rect(x, y, step - 1.0, ROW - 1.0, &class, &tip);
            if cell.bad > 0 {
                svg.path(&cross(x, y, step - 1.0), "bad", &tip);
            } else if step >= 34.0 && !text.is_empty() {
                svg.text(x + step / 2.0, y + 13.5, Anchor::Middle, "cell", &text);
            }
        }
        svg.text(LEFT + step * grid.layers.len() as f64 + 8.0, y + 14.0, Anchor::Start, "small", &note(at));
    }
    let every = ((24.0 / step).ceil() as usize).max(1);
    for (column, layer) in grid.layers.iter().enumerate().step_by(every) {
        let x = LEFT + (column as f64 + 0.5) * step;
        svg.text(x, height + 14.0, Anchor::Middle, "small", &layer.to_string());
    }
    let mut out = svg.framed();
    if grid.layers_left_out > 0 {
        out.push_str(&format!("<p class=\"left-out\">{} layers more are not drawn.</p>\n", grid.layers_left_out));
    }
    if grid.left_out > 0 {
        out.push_str(&format!("<p class=\"left-out\">{} smaller kinds are not drawn.</p>\n", grid.left_out));
    }
    out
}

fn fit(kind: &str) -> String {
    let kind = kind.strip_suffix(".weight").unwrap_or(kind);
    if kind.chars().count() > 25 { kind.chars().take(24).chain(['…']).collect() } else { kind.to_owned() }
}

fn cross(x: f64, y: f64, width: f64) -> String {
    let (r, b) = (x + width, y + ROW - 1.0);
    format!("M{x:.1},{y:.1}L{r:.1},{b:.1}M{x:.1},{b:.1}L{r:.1},{y:.1}")
}

/// Element types.
pub fn types(report: &Report) -> String {
    let grid = collect(report);
    if grid.rows.is_empty() {
        return String::new();
    }
    let ranked = sizes::ranked(report);
    let name = |id: u16| DType::from_id(id).to_string();
    let look = |_: usize, cell: &Cell| {
        let first = cell.dtypes.first().copied().unwrap_or_default();
        let step = ranked.iter().find(|(dtype, _)| dtype.id() == first).map_or(0, |(_, step)| *step);
        let names: Vec<String> = cell.dtypes.iter().map(|id| name(*id)).collect();
        (format!("t{step}"), names.join(", "), String::new())
    };
    let note = |row: usize| {
        let kinds: BTreeSet<u16> = grid
            .rows
            .get(row)
            .into_iter()
            .flat_map(|(_, row)| row.values())
            .flat_map(|cell| cell.dtypes.iter().copied())
            .collect();
        match kinds.len() {
            1 => kinds.first().map(|id| name(*id)).unwrap_or_default(),
            _ => "mixed".to_owned(),
        }
    };
    let legend = palette::entries(ranked.iter().map(|(dtype, step)| (format!("t{step}"), dtype.to_string())));
    legend + &draw(&grid, "grid-types", "element type of each kind in each layer", &note, &look)
}

/// Standard deviations against each kind's median.
pub fn std(report: &Report) -> String {
    let grid = collect(report);
    if grid.rows.is_empty() {
        return String::new();
    }
    let medians: Vec<f64> =
        grid.rows.iter().map(|(_, row)| median(row.values().map(|cell| cell.std).collect())).collect();
    let ratio = |row: usize, cell: &Cell| {
        let median = medians.get(row).copied().unwrap_or(0.0);
        if median > 0.0 && cell.std > 0.0 { (cell.std / median).log2() } else { 0.0 }
    };
    let all = || grid.rows.iter().enumerate().flat_map(|(at, (_, row))| row.values().map(move |cell| (at, cell)));
    let only_norms = all().all(|(_, cell)| cell.norm);
    let chosen = all().filter(|(_, cell)| only_norms || !cell.norm);
    let mut sizes: Vec<f64> = chosen.map(|(at, cell)| ratio(at, cell).abs()).collect();
    sizes.sort_by(f64::total_cmp);
    // The scale ends where one cell of twenty lies beyond. Norms, which differ more, would leave the matrices pale.
    let reach = sizes.get(sizes.len() * 19 / 20).copied().unwrap_or(0.0).max(0.1);
    let look = |row: usize, cell: &Cell| {
        let step = palette::step((ratio(row, cell) / reach + 1.0) / 2.0);
        let tip = format!("std {} · {:.2} of the median", number::short(cell.std), ratio(row, cell).exp2());
        (format!("d{step}"), tip, String::new())
    };
    let note = |row: usize| medians.get(row).map(|median| number::short(*median)).unwrap_or_default();
    let (low, high) = (format!("{:.2} of the median", (-reach).exp2()), format!("{:.2}", reach.exp2()));
    palette::scale("d", &low, &high)
        + &draw(&grid, "grid-std", "standard deviation of each kind in each layer", &note, &look)
}

/// The farthest value of each tensor in standard deviations.
pub fn peaks(report: &Report) -> String {
    const LIMITS: [f64; STEPS - 1] = [3.0, 4.5, 6.0, 9.0, 12.0, 18.0, 24.0, 36.0];
    let grid = collect(report);
    if grid.rows.is_empty() {
        return String::new();
    }
    let look = |_: usize, cell: &Cell| {
        let step = LIMITS.iter().filter(|limit| cell.peak >= **limit).count();
        let outliers = number::plural(cell.outliers, "outlier");
        (format!("q{step}"), format!("farthest {:.1} sigma · {outliers}", cell.peak), format!("{:.0}", cell.peak))
    };
    let note = |row: usize| {
        let peak = grid.rows.get(row).into_iter().flat_map(|(_, row)| row.values()).map(|cell| cell.peak);
        format!("up to {:.0} σ", peak.fold(0.0, f64::max))
    };
    "<h3>How far the farthest value stands, in standard deviations</h3>\n".to_owned()
        + &palette::scale("q", "below 3 σ", "above 36 σ")
        + &draw(&grid, "grid-peaks", "the farthest value of each kind in each layer", &note, &look)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle), values.len().is_multiple_of(2).then(|| values.get(middle.wrapping_sub(1))).flatten()) {
        (Some(high), Some(low)) => (low + high) / 2.0,
        (Some(only), None) => *only,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn medians() {
        assert_eq!([median(vec![]), median(vec![3.0, 1.0]), median(vec![5.0, 1.0, 2.0])], [0.0, 2.0, 2.0]);
    }
}
