//! How far logits may be from the golden, relative to its largest value.

use p64_core::DType;

/// With activations in f32, for every type: weights are exact on both sides, what differs is the order of sums.
pub const EXACT: f64 = 1e-4;

/// On the production path, where activations are rounded to 16 bits before they meet a quantised weight: each of up to
/// fifty products of a model adds its part (p64_core::kernel::tolerance).
pub const SIXTEEN_BITS: f64 = 1e-3;

/// The bar of the production path for a model whose matrices have these types.
pub fn production(types: &[&str]) -> f64 {
    let float = |name: &&str| matches!(*name, "F32" | "F16" | "BF16");
    if types.iter().all(float) { EXACT } else { SIXTEEN_BITS }
}

/// Names of the types that this build computes with and that a GGUF may have.
pub fn types() -> impl Iterator<Item = String> {
    let computed = DType::ALL.iter().filter(|dtype| p64_core::kernel::is_supported(**dtype));
    let of_gguf = computed.filter(|dtype| !matches!(dtype, DType::Q4KSoa | DType::Ternary));
    of_gguf.map(ToString::to_string)
}
