//! A report as text.

use super::{Report, Tensor};
use crate::output::number;
use crate::output::table::{Align, Table, one_line};
use p64_std::stats::{BINS, Histogram};

/// Columns of a histogram in the table.
const BARS: usize = 16;

/// The table of tensors, and the sums under it.
pub fn render(report: &Report) -> String {
    let head = [
        ("type", Align::Left),
        ("shape", Align::Right),
        ("bytes", Align::Right),
        ("min", Align::Right),
        ("max", Align::Right),
        ("mean", Align::Right),
        ("std", Align::Right),
        ("zeros", Align::Right),
        ("outliers", Align::Right),
        ("NaN, inf", Align::Right),
        ("histogram", Align::Left),
        ("name", Align::Left),
    ];
    let mut table = Table::new(head);
    for tensor in &report.tensors {
        table.row(row(tensor));
    }
    format!("{}: {}\n\n{}", one_line(&report.path), headline(report), table.render())
}

fn row(tensor: &Tensor) -> [String; 12] {
    let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
    let (dtype, shape, bytes) = (tensor.dtype.to_string(), shape.join(" x "), number::grouped(tensor.bytes));
    let name = one_line(&tensor.name);
    let Some(stats) = &tensor.stats else {
        let none = || "-".to_owned();
        let dashes = [none(), none(), none(), none(), none(), none(), none(), "not decoded".to_owned()];
        let [min, max, mean, std, zeros, outliers, bad, histogram] = dashes;
        return [dtype, shape, bytes, min, max, mean, std, zeros, outliers, bad, histogram, name];
    };
    let moments = &stats.moments;
    let of_finite = |value: f64| if moments.finite() > 0 { number::short(value) } else { "-".to_owned() };
    let share = |count: u64| if count == 0 { "0".to_owned() } else { number::share(count, moments.elements) };
    [
        dtype,
        shape,
        bytes,
        of_finite(moments.min),
        of_finite(moments.max),
        of_finite(moments.mean),
        of_finite(moments.std()),
        share(moments.zeros),
        number::grouped(stats.outliers()),
        number::grouped(moments.not_finite()),
        bars(&stats.histogram),
        name,
    ]
}

/// A histogram in [`BARS`] characters, the fullest of them as high as a line.
fn bars(histogram: &Histogram) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let sums: Vec<u64> = histogram.counts.chunks(BINS / BARS).map(|bins| bins.iter().sum()).collect();
    let most = sums.iter().copied().max().unwrap_or(0);
    let height = |sum: &u64| {
        // From 0 to 7: the conversion only drops the fraction.
        let height = (number::ratio(*sum, most) * 7.0).round() as usize;
        if *sum == 0 { ' ' } else { HEIGHTS.get(height).copied().unwrap_or('█') }
    };
    sums.iter().map(height).collect()
}

/// Tensors, values, and how fast they were gone through.
pub fn headline(report: &Report) -> String {
    let tensors = number::plural(report.tensors.len() as u64, "tensor");
    let of = match report.tensors.len() {
        counted if counted == report.tensor_count => String::new(),
        _ => format!(" of {}", number::grouped(report.tensor_count as u64)),
    };
    let (values, time) = (number::count(report.elements()), number::duration(report.took));
    let speed = number::bytes_per_second(report.bytes(), report.took);
    let rate = number::per_second(report.elements(), report.took) / 1e6;
    format!("{tensors}{of}, {values} values in {time}, {speed}, {rate:.0} M values/s")
}

/// The warning about a tensor with values that are no finite numbers.
pub fn not_finite(tensor: &Tensor) -> String {
    let moments = tensor.stats.as_ref().map(|stats| stats.moments).unwrap_or_default();
    let mut parts = Vec::new();
    for (count, what) in
        [(moments.nan, "NaN"), (moments.plus_infinity, "+infinity"), (moments.minus_infinity, "-infinity")]
    {
        if count > 0 {
            parts.push(format!("{} {what}", number::grouped(count)));
        }
    }
    let all = number::plural(moments.elements, "value");
    format!("{}: {} among {all}", one_line(&tensor.name), parts.join(", "))
}
