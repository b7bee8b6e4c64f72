//! A GGUF key-value area: what parses can be walked to its end and says the same in both of its forms.

use p64_core::metadata::{Metadata, Value, ValueKind};

/// The target's body.
pub fn run(data: &[u8]) {
    let Ok(metadata) = Metadata::parse(data, 0) else { return };
    let mut pairs = 0;
    for (key, value) in &metadata {
        pairs += 1;
        assert!(!key.is_empty());
        if pairs <= 16 {
            assert!(metadata.get(key).is_some(), "{key:?} is listed but not found");
        }
        walk(value);
    }
    assert_eq!(pairs, metadata.len(), "the walk ends early");

    let count = u64::from(metadata.len());
    let (again, used) = Metadata::parse_pairs(metadata.pair_bytes(), count, 8).expect("the same pairs parse again");
    assert_eq!(used, metadata.pair_bytes().len());
    assert_eq!(again.len(), metadata.len());
}

/// Takes a value apart through every accessor.
fn walk(value: Value<'_>) {
    let _ = (value.as_u64(), value.as_i64(), value.as_f32(), value.as_bool(), value.as_str());
    if let Some(array) = value.as_array() {
        let elements = array.iter().inspect(|element| assert_eq!(element.kind(), array.kind())).count();
        assert_eq!(elements as u64, array.len(), "an array's walk ends early");
        let strings = array.strings().count() as u64;
        assert_eq!(strings, if array.kind() == ValueKind::String { array.len() } else { 0 });
    }
}
