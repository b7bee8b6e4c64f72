//! Conversations through a pipe: a line is a message. And Ctrl-C, which is SIGINT.

use crate::{Outcome, tiny};
use p64_tests::toy;
use serde_json::Value;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Starts `p64 run MODEL --chat` with words separated by spaces.
fn start(model: &Path, options: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_p64"));
    command.arg("run").arg(model).arg("--chat").args(options.split_whitespace());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("p64 starts")
}

/// A whole conversation with the bundled model, greedy on one thread.
fn talk(options: &str, lines: &str) -> Outcome {
    let mut child = start(&tiny(), &format!("--temp 0 -t 1 {options}"));
    // It may have ended before it has read everything.
    let _ = child.stdin.take().expect("a pipe").write_all(lines.as_bytes());
    let output = child.wait_with_output().expect("p64 ends");
    Outcome {
        code: output.status.code().expect("p64 ends by itself"),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

fn objects(outcome: &Outcome) -> Vec<Value> {
    outcome.stdout.lines().map(|line| serde_json::from_str(line).expect("an object on each line")).collect()
}

#[test]
fn each_line_is_a_turn_and_what_was_seen_is_reused() {
    let outcome = talk("--json -n 20", "Tell me a story about a dog.\n\nAnd one about a cat.\r\nLast").ok();
    let turns = objects(&outcome);
    assert_eq!(turns.len(), 3, "an empty line is no turn: {}", outcome.stdout);
    let count = |turn: &Value, key: &str| turn["stats"][key].as_u64().expect("a count");
    for (turn, said) in turns.iter().zip(["Tell me a story about a dog.", "And one about a cat.", "Last"]) {
        assert_eq!(turn["user"], said);
        assert_eq!(turn["ids"].as_array().map(Vec::len), Some(count(turn, "generated_tokens") as usize));
    }
    // The prompt of each turn and what was generated but for its last token, which was not passed yet.
    let mut seen = 0;
    for turn in &turns {
        assert_eq!(turn["reused_tokens"].as_u64(), Some(seen), "{turn}");
        seen += count(turn, "prompt_tokens") + count(turn, "generated_tokens") - 1;
    }
}

#[test]
fn the_answers_are_lines_on_stdout() {
    let outcome = talk("-q -n 12", "Hello\n/reset\nHello\n").ok();
    let answers: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(answers.len(), 2, "{}", outcome.stdout);
    assert_eq!(answers[0], answers[1], "after /reset the conversation begins anew");
    assert_eq!(outcome.stderr, "");
    let once = crate::p64_on("run -q {} --chat -p Hello -n 12 --temp 0 -t 1", &tiny()).ok();
    assert_eq!(once.stdout.trim_end(), answers[0]);
    let ids = talk("-q -n 3 --ids", "Hello\n").ok().stdout;
    assert_eq!(ids.split_whitespace().filter(|id| id.parse::<u32>().is_ok()).count(), 3, "{ids}");
}

#[test]
fn commands_are_carried_out() {
    let outcome = talk("-n 4", "/help\n/stats\nHi\n/stats\n/system Be brief.\n/frob\n /slash\n/exit\nnever\n").ok();
    for note in [
        "/reset ",
        "nothing was said yet",
        "tokens of the conversation were not computed again",
        "the system message is set",
        "there is no command /frob",
    ] {
        assert!(outcome.stderr.contains(note), "{note}: {}", outcome.stderr);
    }
    assert_eq!(outcome.stdout.lines().count(), 2, "Hi and /slash: {}", outcome.stdout);
    // A system message changes what the model is given.
    let turns = objects(&talk("--json -n 4", "Hi\n/reset\n/system Be brief.\nHi\n").ok());
    let prompt = |turn: &Value| turn["stats"]["prompt_tokens"].as_u64().expect("a count");
    assert!(prompt(&turns[1]) > prompt(&turns[0]));
    let given = objects(&talk("--json -n 4 --system Hello", "Hi\n").ok());
    assert!(prompt(&given[0]) > prompt(&turns[0]));
}

#[test]
fn a_full_context_ends_it_or_forgets_the_oldest_turns() {
    let lines = "Tell me a story.\nAnother one.\nAnd one more.\n";
    let outcome = talk("-c 60", lines);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--context-shift forgets the oldest turns"), "{}", outcome.stderr);
    let turns = objects(&talk("-c 60 -n 90 --context-shift --json", lines).ok());
    assert_eq!(turns.len(), 3);
    assert!(turns.iter().any(|turn| turn["stats"]["context_shifts"].as_u64() > Some(0)), "{turns:?}");
    assert!(turns.iter().all(|turn| turn["reason"] != "context"), "{turns:?}");
    let message = format!("{}\n", "a long message ".repeat(50));
    let outcome = talk("-c 60 --context-shift", &message);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("ask for a larger context (-c)"), "{}", outcome.stderr);
}

#[test]
fn a_model_without_a_template_does_not_talk() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("toy.p64");
    std::fs::write(&path, toy::model(&toy::metadata()).build()).expect("written");
    let output = start(&path, "").wait_with_output().expect("p64 ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("no chat template") && text.contains("(-p)"), "{text}");
}

#[cfg(unix)]
mod interrupt {
    use super::*;

    fn interrupt(child: &Child) {
        let sent = Command::new("kill").arg("-INT").arg(child.id().to_string()).status().expect("kill starts");
        assert!(sent.success());
    }

    fn ended(child: &mut Child, within: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        while began.elapsed() < within {
            if let Some(status) = child.try_wait().expect("a child") {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// An endless answer is stopped, and the conversation goes on.
    #[test]
    fn ctrl_c_stops_the_answer_and_not_the_program() {
        let mut child = start(&tiny(), "--temp 0 -t 1 -c 64 --context-shift --ignore-eos");
        let mut stdin = child.stdin.take().expect("a pipe");
        let mut stdout = child.stdout.take().expect("a pipe");
        stdin.write_all(b"Tell me a story.\n").expect("written");
        stdout.read_exact(&mut [0]).expect("an answer begins");
        // Whoever does not read blocks the writer, which then does not look at the signal.
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            stdout.read_to_end(&mut text).map(|_| text)
        });
        assert_eq!(ended(&mut child, Duration::from_millis(300)), None, "the answer has no end");
        interrupt(&child);
        stdin.write_all(b"/stats\n/exit\n").expect("written");
        let status = ended(&mut child, Duration::from_secs(60)).expect("it was stopped");
        assert_eq!(status.code(), Some(0));
        reader.join().expect("no panic").expect("readable");
        let mut notes = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut notes).expect("UTF-8");
        assert!(notes.contains("(stopped)") && notes.contains("tokens/s, stopped"), "{notes}");
    }

    /// Between answers it ends the program, as it would any other.
    #[test]
    fn ctrl_c_at_rest_ends_the_program() {
        let mut child = start(&tiny(), "--temp 0 -t 1 -n 2 -q");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(b"Hello\n").expect("written");
        let mut stdout = child.stdout.take().expect("a pipe");
        let mut byte = [0];
        while byte[0] != b'\n' {
            stdout.read_exact(&mut byte).expect("an answer");
        }
        // The answer's line ends a moment before the answer does.
        let began = Instant::now();
        let status = loop {
            interrupt(&child);
            if let Some(status) = ended(&mut child, Duration::from_millis(200)) {
                break status;
            }
            assert!(began.elapsed() < Duration::from_secs(60));
        };
        assert_eq!(status.code(), Some(130));
    }
}
