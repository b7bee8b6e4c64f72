//! The keys by which a GGUF says what its weights are, of a model whose weights were encoded anew.

use crate::write::Pairs;
use p64_core::metadata::Metadata;
use p64_core::{DType, Shape};
use std::collections::BTreeMap;

const FILE_TYPE: &str = "general.file_type";
const VERSION: &str = "general.quantization_version";

/// The version of GGML's block formats.
const QUANTIZATION_VERSION: u32 = 2;

/// The keys with those two as the tensors have it, the file type only where there was one and where the type of most
/// elements has a number; and without those of a split source.
pub(super) fn renewed(metadata: &Metadata<'_>, tensors: impl Iterator<Item = (DType, Shape)>) -> Pairs {
    let mut elements: BTreeMap<u16, u64> = BTreeMap::new();
    for (dtype, shape) in tensors.filter(|(_, shape)| shape.rank() > 1) {
        let sum = elements.entry(dtype.id()).or_default();
        *sum = sum.saturating_add(shape.elements().unwrap_or_default());
    }
    let quantized = elements.keys().any(|id| !matches!(DType::from_id(*id), DType::F32 | DType::F16 | DType::BF16));
    let most = elements.into_iter().max_by_key(|(_, sum)| *sum).and_then(|(id, _)| number(DType::from_id(id)));
    let mut pairs = Pairs::new();
    for (key, value) in metadata.iter().filter(|(key, _)| !key.starts_with("split.")) {
        match (key, most) {
            (FILE_TYPE, Some(most)) => pairs.u32(key, most),
            _ => pairs.value(key, value),
        };
    }
    if quantized && metadata.get(VERSION).is_none() {
        pairs.u32(VERSION, QUANTIZATION_VERSION);
    }
    pairs
}

/// llama.cpp's number for "mostly" a type; of a K type, that of its plain mix.
const fn number(dtype: DType) -> Option<u32> {
    Some(match dtype {
        DType::F32 => 0,
        DType::F16 => 1,
        DType::Q4_0 => 2,
        DType::Q4_1 => 3,
        DType::Q8_0 => 7,
        DType::Q5_0 => 8,
        DType::Q5_1 => 9,
        DType::Q2_K => 10,
        DType::Q3_K => 11,
        DType::Q4_K => 14,
        DType::Q5_K => 16,
        DType::Q6_K => 18,
        DType::IQ4_NL => 25,
        DType::IQ4_XS => 30,
        DType::BF16 => 32,
        DType::TQ1_0 => 36,
        DType::TQ2_0 => 37,
        _ => return None,
    })
}
