//! `docs/conformance.md` and `docs/errors.md` say what is so: every clause, code, fixture, fuzz target and test they name
//! exists, and none is left out. The quotations of the README are what the quoted files hold.

use p64_core::metadata::Metadata;
use p64_core::tokenizer::Tokenizer;
use p64_core::{Code, Container, Kind};
use p64_tests::{broken, data};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

fn read(path: &str) -> String {
    fs::read_to_string(data::workspace(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn fixture_name(code: Code) -> String {
    format!("{:03}-{}", code.number(), code.slug())
}

fn fixture(code: Code) -> PathBuf {
    data::data("invalid").join(fixture_name(code) + ".p64")
}

/// What stands between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// `§7.4.2` and the like, wherever they stand.
fn clauses(text: &str) -> Vec<String> {
    let after = text.split('§').skip(1);
    let number = |rest: &str| rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect::<String>();
    after.map(|rest| format!("§{}", number(rest).trim_end_matches('.'))).collect()
}

/// The cells of every table row below a header that has `column`, by the header's names.
struct Row {
    names: Vec<String>,
    cells: Vec<String>,
}

impl Row {
    fn cell(&self, name: &str) -> &str {
        let at = self.names.iter().position(|other| other == name).unwrap_or_else(|| panic!("no column {name}"));
        &self.cells[at]
    }
}

fn rows(text: &str, column: &str) -> Vec<Row> {
    let split = |line: &str| -> Vec<String> {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    let mut names: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        if !line.starts_with('|') {
            names.clear();
        } else if names.is_empty() {
            names = split(line);
        } else if !line.starts_with("|-") && names.iter().any(|name| name == column) {
            let cells = split(line);
            assert_eq!(cells.len(), names.len(), "{line}");
            rows.push(Row { names: names.clone(), cells });
        }
    }
    assert!(!rows.is_empty(), "no table with a column {column}");
    rows
}

#[test]
fn every_code_has_its_row() {
    let text = read("docs/conformance.md");
    let targets: BTreeSet<&str> = p64_fuzz::TARGETS.iter().map(|(name, _)| *name).collect();
    let (mut codes, mut fixtures) = (BTreeSet::new(), BTreeSet::new());
    for row in rows(&text, "code") {
        let own: Vec<Code> = quoted(row.cell("code"))
            .into_iter()
            .map(|slug| {
                let found = Code::ALL.iter().find(|code| code.slug() == slug);
                *found.unwrap_or_else(|| panic!("docs/conformance.md names the code {slug}, which does not exist"))
            })
            .collect();
        let named: BTreeSet<&str> = quoted(row.cell("fixture")).into_iter().collect();
        for name in &named {
            assert!(data::data("invalid").join(format!("{name}.p64")).is_file(), "there is no fixture {name}");
        }
        let expected: Vec<String> =
            own.iter().filter(|code| broken::file(**code).is_some()).map(|code| fixture_name(*code)).collect();
        assert_eq!(named, expected.iter().map(String::as_str).collect(), "fixtures of {:?}", row.cell("code"));
        for target in quoted(row.cell("fuzz target")) {
            assert!(targets.contains(target), "there is no fuzz target {target}");
        }
        codes.extend(own.iter().map(|code| code.number()));
        fixtures.extend(expected);
    }
    for code in Code::ALL.iter().filter(|code| !code.clause().is_empty()) {
        assert!(codes.contains(&code.number()), "docs/conformance.md lacks {} ({})", code.slug(), code.clause());
    }
    for entry in fs::read_dir(data::data("invalid")).expect("there") {
        let name = entry.expect("readable").file_name().into_string().expect("ASCII");
        assert!(fixtures.contains(name.trim_end_matches(".p64")), "docs/conformance.md lacks the fixture {name}");
    }
}

/// Every clause of the specification that has a MUST, and every check of §14, has a row; and no row or code speaks of a
/// clause that is not there.
#[test]
fn every_must_has_its_row() {
    let (spec, text) = (read("docs/spec/p64.md"), read("docs/conformance.md"));
    let mut current = String::new();
    let (mut known, mut with_must) = (BTreeSet::new(), BTreeSet::new());
    for line in spec.lines() {
        let numbered =
            line.strip_prefix("| **§").map(|rest| format!("§{}", rest.split('*').next().unwrap_or_default()));
        if let Some(clause) = numbered {
            if clause.starts_with("§14.") {
                with_must.insert(clause.clone());
            }
            known.insert(clause);
        } else if line.starts_with('#') && line.contains('§') {
            current = clauses(line).swap_remove(0);
            known.insert(current.clone());
        }
        // §1 says what the word means; that of §14 is for all its checks together.
        if line.contains("MUST") && !["§1", "§14"].contains(&current.as_str()) {
            with_must.insert(current.clone());
        }
    }
    let rows = rows(&text, "clause");
    let named: BTreeSet<String> = rows.iter().flat_map(|row| clauses(row.cell("clause"))).collect();
    assert_eq!(with_must.difference(&named).collect::<Vec<_>>(), Vec::<&String>::new(), "clauses without a row");
    assert_eq!(named.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new(), "rows without a clause");
    for code in Code::ALL {
        assert!(code.clause().is_empty() || known.contains(code.clause()), "{code:?} speaks of {}", code.clause());
    }
}

/// A test is named `file::function`, its file below `tests/tests` or, with its extension, below the root.
#[test]
fn every_test_that_is_named_exists() {
    let text = read("docs/conformance.md");
    for row in rows(&text, "test") {
        for name in quoted(row.cell("test")) {
            let (file, function) = name.rsplit_once("::").unwrap_or_else(|| panic!("{name} is not file::function"));
            let path = if file.ends_with(".rs") {
                file.to_owned()
            } else {
                format!("tests/tests/{}.rs", file.replace("::", "/"))
            };
            assert!(read(&path).contains(&format!("fn {function}()")), "{path} has no test {function}");
        }
    }
}

/// A column `fuzz target` is no claim: the target is given the fixture's bytes, and they give it the code.
#[test]
fn fuzz_targets_reach_their_codes() {
    let text = read("docs/conformance.md");
    for row in rows(&text, "code") {
        let codes = quoted(row.cell("code"));
        for code in Code::ALL.iter().copied().filter(|code| codes.contains(&code.slug())) {
            let Ok(file) = fs::read(fixture(code)) else { continue };
            for (target, run) in p64_fuzz::TARGETS {
                if quoted(row.cell("fuzz target")).contains(target) {
                    let input = part(&file, target);
                    let found = match *target {
                        "q42t" => Tokenizer::parse(&input).err().map(|error| error.code),
                        "metadata" => Metadata::parse(&input, 0).err().map(|error| error.code),
                        _ => Some(code),
                    };
                    assert_eq!(found, Some(code), "{target}");
                    run(&input);
                }
            }
        }
    }
}

/// The bytes of a container that a target takes.
fn part(file: &[u8], target: &str) -> Vec<u8> {
    let offset = |at: usize| {
        let bytes = file[at..at + 4].try_into().expect("four");
        usize::try_from(u32::from_le_bytes(bytes)).expect("small")
    };
    match target {
        "q42t" => file[offset(16)..offset(28)].to_vec(),
        "metadata" => {
            let container = Container::open(file).expect("the area is not looked at yet");
            let tensor = container.tensor_named("p64.metadata").expect("verified").expect("there");
            tensor.bytes().to_vec()
        }
        _ => file.to_vec(),
    }
}

const ERRORS_HEAD: &str = "\
# Error codes

Generated from `p64_core::Code` by `P64_BLESS=1 cargo test -p p64-tests --test conformance`; a test compares.

The numbers are frozen: a code is never renumbered or used again, and a new one gets the next number of its range. Kinds:
*malformed* bytes break the format, a *limit* is this reader's own, a mistake is the *caller*'s, *unsupported* models are
well-formed and not run by this build. In a sentence `{e}` stands for the expected and `{f}` for the found value, capitals
for the same in hexadecimal. A message puts the place before the sentence, and the file offset and the clause of
[spec/p64.md](spec/p64.md) behind it. Under the Compatible policy some malformed findings are warnings
([§1.1](spec/p64.md#11-reading-policies)).

A code without a fixture can be shown by no container file; the last column names the test that provokes it.
";

/// First number and title of each range.
const RANGES: &[(u16, &str)] = &[
    (1, "Header"),
    (30, "Sections"),
    (60, "Tensor entries and names"),
    (90, "Blobs"),
    (110, "Order, schedule, manifold"),
    (130, "Tokenizer"),
    (150, "Metadata"),
    (170, "Checksums"),
    (200, "The caller"),
    (220, "Models this build cannot run"),
    (230, "Where the bytes come from"),
];

#[test]
fn the_list_of_errors_is_complete() {
    let [files, models, streams] = ["tests/tests/invalid.rs", "tests/tests/model_errors.rs", "tests/tests/stream.rs"]
        .map(|path| (path, read(path)));
    let mut text = ERRORS_HEAD.to_owned();
    for (at, (first, title)) in RANGES.iter().enumerate() {
        let end = RANGES.get(at + 1).map_or(u16::MAX, |(next, _)| *next);
        write!(text, "\n## {first}: {title}\n\n| number | slug | kind | clause | sentence | shown by |\n")
            .expect("text");
        text.push_str("|---:|---|---|---|---|---|\n");
        for &code in Code::ALL.iter().filter(|code| (*first..end).contains(&code.number())) {
            let kind = match code.kind() {
                Kind::Malformed => "malformed",
                Kind::Limit => "limit",
                Kind::Caller => "caller",
                Kind::Unsupported => "unsupported",
                Kind::Environment => "environment",
                other => panic!("{other:?} has no name here"),
            };
            let shown = if broken::file(code).is_some() {
                let name = fixture_name(code);
                format!("[{name}](../tests/data/invalid/{name}.p64)")
            } else {
                let call = format!("Code::{code:?}");
                let by = [&models, &streams, &files].into_iter().find(|(_, source)| source.contains(&call));
                format!("[a call](../{})", by.unwrap_or_else(|| panic!("nothing provokes {code:?}")).0)
            };
            let clause = if code.clause().is_empty() { "—" } else { code.clause() };
            let sentence = code.text().replace('|', "\\|");
            writeln!(text, "| {} | `{}` | {kind} | {clause} | {sentence} | {shown} |", code.number(), code.slug())
                .expect("text");
        }
    }
    let path = data::workspace("docs/errors.md");
    if data::bless() {
        fs::write(&path, &text).expect("writable");
    }
    assert!(read("docs/errors.md") == text, "P64_BLESS=1 writes {}; review what changes", path.display());
}

/// The Rust example of the README is the one that the compiler sees.
#[test]
fn the_readme_quotes_its_example() {
    let (readme, example) = (read("README.md"), read("p64-std/examples/tour.rs"));
    let block = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a Rust block");
    let code: String = example.lines().filter(|line| !line.starts_with("//!")).fold(String::new(), |mut text, line| {
        writeln!(text, "{line}").expect("text");
        text
    });
    assert_eq!(block.trim(), code.trim());
}
