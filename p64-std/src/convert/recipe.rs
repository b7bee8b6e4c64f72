//! What becomes of each tensor.

use super::{Layout, ProduceOptions};
use crate::quantize;
use crate::source::SourceTensor;
use p64_core::DType;
use p64_core::kernel::is_supported;

/// What becomes of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recipe {
    /// The same bytes.
    AsIs,
    /// Q4_K with its scales expanded (spec §7.2.1).
    Expand,
    /// Decoded and encoded as another type.
    Encode(DType),
}

impl Recipe {
    /// The type that a tensor of type `from` has afterwards.
    pub const fn dtype(self, from: DType) -> DType {
        match self {
            Self::AsIs => from,
            Self::Expand => DType::Q4KSoa,
            Self::Encode(to) => to,
        }
    }
}

/// A recipe, and why it is another than was asked for.
pub(super) struct Choice {
    pub recipe: Recipe,
    pub note: Option<String>,
}

impl Choice {
    const fn of(recipe: Recipe) -> Self {
        Self { recipe, note: None }
    }
}

/// What `options` make of a tensor.
pub(super) fn choose(tensor: &SourceTensor<'_>, options: &ProduceOptions) -> Choice {
    let from = tensor.payload.dtype();
    match options.weights {
        Layout::Verbatim => Choice::of(Recipe::AsIs),
        Layout::Soa if from == DType::Q4_K => Choice::of(Recipe::Expand),
        Layout::Soa => Choice::of(Recipe::AsIs),
        Layout::F16 if is_matrix(tensor) && from != DType::F16 => encode(tensor, DType::F16),
        Layout::F16 => Choice::of(Recipe::AsIs),
    }
}

/// Encoding as `to`, where the tensor allows it.
fn encode(tensor: &SourceTensor<'_>, to: DType) -> Choice {
    let (from, shape) = (tensor.payload.dtype(), tensor.payload.shape());
    if from == to {
        return Choice::of(Recipe::AsIs);
    }
    let reason = if !is_supported(from) {
        Some(format!("its type {from} cannot be decoded"))
    } else if !quantize::supports(to) {
        Some(format!("nothing writes {to}"))
    } else if to == DType::Ternary && shape.rank() > 2 {
        Some("TERNARY has one scale for a whole tensor, which several matrices do not share".to_owned())
    } else if to.byte_len(&shape).is_err() {
        Some(format!("its rows of {} are no whole blocks of {to}", shape.row_len()))
    } else {
        None
    };
    match reason {
        None => Choice::of(Recipe::Encode(to)),
        Some(reason) => {
            let note = Some(format!("{} stays {from}: {reason}", tensor.name));
            Choice { recipe: Recipe::AsIs, note }
        }
    }
}

/// Whether a tensor is the weight of a product or a table of rows, and none of the small ones that are taken as they are:
/// vectors, kernels of convolutions, norms of each head, routers.
fn is_matrix(tensor: &SourceTensor<'_>) -> bool {
    const SMALL: [&str; 6] = ["_norm", "ssm_", "ffn_gate_inp", "time_mix", "conv", "rope_"];
    let shape = tensor.payload.shape();
    let name = tensor.name.as_str();
    is_float(tensor.payload.dtype())
        && shape.rows().is_some_and(|rows| rows > 1)
        && name.ends_with("weight")
        && !SMALL.iter().any(|part| name.contains(part))
}

fn is_float(dtype: DType) -> bool {
    !matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::F64) && is_supported(dtype)
}
