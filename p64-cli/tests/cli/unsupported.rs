//! A model that does not run: one line from `run`, and every other command takes it.

use crate::{p64, p64_on};
use p64_core::DType;
use p64_tests::gguf::GgufBuilder;

#[test]
fn run_says_what_is_missing_and_the_rest_works() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let keys = |family: &str| GgufBuilder::new(3).str("general.architecture", family).u32("mamba.block_count", 1);
    let vocabulary = || GgufBuilder::new(3).model_keys(2);
    for (name, source, says) in [
        (
            "family",
            keys("mamba").tensor("blk.0.ssm_in.weight", DType::IQ2_XS, &[256, 3]),
            "architecture \"mamba\" (it runs: ",
        ),
        ("vocabulary", vocabulary(), "a vocabulary without weights"),
        (
            "key",
            vocabulary().tensor("token_embd.weight", DType::I16, &[32, 3]),
            "key llama.feed_forward_length is missing",
        ),
    ] {
        let gguf = source.write(folder.path(), &format!("{name}.gguf"));
        let [container, back] = ["p64", "back.gguf"].map(|end| folder.path().join(format!("{name}.{end}")));
        p64(["convert".as_ref(), gguf.as_os_str(), container.as_os_str()]).ok();
        p64_on("verify --strict {}", &container).ok();
        p64(["export".as_ref(), container.as_os_str(), back.as_os_str()]).ok();
        assert_eq!(std::fs::read(&gguf).expect("there"), std::fs::read(&back).expect("there"), "{name}");
        for path in [&gguf, &container] {
            let inspected = p64_on("inspect {}", path).ok();
            assert!(
                inspected.stdout.contains(if name == "family" { "mamba" } else { "llama" }),
                "{}",
                inspected.stdout
            );
            for line in ["run {} -p a -n 1", "bench {}"] {
                let outcome = p64_on(line, path);
                assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""), "{line}: {}", outcome.stderr);
                assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
                assert!(outcome.stderr.starts_with(&format!("error: {}: ", path.display())), "{}", outcome.stderr);
                assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
                let error = &p64_on(&format!("--json {line}"), path).object()["error"];
                assert_eq!((error["kind"].as_str(), error["exit_code"].as_i64()), (Some("input"), Some(1)), "{error}");
            }
        }
    }
}
