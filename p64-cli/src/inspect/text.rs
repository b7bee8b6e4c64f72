//! A report as text.

use super::{FileRow, Key, Layer, Model, Report, Space, values};
use crate::output::table::{Align, Table, one_line};
use crate::output::{columns, number};
use std::fmt::Write;

/// Which tables are wanted; none of them means the summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    pub sections: bool,
    pub layers: bool,
    pub tensors: bool,
    pub metadata: bool,
}

impl Parts {
    fn any(self) -> bool {
        self.sections || self.layers || self.tensors || self.metadata
    }
}

/// The report as text: the summary, or the tables asked for in full.
pub fn render(report: &Report, parts: Parts) -> String {
    let mut out = String::new();
    if !parts.any() {
        summary(&mut out, report);
        return out;
    }
    if parts.sections {
        block(&mut out, "Sections", &sections(report));
    }
    if parts.layers {
        block(&mut out, "Layers", &layers(&report.layers));
    }
    if parts.tensors {
        block(&mut out, "Tensors", &tensors(report));
    }
    if parts.metadata {
        block(&mut out, "Metadata", &keys(&report.metadata));
        if !report.provenance.is_empty() {
            block(&mut out, "Provenance", &keys(&report.provenance));
        }
    }
    out
}

fn block(out: &mut String, title: &str, body: &str) {
    let gap = if out.is_empty() { "" } else { "\n" };
    // Writing to a string cannot fail.
    let _ = write!(out, "{gap}{title}\n{body}");
}

fn summary(out: &mut String, report: &Report) {
    let format = match report.format {
        "p64" => "P64 container",
        "gguf" => "GGUF",
        other => other,
    };
    let size = number::bytes(report.bytes);
    let version = report.version.map(|version| format!(" version {version}")).unwrap_or_default();
    let (path, bytes) = (&report.path, number::grouped(report.bytes));
    let _ = writeln!(out, "{path}: {format}{version}, {size} ({bytes} bytes)\n");
    let mut line = |name: &str, value: String| {
        for (at, part) in wrap(&value, columns().map(|width| width.saturating_sub(14))).iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            let _ = writeln!(out, "  {name:<12}{part}");
        }
    };
    line("model", model(&report.model));
    if report.format != "safetensors" {
        line("tokenizer", tokenizer(&report.model));
    }
    line("layout", layout(report));
    line("space", space(&report.space, report.bytes));
    let padding = &report.padding;
    line("padding", format!("{} ({})", number::bytes(padding.bytes), number::share(padding.bytes, report.bytes)));
    for warning in &report.warnings {
        line("warning", warning.clone());
    }
    block(out, "Sections", &sections(report));
    if !report.files.is_empty() {
        block(out, "Files", &files(&report.files));
    }
    block(out, "Types", &types(report));
    block(out, "Layers", &layer_groups(&report.layers));
    if !report.metadata.is_empty() {
        block(out, "Metadata", &keys(&report.metadata));
    }
    if !report.provenance.is_empty() {
        block(out, "Provenance", &keys(&report.provenance));
    }
}

/// The lines of a list with commas, none longer than `limit` if it can be helped.
fn wrap(text: &str, limit: Option<usize>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split_inclusive(", ") {
        let len = |text: &str| text.trim_end().chars().count();
        match lines.last_mut() {
            Some(line) if limit.is_none_or(|limit| line.chars().count() + len(part) <= limit) => line.push_str(part),
            _ => lines.push(part.to_owned()),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

fn model(model: &Model) -> String {
    let mut parts = vec![model.architecture.clone().unwrap_or_else(|| "unknown architecture".to_owned())];
    parts.extend(model.n_layer.map(|n| number::plural(n, "layer")));
    parts.extend(model.n_embd.map(|n| format!("width {}", number::grouped(n))));
    parts.extend(model.n_head.map(|n| match model.n_kv_head {
        Some(kv) if kv != n => format!("{n} heads ({kv} key/value)"),
        _ => number::plural(n, "head"),
    }));
    parts.extend(model.context_length.map(|n| format!("context {}", number::grouped(n))));
    parts.push(format!("{} parameters", number::count(model.parameters)));
    let text = parts.join(", ");
    model.name.as_ref().map_or(text.clone(), |name| format!("{}: {text}", one_line(name)))
}

fn tokenizer(model: &Model) -> String {
    let Some(tokenizer) = &model.tokenizer else { return "none".to_owned() };
    let mut parts: Vec<String> = Vec::new();
    let name = |name: &Option<String>| name.as_deref().map(one_line);
    match (name(&tokenizer.model), name(&tokenizer.pre)) {
        (Some(model), Some(pre)) => parts.push(format!("{model} ({pre})")),
        (model, pre) => parts.extend(model.or(pre)),
    }
    parts.push(number::plural(tokenizer.tokens, "token"));
    if tokenizer.merges > 0 {
        parts.push(number::plural(tokenizer.merges, "merge"));
    }
    parts.extend(tokenizer.bos.map(|id| format!("BOS {id}")));
    parts.extend(tokenizer.eos.map(|id| format!("EOS {id}")));
    parts.join(", ")
}

fn layout(report: &Report) -> String {
    let field = |name: &str| report.header.get(name);
    if let Some(alignment) = field("alignment") {
        return format!("alignment {alignment}");
    }
    let files = field("files").and_then(|files| files.as_array());
    let files = files.map(|files| number::plural(files.len() as u64, "file"));
    let flags = field("flags").and_then(|flags| flags.as_array());
    let Some(flags) = flags else { return files.unwrap_or_default() };
    let flags: Vec<&str> = flags.iter().filter_map(|flag| flag.as_str()).collect();
    let page = field("page_size").map(ToString::to_string).unwrap_or_default();
    let files = files.map(|files| format!("{files}, ")).unwrap_or_default();
    format!("{files}page size {page}, {}", flags.join(" "))
}

fn space(space: &Space, whole: u64) -> String {
    let part = |bytes: u64, name: &str| format!("{} {name} ({})", number::bytes(bytes), number::share(bytes, whole));
    let mut parts = vec![part(space.payload, "payload"), part(space.front, "front")];
    if space.page_padding > 0 {
        parts.push(part(space.page_padding, "page padding"));
    }
    parts.push(part(space.other_padding, "other padding"));
    parts.join(", ")
}

fn sections(report: &Report) -> String {
    let head = [("name", Align::Left), ("offset", Align::Right), ("bytes", Align::Right), ("records", Align::Right)];
    let mut table = Table::new(head);
    for section in &report.sections {
        table.row([
            section.name.to_owned(),
            number::grouped(section.offset),
            number::grouped(section.bytes),
            section.records.map(number::grouped).unwrap_or_default(),
        ]);
    }
    table.render()
}

fn files(files: &[FileRow]) -> String {
    let head = [("file", Align::Left), ("bytes", Align::Right), ("tensors", Align::Right), ("layers", Align::Left)];
    let mut table = Table::new(head);
    for file in files {
        let layers = match file.layers {
            Some([first, last]) if first != last => format!("{first}-{last}"),
            Some([only, _]) => only.to_string(),
            None => "none".to_owned(),
        };
        table.row([one_line(&file.path), number::grouped(file.bytes), number::grouped(file.tensors), layers]);
    }
    table.render()
}

fn types(report: &Report) -> String {
    let head = [
        ("type", Align::Left),
        ("tensors", Align::Right),
        ("elements", Align::Right),
        ("bytes", Align::Right),
        ("share", Align::Right),
    ];
    let mut table = Table::new(head);
    for share in &report.types {
        table.row([
            share.dtype.clone(),
            number::grouped(share.tensors),
            number::grouped(share.elements),
            number::grouped(share.bytes),
            number::share(share.bytes, report.space.payload),
        ]);
    }
    table.render()
}

const LAYER_HEAD: [(&str, Align); 5] = [
    ("layer", Align::Right),
    ("tensors", Align::Right),
    ("offset", Align::Right),
    ("bytes", Align::Right),
    ("roles", Align::Left),
];

fn layer_name(layer: Option<u32>) -> String {
    layer.map_or_else(|| "global".to_owned(), |layer| layer.to_string())
}

fn layers(layers: &[Layer]) -> String {
    let mut table = Table::new(LAYER_HEAD);
    for layer in layers {
        table.row([
            layer_name(layer.layer),
            number::grouped(layer.tensors),
            number::grouped(layer.offset),
            number::grouped(layer.span),
            layer.roles.join(" "),
        ]);
    }
    table.render()
}

/// Runs of layers that look alike, each as one row.
fn layer_groups(layers: &[Layer]) -> String {
    let alike = |a: &Layer, b: &Layer| {
        a.layer.is_some() && b.layer.is_some() && (a.tensors, a.span, &a.roles) == (b.tensors, b.span, &b.roles)
    };
    let mut table = Table::new(LAYER_HEAD);
    for run in layers.chunk_by(alike) {
        let [first, .., last] = run else {
            if let [layer] = run {
                let name = layer_name(layer.layer);
                table.row(group_row(layer, name, ""));
            }
            continue;
        };
        let name = format!("{}-{}", layer_name(first.layer), layer_name(last.layer));
        table.row(group_row(first, name, " each"));
    }
    table.render()
}

fn group_row(layer: &Layer, name: String, each: &str) -> [String; 5] {
    [
        name,
        format!("{}{each}", number::grouped(layer.tensors)),
        number::grouped(layer.offset),
        format!("{}{each}", number::grouped(layer.span)),
        layer.roles.join(" "),
    ]
}

fn tensors(report: &Report) -> String {
    let head = [
        ("", Align::Right),
        ("type", Align::Left),
        ("shape", Align::Right),
        ("offset", Align::Right),
        ("bytes", Align::Right),
        ("crc32c", Align::Left),
        ("role", Align::Left),
        ("name", Align::Left),
    ];
    let mut table = Table::new(head);
    let mut file = None;
    for tensor in &report.tensors {
        if file != tensor.file.as_ref() {
            file = tensor.file.as_ref();
            let name = file.map(|name| one_line(name)).unwrap_or_default();
            let mut row: [String; 8] = Default::default();
            row[7] = name;
            table.row(row);
        }
        let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
        table.row([
            tensor.index.to_string(),
            tensor.dtype.clone(),
            shape.join(" x "),
            number::grouped(tensor.offset),
            number::grouped(tensor.bytes),
            tensor.crc32c.clone().unwrap_or_else(|| "-".to_owned()),
            tensor.role.clone().unwrap_or_else(|| "-".to_owned()),
            one_line(&tensor.name),
        ]);
    }
    table.render()
}

fn keys(keys: &[Key]) -> String {
    let mut table = Table::new([("key", Align::Left), ("type", Align::Left), ("value", Align::Left)]);
    for key in keys {
        table.row([one_line(&key.key), key.kind.clone(), values::text(key)]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lists_wrap_at_their_commas() {
        assert_eq!(wrap("one, two, three", None), ["one, two, three"]);
        assert_eq!(wrap("one, two, three", Some(9)), ["one, two,", "three"]);
        assert_eq!(wrap("one, two, three", Some(1)), ["one,", "two,", "three"]);
        assert!(wrap("", Some(9)).is_empty());
    }
}
