use super::*;
use std::format;
use std::vec::Vec;

fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text);
}

fn pair(out: &mut Vec<u8>, key: &[u8], kind: u32, value: &[u8]) {
    string(out, key);
    out.extend(kind.to_le_bytes());
    out.extend(value);
}

fn array(kind: u32, len: u64, body: &[u8]) -> Vec<u8> {
    let mut out = kind.to_le_bytes().to_vec();
    out.extend(len.to_le_bytes());
    out.extend(body);
    out
}

fn area(count: u64, pairs: &[u8]) -> Vec<u8> {
    [&count.to_le_bytes(), pairs].concat()
}

fn sample() -> Vec<u8> {
    let mut pairs = Vec::new();
    let mut text = Vec::new();
    string(&mut text, b"llama");
    pair(&mut pairs, b"general.architecture", 8, &text);
    pair(&mut pairs, b"layers", 4, &30u32.to_le_bytes());
    pair(&mut pairs, b"eps", 6, &1e-5f32.to_le_bytes());
    pair(&mut pairs, b"bos", 7, &[1]);
    let mut strings = Vec::new();
    string(&mut strings, b"a");
    string(&mut strings, b"");
    string(&mut strings, &[0xff]);
    pair(&mut pairs, b"tokens", 9, &array(8, 3, &strings));
    pair(&mut pairs, b"scores", 9, &array(6, 2, &[0, 0, 128, 63, 0, 0, 0, 192]));
    pair(&mut pairs, b"minus", 5, &(-1i32).to_le_bytes());
    pair(&mut pairs, b"wide", 10, &u64::MAX.to_le_bytes());
    area(8, &pairs)
}

/// Long arrays of strings, which a walk leaps over, more of them than it knows of, and keys between and behind them.
#[test]
fn long_arrays_are_leapt_over() {
    let (mut pairs, mut strings) = (Vec::new(), Vec::new());
    for at in 0..300usize {
        string(&mut strings, &[b'x'].repeat(at % 5));
    }
    for at in 0..4u32 {
        pair(&mut pairs, format!("long.{at}").as_bytes(), 9, &array(8, 300, &strings));
        pair(&mut pairs, format!("key.{at}").as_bytes(), 4, &at.to_le_bytes());
    }
    let bytes = area(8, &pairs);
    let behind = [&pairs[..], b"more"].concat();
    let (rest, _) = Metadata::parse_pairs(&behind, 8, 1000).expect("well-formed");
    for metadata in [Metadata::parse(&bytes, 77).expect("well-formed"), rest] {
        for at in 0..4 {
            let long = metadata.array(&format!("long.{at}")).expect("an array").expect("there");
            assert_eq!((long.len(), long.strings().count(), long.bytes()), (300, 300, &strings[..]));
            assert_eq!(metadata.u32(&format!("key.{at}")), Ok(Some(at)));
        }
        assert_eq!(metadata.iter().count(), 8);
    }
}

#[test]
fn reads_every_kind_it_finds() {
    let bytes = sample();
    let metadata = Metadata::parse(&bytes, 0).expect("well-formed");
    assert_eq!(metadata.len(), 8);
    assert_eq!(metadata.str("general.architecture"), Ok(Some("llama")));
    assert_eq!(metadata.u32("layers"), Ok(Some(30)));
    assert_eq!(metadata.f32("eps"), Ok(Some(1e-5)));
    assert_eq!(metadata.bool("bos"), Ok(Some(true)));
    let tokens = metadata.array("tokens").expect("an array").expect("there");
    assert_eq!(tokens.strings().collect::<Vec<_>>(), [&b"a"[..], b"", &[0xff]]);
    let scores = metadata.array("scores").expect("an array").expect("there");
    assert_eq!(scores.iter().filter_map(Value::as_f32).collect::<Vec<_>>(), [1.0, -2.0]);
    assert_eq!(metadata.u32("absent"), Ok(None));
    assert_eq!(metadata.iter().count(), 8);
    assert_eq!(metadata.pair_bytes(), &bytes[8..]);
}

#[test]
fn a_wrong_type_is_an_error_with_the_position() {
    let bytes = sample();
    let metadata = Metadata::parse(&bytes, 0).expect("well-formed");
    assert_eq!(metadata.u32("eps").expect_err("a float").place, Place::Key(2));
    assert_eq!(metadata.u32("minus").expect_err("negative").code, Code::MetadataWrongType);
    assert_eq!(metadata.u32("wide").expect_err("64 bits").code, Code::MetadataWrongType);
    assert_eq!(metadata.bool("layers").expect_err("a number").code, Code::MetadataWrongType);
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = sample();
    for len in 0..bytes.len() {
        assert!(Metadata::parse(&bytes[..len], 0).is_err(), "{len} bytes");
    }
}

#[test]
fn refuses_what_is_malformed() {
    let one = |key: &[u8], kind: u32, value: &[u8]| {
        let mut pairs = Vec::new();
        pair(&mut pairs, key, kind, value);
        area(1, &pairs)
    };
    let cases: [(Vec<u8>, Code); 11] = [
        (area(u64::MAX, &[]), Code::MetadataCount),
        (area(1 << 40, &[0; 64]), Code::MetadataCount),
        (one(b"", 0, &[0; 8]), Code::MetadataEmptyKey),
        (one(b"k\0", 0, &[0]), Code::MetadataKeyNul),
        (one(&[0xff], 0, &[0]), Code::MetadataNotUtf8),
        (one(b"k", 13, &[0; 8]), Code::MetadataType),
        (one(b"k", 7, &[2]), Code::MetadataBool),
        (one(b"k", 9, &array(9, 0, &[])), Code::MetadataNested),
        (one(b"k", 9, &array(10, 1 << 61, &[0; 16])), Code::MetadataCount),
        (one(b"k", 9, &array(7, 2, &[1, 3])), Code::MetadataBool),
        ([one(b"k", 0, &[0]), [0].to_vec()].concat(), Code::MetadataTrailing),
    ];
    for (bytes, code) in cases {
        assert_eq!(Metadata::parse(&bytes, 0).expect_err("malformed").code, code);
    }
}

/// A length near 2^64 must not wrap around into a small one.
#[test]
fn lengths_never_wrap() {
    for len in [u64::MAX, u64::MAX - 7, 1 << 63, u64::MAX / 8 + 2] {
        let mut pairs = len.to_le_bytes().to_vec();
        pairs.extend([b'k'; 32]);
        assert_eq!(Metadata::parse(&area(1, &pairs), 0).expect_err("far too long").code, Code::MetadataTruncated);
        let mut pairs = Vec::new();
        pair(&mut pairs, b"k", 9, &array(4, len, &[0; 32]));
        assert_eq!(Metadata::parse(&area(1, &pairs), 0).expect_err("far too long").code, Code::MetadataCount);
    }
}

#[test]
fn duplicates_are_found_across_windows() {
    let keys = |names: &[std::string::String]| {
        let mut pairs = Vec::new();
        for name in names {
            pair(&mut pairs, name.as_bytes(), 0, &[0]);
        }
        area(names.len() as u64, &pairs)
    };
    let mut names: Vec<_> = (0..300).map(|i| std::format!("key.{i}")).collect();
    assert!(Metadata::parse(&keys(&names), 0).is_ok());
    for (first, second) in [(0, 1), (0, 299), (63, 64), (64, 200), (298, 299)] {
        let original = core::mem::replace(&mut names[second], std::format!("key.{first}"));
        let error = Metadata::parse(&keys(&names), 0).expect_err("twice");
        let second_place = Place::Key(u32::try_from(second).expect("small"));
        assert_eq!((error.code, error.place, error.expected), (Code::MetadataDuplicateKey, second_place, first as u64));
        names[second] = original;
    }
}
