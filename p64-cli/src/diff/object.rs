//! The object of `--json`.

use super::values;
use p64_std::diff::{Change, Difference, Fact, KeyDiff, Numbers, Tensor, TensorDiff};
use serde_json::{Value, json};
use std::path::Path;

/// Everything that was found; of tensors without a change only their number.
pub fn object(a: &Path, b: &Path, difference: &Difference<'_>) -> Value {
    let changed = || difference.tensors.iter().filter(|tensor| !tensor.changes().is_empty());
    let count = |change| changed().filter(|tensor| tensor.changes().contains(&change)).count();
    let counts = [
        Change::Added,
        Change::Removed,
        Change::Renamed,
        Change::Retyped,
        Change::Reshaped,
        Change::Rewritten,
        Change::Placed,
        Change::Moved,
    ];
    let counts: serde_json::Map<String, Value> =
        counts.into_iter().map(|change| (change.name().to_owned(), json!(count(change)))).collect();
    json!({
        "a": a.display().to_string(),
        "b": b.display().to_string(),
        "same_model": difference.is_same_model(),
        "compared": difference.tensors.len(),
        "equal": difference.tensors.len() - changed().count(),
        "counts": counts,
        "tensors": changed().map(tensor_diff).collect::<Vec<_>>(),
        "key_counts": difference.key_counts,
        "keys": difference.keys.iter().map(key).collect::<Vec<_>>(),
        "layout": difference.facts.iter().map(fact).collect::<Vec<_>>(),
    })
}

fn tensor_diff(diff: &TensorDiff) -> Value {
    json!({
        "changes": diff.changes().into_iter().map(Change::name).collect::<Vec<_>>(),
        "a": diff.a.as_ref().map(tensor),
        "b": diff.b.as_ref().map(tensor),
        "same_bytes": diff.same_bytes,
        "first_difference": diff.first_difference,
        "numbers": diff.numbers.as_ref().map(numbers),
    })
}

fn tensor(tensor: &Tensor) -> Value {
    json!({
        "index": tensor.index,
        "name": tensor.name,
        "type": tensor.dtype.to_string(),
        "shape": tensor.shape.dims(),
        "bytes": tensor.bytes,
        "layer": tensor.placement.map(|(layer, _)| layer),
        "role": tensor.placement.map(|(_, role)| role.to_string()),
    })
}

fn numbers(numbers: &Numbers) -> Value {
    json!({
        "compared": numbers.compared,
        "not_finite": numbers.not_finite,
        "equal": numbers.equal,
        "rmse": numbers.rmse(),
        "relative": numbers.relative(),
        "mean_shift": numbers.mean_shift(),
        "max": numbers.max,
        "max_at": numbers.max_at,
        "cosine": numbers.cosine(),
    })
}

fn key(diff: &KeyDiff<'_>) -> Value {
    let kind = |value: Option<p64_core::metadata::Value<'_>>| value.map(|value| value.kind().name());
    json!({
        "key": diff.key,
        "a": diff.a.map(values::json),
        "b": diff.b.map(values::json),
        "types": [kind(diff.a), kind(diff.b)],
        "array": diff.array.map(|array| json!({
            "differing": array.differing,
            "first": array.first,
            "a": array.a.map(values::json),
            "b": array.b.map(values::json),
        })),
    })
}

fn fact(fact: &Fact) -> Value {
    json!({ "name": fact.name, "a": fact.a, "b": fact.b })
}
