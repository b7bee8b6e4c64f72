//! A test in a process of its own: whoever touches a guard page is ended by a signal, and cannot say in what.

use std::env;
use std::process::{Command, Output};

const INSIDE: &str = "P64_GUARD_PAGES";

/// The test `name` again as another process, which runs `cases`; `None` in that process, when they are through.
pub fn run(name: &str, cases: impl FnOnce()) -> Option<Output> {
    if env::var_os(INSIDE).is_some() {
        cases();
        return None;
    }
    let program = env::current_exe().expect("this test has a file");
    let arguments = [name, "--exact", "--nocapture", "--test-threads=1"];
    Some(Command::new(program).args(arguments).env(INSIDE, "1").output().expect("it starts again"))
}

/// Runs `cases` as another process, which must end well. A failure shows the last cases that they [`enter`]ed.
pub fn test(name: &str, cases: impl FnOnce()) {
    let Some(output) = run(name, cases) else { return };
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let entered: Vec<&str> = stdout.lines().filter(|line| line.starts_with("case: ")).collect();
    let last = entered.last().unwrap_or(&"no case");
    assert!(output.status.success(), "{} in the last of {} cases\n{last}\n{stderr}", output.status, entered.len());
    // A name that no test has runs none and ends well.
    assert!(stdout.contains("1 passed"), "{stdout}");
}

/// Says which case comes next.
pub fn enter(case: std::fmt::Arguments<'_>) {
    println!("case: {case}");
}
