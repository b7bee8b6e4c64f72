//! How far logits may be from the golden, relative to its largest value.

use p64_core::DType;
use p64_core::kernel::{Activations, tolerance::tolerance};
use p64_tests::conformance::Recipe;
use std::ops::RangeInclusive;

/// With activations in f32, for every type: weights are exact on both sides, what differs is the order of sums. Where gelu is
/// rounded to f16, llama.cpp on one CPU is up to 7.4e-5 from llama.cpp on another (`scripts/conformance/make.py`).
pub const EXACT: f64 = 1e-4;

/// What a model of a few layers makes of a product's error, on the production path, where activations are rounded to 16 bits
/// before they meet a quantised weight: of 8.8e-5 for a product (`p64_core::kernel::tolerance`) 4.4e-4.
const AMPLIFICATION: f64 = 5.0;

/// Where gelu is rounded to f16 (as ggml does, through a table): a value that falls on the other side of a rounding differs
/// by 2^-11 at once, on the production path in every fortieth place or so.
const HALF_GELU: f64 = 1e-3;

/// With a rounded KV cache: rms as a part of llama.cpp's own for the same cache. Both round alike, and llama.cpp the queries
/// too; less than the lower end would be a cache that is not rounded.
pub const CACHE: RangeInclusive<f64> = 0.5..=1.25;

/// The bar of the production path: that of the most tolerant type among the model's matrices.
pub fn production(recipe: &Recipe) -> f64 {
    let of = |name: &str| DType::ALL.iter().find(|dtype| dtype.to_string() == name).expect("a type that there is");
    let product = |name: &&str| tolerance(*of(name), Activations::Quantized).unwrap_or(f64::NAN);
    let product = recipe.types().iter().map(product).fold(0.0, f64::max);
    let gelu = product > EXACT / AMPLIFICATION && (recipe.arch.starts_with("gemma") || recipe.arch == "gpt2");
    if gelu { HALF_GELU } else { (AMPLIFICATION * product).max(EXACT) }
}

/// Names of the types that this build computes with and that a GGUF may have.
pub fn types() -> impl Iterator<Item = String> {
    let computed = DType::ALL.iter().filter(|dtype| p64_core::kernel::is_supported(**dtype));
    let of_gguf = computed.filter(|dtype| dtype.is_ggml());
    of_gguf.map(ToString::to_string)
}
