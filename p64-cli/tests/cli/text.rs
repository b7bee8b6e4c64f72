//! Text in and out: tokenize, prompts from files and stdin, stop texts, chat.

use crate::{p64, p64_on, tiny};
use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Stdio};

fn ids(args: &[&str]) -> String {
    let tiny = tiny();
    p64([OsStr::new("tokenize"), tiny.as_os_str()].into_iter().chain(args.iter().map(OsStr::new))).ok().stdout
}

#[test]
fn tokenize_takes_text_from_argument_file_and_stdin() {
    let by_argument = ids(&["--ids", "Once upon a time"]);
    assert!(by_argument.split_whitespace().all(|id| id.parse::<u32>().is_ok()), "{by_argument}");
    let mut file = tempfile::NamedTempFile::new().expect("temporary file");
    file.write_all(b"Once upon a time").expect("written");
    assert_eq!(ids(&["--ids", "--file", file.path().to_str().expect("UTF-8")]), by_argument);

    let mut child = Command::new(env!("CARGO_BIN_EXE_p64"))
        .args(["tokenize", "--ids"])
        .arg(tiny())
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("p64 starts");
    child.stdin.take().expect("a pipe").write_all(b"Once upon a time").expect("written");
    let output = child.wait_with_output().expect("p64 ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), by_argument);
}

#[test]
fn special_tokens_are_text_unless_asked_for() {
    let plain = ids(&["--ids", "<|im_start|>"]);
    let special = ids(&["--ids", "--special", "<|im_start|>"]);
    assert!(plain.split_whitespace().count() > 1, "{plain}");
    assert_eq!(special.split_whitespace().count(), 1, "{special}");
    assert_eq!(ids(&["--ids", ""]).trim(), "");
    let table = ids(&["Once upon"]);
    assert!(table.contains("\"Once\"") && table.contains("\" upon\""), "{table}");
}

#[test]
fn a_stop_text_ends_the_run_and_is_not_printed() {
    let whole = p64_on("run --json {} -p Once -n 40 --temp 0 -t 1", &tiny()).ok().object();
    let text = whole["text"].as_str().expect("text").to_owned();
    let (before, _) = text.split_once('.').expect("forty tokens have a sentence's end");
    let stopped = p64_on("run --json {} -p Once -n 40 --temp 0 -t 1 --stop .", &tiny()).ok().object();
    assert_eq!((stopped["text"].as_str(), stopped["reason"].as_str()), (Some(before), Some("stop")));
}

#[test]
fn the_context_ends_the_text_or_is_shifted() {
    let run = |options: &str| {
        let line = format!("run --json {{}} -p Once -n 100 -c 40 --temp 0 -t 1 --ignore-eos{options}");
        p64_on(&line, &tiny()).ok().object()
    };
    let ended = run("");
    assert_eq!((ended["reason"].as_str(), ended["stats"]["context_shifts"].as_u64()), (Some("context"), Some(0)));
    for options in [" --context-shift", " --context-shift --keep 10"] {
        let shifted = run(options);
        assert_eq!((shifted["reason"].as_str(), shifted["ids"].as_array().map(Vec::len)), (Some("length"), Some(100)));
        assert!(shifted["stats"]["context_shifts"].as_u64() > Some(1), "{shifted}");
    }
    assert_eq!(run(" --context-shift --keep 1000")["reason"], "context", "nothing may be forgotten");
    assert_eq!(p64_on("run {} -p Once --keep 3", &tiny()).code, 2, "--keep needs --context-shift");
}

#[test]
fn a_bias_changes_what_is_chosen() {
    let first = |bias: &str| {
        let line = format!("run --json {{}} -p Once -n 1 --temp 0 -t 1{bias}");
        p64_on(&line, &tiny()).ok().object()["ids"][0].as_u64().expect("a token")
    };
    let free = first("");
    assert_ne!(first(&format!(" --logit-bias {free}-inf")), free);
    assert_eq!(first(" --logit-bias 17+1e9"), 17);
    assert_eq!(
        first(&format!(" --logit-bias {free}-inf --logit-bias 17+1e9 --logit-bias 17-2e9 --logit-bias 18+1e8")),
        18
    );
    for wrong in ["17", "17+x", "x+1", "1024+1"] {
        let outcome = p64_on(&format!("run {{}} -p Once --logit-bias {wrong}"), &tiny());
        assert_eq!(outcome.code, 2, "{wrong}: {}", outcome.stderr);
    }
}

#[test]
fn the_same_seed_gives_the_same_text() {
    let text = |seed: u32| {
        let line = format!("run -q {{}} -p Once -n 24 --temp 1 -t 1 --seed {seed}");
        p64_on(&line, &tiny()).ok().stdout
    };
    assert_eq!(text(7), text(7));
    assert_ne!(text(7), text(8));
}

#[test]
fn chat_goes_through_the_models_template() {
    let chat = p64_on("run --json {} --chat -p Hello -n 4 --temp 0 -t 1", &tiny()).ok().object();
    let raw = p64_on("run --json {} -p Hello -n 4 --temp 0 -t 1", &tiny()).ok().object();
    let len = |value: &serde_json::Value| value["prompt_ids"].as_array().map_or(0, Vec::len);
    assert!(len(&chat) > len(&raw), "{} and {}", len(&chat), len(&raw));
    assert_eq!(p64_on("run {} --system x -p Hello", &tiny()).code, 2, "--system needs --chat");
}

#[test]
fn a_prompt_that_does_not_fit_is_the_requests_fault() {
    let outcome = p64_on("run {} -p Once-upon-a-time-there-was -n 1 -c 2", &tiny());
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("ask for a larger context (-c)"), "{}", outcome.stderr);
    let outcome = p64_on("run {} -f /no/such/prompt", &tiny());
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
}

#[test]
fn a_rounded_cache_tells_a_story_too() {
    let text = |kv: &str| {
        let whole = p64_on(&format!("run --json {{}} -p Once -n 24 --temp 0 -t 1 --kv {kv}"), &tiny()).ok().object();
        whole["text"].as_str().expect("text").to_owned()
    };
    let exact = text("f32");
    for kv in ["f16", "q8_0", "q8_0,f16", "f32,q8_0"] {
        // The first words are certain enough not to turn.
        assert_eq!(text(kv).get(..16), exact.get(..16), "{kv}");
    }
}
