//! Every malformed GGUF is answered as `docs/acceptance.md` says, from memory and from disk, within 100 ms.

use p64_std::gguf::{Gguf, GgufFile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_millis(100);

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/malformed")
}

/// Case name to whether it is accepted and the words of the table for it.
fn expected() -> BTreeMap<String, (bool, String)> {
    let table = std::fs::read_to_string(data().join("expected.tsv")).expect("the table");
    table
        .lines()
        .map(|line| {
            let mut fields = line.split('\t');
            let mut field = || fields.next().expect("three fields").to_owned();
            let (case, verdict, reason) = (field(), field(), field());
            assert!(matches!(verdict.as_str(), "accept" | "reject"), "{line}");
            (case, (verdict == "accept", reason))
        })
        .collect()
}

/// What our sentence contains for the table's reason. Two checks can find the same fault: which comes first depends on
/// how many bytes are left.
fn words(reason: &str) -> &'static [&'static str] {
    match reason {
        "key count cannot fit the file" => &["keys cannot fit"],
        "tensor count cannot fit the file" => &["tensors cannot fit"],
        "length runs past the end of the file" => &["more bytes are needed", "keys cannot fit"],
        "array count cannot fit the file" => &["cannot fit the remaining"],
        "n_dims is not 1 to 4" => &["1 to 4 are allowed"],
        "shape past what a file can hold" => &["does not fit 64 bits", "the limit is 4294967295"],
        "empty key" => &["the key is empty"],
        "alignment is not a power of two up to 65536" => &["not a power of two from 1 to 65536"],
        "alignment is not a u32 value" => &["u32 is needed"],
        "array of arrays" => &["array of arrays"],
        "duplicate key" => &["the same key"],
        "duplicate tensor name" => &["the same name"],
        "removed or unknown tensor type" => &["was removed from GGML", "not in the GGML registry"],
        "boolean byte is not 0 or 1" => &["not 0 or 1"],
        "empty tensor name" => &["the name is empty"],
        "tensor name is not UTF-8" => &["the name is not UTF-8"],
        "file is 5 bytes short" => &["ends 5 bytes before"],
        "file is 32 bytes short" => &["ends 32 bytes before"],
        "gap between tensors" => &["leaves a gap"],
        "tensors overlap" => &["overlaps"],
        "offset is not a multiple of the alignment" => &["is not a multiple of the alignment"],
        "trailing bytes are not zero padding" => &["follows the last payload"],
        "big-endian" => &["big-endian"],
        "bad magic" => &["big-endian"],
        "version is not 2 or 3" => &["this reader knows 2 and 3"],
        "rows are no whole number of blocks" => &["no whole number"],
        "key is not UTF-8" => &["is not UTF-8"],
        "key holds a NUL byte" => &["NUL"],
        "value type is not 0 to 12" => &["is not in 0..=12"],
        "shorter than the header" => &["cut short"],
        other => panic!("no words for {other:?}"),
    }
}

#[test]
fn every_case_as_the_table_says() {
    let expected = expected();
    let mut seen = 0;
    for (case, (accept, reason)) in &expected {
        let path = data().join("gguf").join(format!("{case}.gguf"));
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{case}: {error}"));
        let start = Instant::now();
        let verdict = Gguf::parse(&bytes);
        assert!(start.elapsed() < LIMIT, "{case}: {:?}", start.elapsed());
        match &verdict {
            Ok(_) => assert!(accept, "{case} was accepted, the table says: {reason}"),
            Err(error) => {
                assert!(!accept, "{case} was refused: {error}");
                let text = error.to_string();
                assert!(
                    words(reason).iter().any(|words| text.contains(words)),
                    "{case}: {text:?} does not say {reason:?}"
                );
            }
        }
        let start = Instant::now();
        let from_disk = GgufFile::open(&path);
        assert!(start.elapsed() < LIMIT, "{case}: {:?}", start.elapsed());
        assert_eq!(from_disk.is_ok(), *accept, "{case} from disk: {from_disk:?}");
        seen += 1;
    }
    let files = std::fs::read_dir(data().join("gguf")).expect("the cases").count();
    assert_eq!(seen, files, "a file without a line in the table");
}
