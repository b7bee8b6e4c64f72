//! Conversions that end early, in a process of their own: SIGKILL, a full disk, little memory.

use super::{convert, entries, folder};
use p64_core::DType;
use p64_std::convert::{ConvertOptions, Phase, convert_gguf};
use p64_tests::gguf::{GgufBuilder, NO_PADDING};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ENV: &str = "P64_TEST_CONVERT";
const MIB: u64 = 1 << 20;

/// A source of `mib` MiB in one tensor, all of it a hole.
fn sparse(folder: &Path, mib: u64) -> PathBuf {
    let source = GgufBuilder::new(3).tensor("a", DType::I8, &[0, 1 << 20]).last_padding(NO_PADDING);
    let mut bytes = source.build();
    let at = bytes.windows(8).rposition(|eight| eight == MIB.to_le_bytes()).expect("the rows") - 8;
    bytes[at..at + 8].copy_from_slice(&mib.to_le_bytes());
    let path = folder.join("in.gguf");
    std::fs::write(&path, &bytes).expect("written");
    let length = (bytes.len() as u64).next_multiple_of(32) + mib * MIB;
    std::fs::File::options().write(true).open(&path).expect("there").set_len(length).expect("a sparse file");
    path
}

/// The same with bytes in it: a container made of it has no holes.
fn dense(folder: &Path, mib: u64) -> PathBuf {
    let path = sparse(folder, mib);
    let mut bytes = std::fs::read(&path).expect("there");
    let payload = bytes.len() - usize::try_from(mib * MIB).expect("small");
    bytes[payload..].fill(0x55);
    std::fs::write(&path, &bytes).expect("written");
    path
}

/// Not a test by itself: the child of those below. `mode|input|output` says what to do.
#[test]
fn child() {
    let Some(order) = std::env::var_os(ENV) else { return };
    let order = order.into_string().expect("UTF-8");
    let [mode, input, output] = order.split('|').collect::<Vec<_>>().try_into().expect("three fields");
    let (input, output) = (Path::new(input), Path::new(output));
    let result = convert_gguf(input, output, &ConvertOptions::default(), &mut |progress| {
        if mode == "hang" && progress.phase == Phase::Write && progress.done * 2 > progress.total {
            println!("\nhalf");
            std::io::stdout().flush().expect("written");
            loop {
                std::thread::park();
            }
        }
    });
    match result {
        Ok(_) => println!("\nconverted"),
        Err(error) => println!("\nfailed {}: {error}", error.exit_code()),
    }
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says it");
        println!("peak {}", peak.trim());
    }
}

/// The command of the child; `shell` runs before it.
fn command(shell: &str, mode: &str, input: &Path, output: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell} exec \"$0\" --exact interrupted::child --nocapture --test-threads 1")]);
    command.arg(std::env::current_exe().expect("this test"));
    command.env(ENV, format!("{mode}|{}|{}", input.display(), output.display()));
    command
}

fn run(shell: &str, input: &Path, output: &Path) -> String {
    let output = command(shell, "run", input, output).output().expect("started");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn sigkill_in_the_middle_leaves_the_old_file_and_no_other() {
    let folder = folder();
    let input = sparse(folder.path(), 16);
    let output = folder.path().join("out.p64");
    std::fs::write(&output, "the old file").expect("written");
    let mut child = command("", "hang", &input, &output).stdout(Stdio::piped()).spawn().expect("started");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "half"), "the child stopped early");
    child.kill().expect("SIGKILL");
    child.wait().expect("gone");
    assert_eq!(std::fs::read(&output).expect("there"), b"the old file");
    assert_eq!(entries(folder.path()), ["in.gguf", "out.p64"]);
}

/// A limit on the length of files stands in for the full disk: the same call fails at the same place.
#[test]
fn no_room_leaves_the_old_file_and_no_other() {
    let folder = folder();
    let input = sparse(folder.path(), 16);
    let output = folder.path().join("out.p64");
    std::fs::write(&output, "the old file").expect("written");
    let said = run("trap '' XFSZ; ulimit -f 4096;", &input, &output);
    assert!(said.contains("failed 2: ") && said.contains("there is no room for the file"), "{said}");
    assert_eq!(std::fs::read(&output).expect("there"), b"the old file");
    assert_eq!(entries(folder.path()), ["in.gguf", "out.p64"]);
}

/// The full disk itself: a small tmpfs in a namespace of its own. Where none is to be had the test fails, and says so.
#[test]
fn a_full_disk() {
    let folder = folder();
    let input = dense(folder.path(), 16);
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).expect("created");
    let can = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none"]).arg(&disk).output();
    let can = can.expect("unshare is part of util-linux");
    assert!(can.status.success(), "a small file system needs a namespace: {}", String::from_utf8_lossy(&can.stderr));
    let script = format!(
        "mount -t tmpfs -o size=4m none '{0}' && echo old > '{0}/out.p64' && \"$0\" --exact interrupted::child --nocapture; \
         ls -A '{0}'; cat '{0}/out.p64'",
        disk.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script]).arg(std::env::current_exe().expect("this test"));
    command.env(ENV, format!("run|{}|{}", input.display(), disk.join("out.p64").display()));
    let said = String::from_utf8_lossy(&command.output().expect("started").stdout).into_owned();
    let start: String = said.chars().take(1000).collect();
    assert!(said.contains("failed 2: ") && said.contains("there is no room for the file"), "{start}");
    assert!(said.ends_with("\nout.p64\nold\n"), "{start}");
}

/// 4 MiB of buffer, the tables, and what any test process needs: far below the source's 192 MiB.
#[test]
fn memory_does_not_grow_with_the_payloads() {
    let peak = |mib| {
        let folder = folder();
        let input = sparse(folder.path(), mib);
        let said = run("", &input, &folder.path().join("out.p64"));
        assert!(said.contains("\nconverted\n"), "{said}");
        let kib = said.lines().find_map(|line| line.strip_prefix("peak ")?.strip_suffix(" kB"));
        kib.expect("the child says it").parse::<u64>().expect("a number")
    };
    let (small, large) = (peak(8), peak(192));
    assert!(large < 32 * 1024, "{large} KiB");
    assert!(large < small + 2048, "{small} KiB for 8 MiB, {large} KiB for 192 MiB");
}

#[test]
fn an_output_that_cannot_be() {
    let folder = folder();
    let input = GgufBuilder::new(3).small_model().write(folder.path(), "in.gguf");
    for output in [folder.path().to_owned(), folder.path().join("missing/out.p64"), input.join("out.p64")] {
        let error = convert(&input, &output).expect_err("no place for a file");
        assert_eq!(error.exit_code(), 2, "{error}");
    }
    assert_eq!(entries(folder.path()), ["in.gguf"]);
}
