//! Edits in place that end early, in a process of their own: after every step the file is the old one or becomes the new.

use super::{STRICT, TINY, convert, edit, folder, in_place, read, set};
use p64_std::convert::ConvertOptions;
use p64_std::edit::{Edits, Recovery, Verify, edit_in_place, journal_path, recover};
use p64_std::map::MappedContainer;
use p64_tests::data::data;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ENV: &str = "P64_TEST_EDIT";

/// A longer value, a shorter one, and a tokenizer of another length.
fn changes(number: &str) -> Edits {
    match number {
        "longer" => set(&[&format!("general.name:string={}", "long ".repeat(60_000))]),
        "shorter" => set(&["tokenizer.ggml.model=gpt2", "general.name=x"]),
        _ => set(&["tokenizer.ggml.eos_token_id=3", "general.name=y"]),
    }
}

/// Not a test by itself: the child of those below. `changes|step|how|path` says what to do.
#[test]
fn child() {
    let Some(order) = std::env::var_os(ENV) else { return };
    let order = order.into_string().expect("UTF-8");
    let [number, step, how, path] = order.split('|').collect::<Vec<_>>().try_into().expect("four fields");
    let step: usize = step.parse().expect("a number");
    let mut steps = 0;
    edit_in_place(Path::new(path), &changes(number), Verify::OnUse, &mut |_| {
        if steps == step {
            // Neither way lets anything run that would tidy up.
            if how == "exit" {
                std::process::exit(42);
            }
            println!("\nhere");
            std::io::stdout().flush().expect("written");
            loop {
                std::thread::park();
            }
        }
        steps += 1;
    })
    .expect("edited");
    std::process::exit(43);
}

fn command(number: &str, step: usize, how: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "interrupted::child", "--nocapture", "--test-threads", "1"]);
    command.env(ENV, format!("{number}|{step}|{how}|{}", path.display()));
    command
}

/// The container with a long name, and what each change makes of it.
fn prepared(folder: &Path, number: &str) -> (PathBuf, Vec<u8>, Vec<u8>) {
    // Pages of 256 bytes, so that the tail begins within a sector: a write must not end there.
    let options = ConvertOptions { page_size: 256, ..ConvertOptions::default() };
    let path = convert(&data(TINY), &folder.join("m.p64"), &options);
    let (mapped, _) = MappedContainer::open(&path, &STRICT).expect("strict");
    let tail = mapped.container().tensors().find(|info| info.name() == "p64.metadata").expect("there").extent().start();
    assert_ne!(tail % 512, 0, "the tail begins a sector: nothing is tried");
    drop(mapped);
    in_place(&path, &set(&[&format!("general.name:string={}", "name ".repeat(30_000))])).expect("edited");
    let new = folder.join("new.p64");
    edit(&path, &new, &changes(number)).expect("edited");
    (path.clone(), read(&path), read(&new))
}

/// What a reader makes of a file: the old one, the new one, or an error that it can tell.
fn look(path: &Path, old: &[u8], new: &[u8]) -> &'static str {
    let bytes = read(path);
    match MappedContainer::open(path, &STRICT) {
        Ok(_) if bytes == old => "old",
        Ok(_) if bytes == new => "new",
        Ok(_) => panic!("a file that is neither passes as sound"),
        Err(p64_std::Error::Core { .. }) => "damaged",
        Err(error) => panic!("{error}"),
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

#[test]
fn after_every_step() {
    for number in ["longer", "shorter", "same"] {
        let folder = folder();
        let (path, old, new) = prepared(folder.path(), number);
        assert!(match number {
            "longer" => new.len() > old.len(),
            "shorter" => new.len() < old.len(),
            _ => new.len() != old.len(),
        });
        let mut seen = Vec::new();
        for step in 0.. {
            std::fs::write(&path, &old).expect("written");
            let status = command(number, step, "exit", &path).stdout(Stdio::null()).status().expect("started");
            if status.code() == Some(43) {
                break;
            }
            assert_eq!(status.code(), Some(42), "{number}, step {step}");
            let found = look(&path, &old, &new);
            seen.push(found);
            assert!(found != "damaged" || journal_path(&path).exists(), "{number}, step {step}");
            // Half of the times by itself, half by the next edit.
            let recovered = match step % 2 {
                0 => recover(&path).expect("recovered"),
                _ => in_place(&path, &set(&["tokenizer.ggml.model=gpt2"])).expect("nothing to change").recovered,
            };
            assert_eq!(look(&path, &old, &new), if recovered == Recovery::Completed { "new" } else { found });
            assert_eq!(entries(folder.path()), ["m.p64", "new.p64"], "{number}, step {step}");
        }
        assert!(read(&path) == new);
        // Before the journal, in the middle, and after the last byte.
        for state in ["old", "damaged", "new"] {
            assert!(seen.contains(&state), "{number}: {seen:?}");
        }
    }
}

#[test]
fn sigkill_in_the_middle() {
    let folder = folder();
    let (path, old, new) = prepared(folder.path(), "longer");
    let mut child = command("longer", 3, "hang", &path).stdout(Stdio::piped()).spawn().expect("started");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "here"), "the child stopped early");
    // As long as it lives the file is its own.
    let error = recover(&path).expect_err("being edited");
    assert_eq!(error.exit_code(), 2, "{error}");
    child.kill().expect("SIGKILL");
    child.wait().expect("gone");
    assert_eq!(look(&path, &old, &new), "damaged");
    assert_eq!(recover(&path).expect("recovered"), Recovery::Completed);
    assert_eq!(look(&path, &old, &new), "new");
    assert_eq!(recover(&path).expect("nothing is left"), Recovery::Nothing);
}

/// A journal as it is in the middle of an edit.
fn journal(folder: &Path) -> (PathBuf, Vec<u8>, Vec<u8>) {
    let (path, old, new) = prepared(folder, "longer");
    let status = command("longer", 3, "exit", &path).stdout(Stdio::null()).status().expect("started");
    assert_eq!(status.code(), Some(42));
    (path, old, new)
}

#[test]
fn a_journal_that_is_not_whole_is_of_an_edit_that_did_not_begin() {
    let folder = folder();
    let (path, old, _) = journal(folder.path());
    std::fs::write(&path, &old).expect("written");
    let whole = read(&journal_path(&path));
    for len in [0, 7, 32, whole.len() / 2, whole.len() - 1] {
        std::fs::write(journal_path(&path), &whole[..len]).expect("written");
        assert_eq!(recover(&path).expect("dropped"), Recovery::Discarded);
        assert!(read(&path) == old && !journal_path(&path).exists());
    }
    for at in [0, 9, 20, 40, whole.len() / 2, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        std::fs::write(journal_path(&path), &flipped).expect("written");
        assert_eq!(recover(&path).expect("dropped"), Recovery::Discarded);
    }
}

#[test]
fn a_file_that_was_replaced_is_left_alone() {
    let folder = folder();
    let (path, old, new) = journal(folder.path());
    let other = convert(&data(TINY), &folder.path().join("other.p64"), &ConvertOptions::default());
    let mut changed = old.clone();
    changed[70] ^= 1;
    for bytes in [read(&other), changed, new[..new.len() / 2].to_vec()] {
        std::fs::write(&path, &bytes).expect("written");
        let error = recover(&path).expect_err("another file");
        assert!(error.to_string().contains("is of another file"), "{error}");
        assert!(in_place(&path, &set(&["general.name=x"])).is_err());
        assert!(read(&path) == bytes && journal_path(&path).exists());
    }
}

/// A device writes sectors in any order.
#[test]
fn sectors_in_any_order() {
    let folder = folder();
    for number in ["longer", "shorter"] {
        let (path, old, new) = prepared(folder.path(), number);
        let status = command(number, 1, "exit", &path).stdout(Stdio::null()).status().expect("started");
        assert_eq!(status.code(), Some(42));
        let saved = read(&journal_path(&path));
        let mut state = 1u64;
        for _ in 0..20 {
            let longest = old.len().max(new.len());
            let mut torn = vec![0; longest];
            for start in (0..longest).step_by(512) {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let from = if state >> 63 == 0 { &old } else { &new };
                let end = (start + 512).min(longest);
                let from = from.get(start..end.min(from.len())).unwrap_or_default();
                torn[start..start + from.len()].copy_from_slice(from);
            }
            // What stands behind the end of the one it was taken from is zeros, as a device has it.
            std::fs::write(&path, &torn).expect("written");
            std::fs::write(journal_path(&path), &saved).expect("written");
            assert_eq!(recover(&path).expect("recovered"), Recovery::Completed);
            assert!(read(&path) == new);
        }
    }
}
