//! Grammar, help, completions, streams.

use crate::{Converted, p64, tiny};
use std::process::{Command, Stdio};

const COMMANDS: [&str; 15] = [
    "convert",
    "verify",
    "inspect",
    "export",
    "split",
    "merge",
    "diff",
    "stats",
    "edit",
    "tokenize",
    "run",
    "bench",
    "perplexity",
    "demo",
    "completions",
];

#[test]
fn every_command_has_help_with_examples() {
    let help = p64(["--help"]).ok();
    for command in COMMANDS {
        assert!(help.stdout.contains(command), "{command} is not in the help");
        let own = p64([command, "--help"]).ok();
        assert!(own.stdout.contains("Usage: p64 ") && own.stdout.contains("Examples:"), "{command}: {}", own.stdout);
        assert_eq!(own.stderr, "");
    }
    assert!(p64(["--version"]).ok().stdout.starts_with("p64 "));
}

#[test]
fn requests_that_make_no_sense_are_2() {
    let requests: [&[&str]; 12] = [
        &[],
        &["frobnicate"],
        &["verify"],
        &["verify", "--frob", "x"],
        &["convert", "only-one"],
        &["run", "m.p64"],
        &["run", "m.p64", "-p", "x", "--temp", "-1"],
        &["run", "m.p64", "-p", "x", "--kv", "q9"],
        &["bench", "m.p64", "-r", "0"],
        &["bench"],
        &["bench", "m.p64", "--bandwidth"],
        &["export", "m.p64", "m.bin"],
    ];
    for request in requests {
        let outcome = p64(request);
        assert_eq!(outcome.code, 2, "{request:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{request:?}");
        assert!(!outcome.stderr.is_empty(), "{request:?}");
    }
    let outcome = p64(["verify", "--json"]);
    assert_eq!((outcome.code, outcome.object()["error"]["kind"].as_str()), (2, Some("usage")));
}

#[test]
fn completions_of_every_shell_know_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = p64(["completions", shell]).ok().stdout;
        COMMANDS.iter().for_each(|command| assert!(script.contains(command), "{shell}: {command}"));
    }
}

#[test]
fn quiet_is_quiet() {
    let converted = Converted::new();
    let path = converted.p64.to_str().expect("UTF-8");
    let gguf = tiny();
    let out = converted.path("again.p64");
    let (gguf, out) = (gguf.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    for args in [&["-q", "verify", path][..], &["-q", "convert", gguf, out], &["-q", "verify", gguf, path]] {
        let outcome = p64(args).ok();
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", ""), "{args:?}");
    }
    let outcome = p64(["-q", "run", path, "-p", "Once", "-n", "3", "--temp", "0"]).ok();
    assert_eq!(outcome.stderr, "");
    assert!(!outcome.stdout.trim().is_empty());
}

/// `p64 inspect x | head` ends without a word when the reader goes away.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().expect("pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_p64"));
    let output = command.arg("inspect").arg(tiny()).arg("--tensors").stdout(writer).stderr(Stdio::piped()).output();
    let output = output.expect("p64 starts");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

/// Tables are cut to the terminal only: a file or a pipe gets every character.
#[test]
fn nothing_is_cut_in_a_pipe() {
    let text =
        p64([std::ffi::OsStr::new("inspect"), tiny().as_os_str(), std::ffi::OsStr::new("--tensors")]).ok().stdout;
    assert!(text.contains("blk.0.attn_q.weight") && !text.contains('…'), "{text}");
}
