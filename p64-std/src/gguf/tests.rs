//! Files made here, byte by byte, against the rules of `docs/acceptance.md`.

use super::*;
use p64_core::DType;

/// The least GGUF: one F32 tensor `t` of 4 at offset 0, alignment 32.
fn least() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(b"GGUF");
    bytes.extend_from_slice(&3u32.to_le_bytes());
    bytes.extend_from_slice(&1u64.to_le_bytes());
    bytes.extend_from_slice(&0u64.to_le_bytes());
    bytes.extend_from_slice(&1u64.to_le_bytes());
    bytes.extend_from_slice(b"t");
    bytes.extend_from_slice(&1u32.to_le_bytes());
    bytes.extend_from_slice(&4u64.to_le_bytes());
    bytes.extend_from_slice(&0u32.to_le_bytes());
    bytes.extend_from_slice(&0u64.to_le_bytes());
    bytes.resize(64, 0);
    bytes.extend_from_slice(&[7; 16]);
    bytes
}

#[test]
fn the_least_file() {
    let bytes = least();
    let gguf = Gguf::parse(&bytes).expect("well-formed");
    assert_eq!((gguf.version(), gguf.alignment(), gguf.info_end(), gguf.data_offset()), (3, 32, 57, 64));
    let tensor = gguf.find("t").expect("its only tensor");
    assert_eq!((tensor.dtype, tensor.shape.dims(), tensor.size), (DType::F32, &[4][..], 16));
    assert_eq!(gguf.extent(tensor).of(&bytes), Some(&[7; 16][..]));
    assert!(gguf.find("u").is_none());
}

#[test]
fn every_truncation_is_refused() {
    let bytes = least();
    for len in 0..bytes.len() {
        let error = Gguf::parse(&bytes[..len]).expect_err("cut short");
        assert!(
            matches!(error.problem, Problem::Short { .. } | Problem::TensorCount { .. } | Problem::DataShort { .. }),
            "{len}: {error}"
        );
    }
}

/// Every front of the file either is enough or asks for more: it never gives a wrong verdict.
#[test]
fn a_front_never_decides_what_lies_behind_it() {
    let bytes = least();
    let len = bytes.len() as u64;
    for front in 0..bytes.len() {
        match Gguf::parse_head(&bytes[..front], len) {
            Ok(gguf) => assert!(front as u64 >= gguf.info_end()),
            Err(head::Stop::NeedMore) => assert!(front < 57, "{front}"),
            Err(head::Stop::Refused(error)) => panic!("{front}: {error}"),
        }
    }
}

#[test]
fn padding_after_the_last_payload() {
    let mut bytes = least();
    let extra = [(0, true), (16, true), (48, true), (49, false)];
    for (count, accepted) in extra {
        bytes.resize(80 + count, 0);
        assert_eq!(Gguf::parse(&bytes).is_ok(), accepted, "{count} zero bytes");
    }
    bytes.truncate(80);
    bytes.push(1);
    assert_eq!(Gguf::parse(&bytes).expect_err("not zero").problem, Problem::TailNotZero { byte: 1 });
}

#[test]
fn texts_name_place_offset_and_rule() {
    let mut bytes = least();
    bytes[33] = 5;
    assert_eq!(
        Gguf::parse(&bytes).expect_err("rank 5").to_string(),
        "GGUF tensor 0 \"t\": 5 dimensions, 1 to 4 are allowed, at file offset 0x21 (acceptance rule G11)"
    );
    let mut bytes = least();
    bytes[45] = 36;
    assert!(Gguf::parse(&bytes).expect_err("removed").to_string().contains("BitNet"));
}

/// The declared numbers alone allocate nothing: these would need more memory than there is.
#[test]
fn huge_numbers_in_a_small_file() {
    for at in [8usize, 16, 24, 37] {
        for value in [u64::MAX, 1 << 62, 1 << 40, 1 << 32] {
            let mut bytes = least();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            Gguf::parse(&bytes).expect_err("no such file");
        }
    }
}

#[test]
fn from_disk_as_from_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("least.gguf");
    std::fs::write(&path, least()).expect("written");
    let file = GgufFile::open(&path).expect("well-formed");
    let tensor = file.gguf().tensors()[0];
    let mut payload = [0; 16];
    file.read_at(file.extent(&tensor).start(), &mut payload).expect("in the file");
    assert_eq!(payload, [7; 16]);
}
