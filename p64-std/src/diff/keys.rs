//! The keys of two models, one by one.

use p64_core::metadata::{Array, Metadata, Value};
use std::collections::HashMap;

/// A key that differs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KeyDiff<'s> {
    /// The key.
    pub key: &'s str,
    /// The first model's value, if it has the key.
    pub a: Option<Value<'s>>,
    /// The second model's value, if it has the key.
    pub b: Option<Value<'s>>,
    /// What differs between two arrays of one kind.
    pub array: Option<ArrayDiff<'s>>,
}

/// How two arrays differ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ArrayDiff<'s> {
    /// Elements that differ or that only one array has.
    pub differing: u64,
    /// The first of them, from 0.
    pub first: u64,
    /// It, in the first array.
    pub a: Option<Value<'s>>,
    /// It, in the second.
    pub b: Option<Value<'s>>,
}

impl KeyDiff<'_> {
    /// Whether the key belongs to the tokenizer.
    #[must_use]
    pub fn is_of_tokenizer(&self) -> bool {
        self.key.starts_with("tokenizer.")
    }
}

/// The keys that differ, and how many each model has.
pub(super) fn compare<'s>(a: Option<&Metadata<'s>>, b: Option<&Metadata<'s>>) -> (Vec<KeyDiff<'s>>, [Option<u32>; 2]) {
    let pairs = |area: Option<&Metadata<'s>>| area.map(|area| area.iter().collect::<Vec<_>>()).unwrap_or_default();
    let (left, right) = (pairs(a), pairs(b));
    let values: HashMap<&str, Value<'s>> = right.iter().copied().collect();
    let names: std::collections::HashSet<&str> = left.iter().map(|(key, _)| *key).collect();
    let mut keys = Vec::new();
    for (key, here) in left {
        match values.get(key).copied() {
            Some(there) if same(here, there) => {}
            b => {
                let array = match (here, b) {
                    (Value::Array(here), Some(Value::Array(there))) => arrays(here, there),
                    _ => None,
                };
                keys.push(KeyDiff { key, a: Some(here), b, array });
            }
        }
    }
    let added = right.into_iter().filter(|(key, _)| !names.contains(key));
    keys.extend(added.map(|(key, value)| KeyDiff { key, a: None, b: Some(value), array: None }));
    (keys, [a, b].map(|area| area.map(Metadata::len)))
}

/// Equal in kind and bits: a NaN is equal to itself, and `0.0` is not `-0.0`.
fn same(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::F32(a), Value::F32(b)) => a.to_bits() == b.to_bits(),
        (Value::F64(a), Value::F64(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

fn arrays<'s>(a: Array<'s>, b: Array<'s>) -> Option<ArrayDiff<'s>> {
    if a.kind() != b.kind() {
        return None;
    }
    let (mut here, mut there) = (a.iter(), b.iter());
    let mut diff: Option<ArrayDiff<'s>> = None;
    for index in 0u64.. {
        let (a, b) = (here.next(), there.next());
        match (a, b) {
            (None, None) => break,
            (Some(a), Some(b)) if same(a, b) => {}
            (a, b) => {
                let diff = diff.get_or_insert(ArrayDiff { differing: 0, first: index, a, b });
                diff.differing = diff.differing.saturating_add(1);
            }
        }
    }
    diff
}
