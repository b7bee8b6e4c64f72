//! The tables of `docs/ffi.md` are the comments of the exported functions, sorted into columns. `P64_BLESS=1` writes them
//! anew. A comment has a sentence beginning "Threads:", "Errors:" and "Cost:", and "Owner:" where memory is at stake.

use std::fs;
use std::path::Path;

/// Chapters of the document, and the sources whose functions stand in each.
const CHAPTERS: [(&str, &[&str]); 11] = [
    ("The library", &["version", "status", "names"]),
    ("Errors", &["error"]),
    ("CRC-32C", &["crc"]),
    ("A container in memory", &["container", "tensor", "layer"]),
    ("Metadata", &["metadata"]),
    ("The tokenizer section", &["tokenizer"]),
    ("Text to ids and back", &["vocabulary"]),
    ("Arithmetic", &["kernel"]),
    ("Decoding", &["decoder"]),
    ("A container behind a read function", &["stream"]),
    ("Tier 1 (`P64_STD`)", &["tier1/message", "tier1/file", "tier1/model", "tier1/session", "tier1/convert"]),
];

const LABELS: [&str; 4] = ["Owner", "Threads", "Errors", "Cost"];
const BEGIN: &str = "<!-- the tables, made by p64-ffi/tests/docs.rs -->\n";

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Name and comment of each exported function of a source.
fn functions(source: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(crate_dir().join(format!("src/{source}.rs"))).expect("a source");
    let (mut found, mut comment) = (Vec::new(), String::new());
    let mut exported = false;
    for line in text.lines().map(str::trim) {
        if let Some(part) = line.strip_prefix("///") {
            comment.push_str(part);
            comment.push(' ');
        } else if line.starts_with("#[unsafe(no_mangle)]") {
            exported = true;
        } else if exported && let Some((_, rest)) = line.split_once("fn ") {
            let name = rest.split('(').next().unwrap_or_default().to_owned();
            found.push((name, std::mem::take(&mut comment)));
            exported = false;
        } else if !line.starts_with("#[") && !exported {
            comment.clear();
        }
    }
    found
}

/// What a comment says under a label.
fn column(name: &str, comment: &str, label: &str) -> String {
    let Some((_, rest)) = comment.split_once(&format!("{label}: ")) else {
        assert_eq!(label, "Owner", "the comment of {name} says nothing under {label}");
        return "the caller's".to_owned();
    };
    let end = LABELS.iter().filter_map(|label| rest.find(&format!(" {label}: "))).min().unwrap_or(rest.len());
    let text = rest[..end].split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let text = text.trim_end_matches('.');
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

fn tables() -> String {
    let mut out = String::new();
    for (title, sources) in CHAPTERS {
        out.push_str(&format!(
            "\n### {title}\n\n| function | memory | threads | errors | cost |\n|---|---|---|---|---|\n"
        ));
        for (name, comment) in sources.iter().flat_map(|source| functions(source)) {
            let cells = LABELS.map(|label| column(&name, &comment, label));
            out.push_str(&format!("| `{name}` | {} |\n", cells.join(" | ")));
        }
    }
    out
}

#[test]
fn the_document_says_what_the_comments_say() {
    let path = crate_dir().join("../docs/ffi.md");
    let document = fs::read_to_string(&path).expect("docs/ffi.md");
    let (prose, tables_there) = document.split_once(BEGIN).expect("the line before the tables");
    let fresh = tables();
    if std::env::var_os("P64_BLESS").is_some() {
        fs::write(&path, format!("{prose}{BEGIN}{fresh}")).expect("docs/ is writable");
    } else {
        assert_eq!(tables_there, fresh, "docs/ffi.md: run this test with P64_BLESS=1");
    }
}

/// Nothing that the header declares is left out.
#[test]
fn every_function_has_its_row() {
    let header = fs::read_to_string(crate_dir().join("../include/p64.h")).expect("include/p64.h");
    let tables = tables();
    let code = header.lines().filter(|line| !line.trim_start().starts_with(['*', '/']));
    let declared = code
        .filter_map(|line| line.find("p64_").map(|_| line))
        .flat_map(|line| line.match_indices("p64_").map(|(at, _)| &line[at..]).collect::<Vec<_>>());
    let mut count = 0;
    for rest in declared {
        let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if rest[name.len()..].starts_with('(') && !name.is_empty() {
            assert!(tables.contains(&format!("| `{name}` |")), "{name} is missing");
            count += 1;
        }
    }
    assert!(count > 60, "only {count} declarations found");
}
