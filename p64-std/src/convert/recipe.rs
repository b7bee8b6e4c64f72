//! What becomes of each tensor.

use super::{Layout, ProduceOptions};
use crate::quantize::{self, ModelFacts, Target, TensorFacts, is_weight};
use crate::source::SourceTensor;
use p64_core::DType;
use p64_core::kernel::is_supported;
use p64_core::metadata::Metadata;

/// Names that a note lists before it only counts.
const NAMES: usize = 3;

/// What becomes of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recipe {
    /// The same bytes.
    AsIs,
    /// Q4_K with its scales expanded (spec §7.2.1).
    Expand,
    /// Decoded and encoded as another type; as Q4_K_SOA by way of Q4_K.
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

/// What `options` make of the tensors, and what is not as it was asked for.
pub(super) fn choose(
    tensors: &[SourceTensor<'_>],
    keys: &Metadata<'_>,
    options: &ProduceOptions,
) -> (Vec<Recipe>, Vec<String>) {
    let model = ModelFacts::from_metadata(keys);
    let facts: Vec<_> = tensors
        .iter()
        .map(|tensor| TensorFacts { name: &tensor.name, shape: tensor.payload.shape(), dtype: tensor.payload.dtype() })
        .collect();
    let targets = options.rules.plan(&model, &facts, options.imatrix.is_some());
    let mut notes = Notes::default();
    let recipes = tensors.iter().zip(targets).map(|(tensor, target)| {
        let (from, soa) = (tensor.payload.dtype(), options.weights == Layout::Soa);
        match (target, options.weights) {
            (Some(target), _) => notes.encode(tensor, target, soa),
            (None, _) if options.rules.keeps(&tensor.name, &tensor.payload.shape()) => Recipe::AsIs,
            (None, Layout::Soa) if from == DType::Q4_K => Recipe::Expand,
            (None, Layout::F16) if from != DType::F16 && is_matrix(tensor) => {
                notes.encode(tensor, Target { dtype: DType::F16, wanted: DType::F16 }, false)
            }
            _ => Recipe::AsIs,
        }
    });
    let recipes = recipes.collect();
    (recipes, notes.sentences())
}

/// Whether a tensor is a matrix of weights in a type that stands for numbers with a fraction.
fn is_matrix(tensor: &SourceTensor<'_>) -> bool {
    let (dtype, shape) = (tensor.payload.dtype(), tensor.payload.shape());
    let integer = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::F64);
    is_weight(&tensor.name, &shape) && !integer && is_supported(dtype)
}

/// Reasons, each with the tensors that it is about.
#[derive(Default)]
struct Notes(Vec<(String, Vec<String>)>);

impl Notes {
    /// The recipe for a type, where the tensor allows it.
    fn encode(&mut self, tensor: &SourceTensor<'_>, target: Target, soa: bool) -> Recipe {
        let Target { dtype: to, wanted } = target;
        let (from, shape) = (tensor.payload.dtype(), tensor.payload.shape());
        let reason = if !is_supported(from) {
            format!("its type {from} cannot be decoded")
        } else if !quantize::supports(to) {
            format!("nothing writes {to}")
        } else if to == DType::Ternary && shape.rank() > 2 {
            "TERNARY has one scale for a whole tensor, which several matrices do not share".to_owned()
        } else if to.byte_len(&shape).is_err() {
            format!("its rows of {} are no whole blocks of {to}", shape.row_len())
        } else {
            if wanted != to {
                let reason =
                    format!("{to} instead of {wanted}, of which its rows of {} are no whole blocks", shape.row_len());
                self.add(reason, &tensor.name);
            }
            return Recipe::Encode(if soa && to == DType::Q4_K { DType::Q4KSoa } else { to });
        };
        self.add(format!("stays {from}: {reason}"), &tensor.name);
        Recipe::AsIs
    }

    fn add(&mut self, reason: String, name: &str) {
        match self.0.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name.to_owned()),
            None => self.0.push((reason, vec![name.to_owned()])),
        }
    }

    fn sentences(self) -> Vec<String> {
        let sentences = self.0.into_iter().map(|(reason, names)| {
            let more = names.len().saturating_sub(NAMES);
            let first = names.into_iter().take(NAMES).collect::<Vec<_>>().join(", ");
            if more == 0 { format!("{first}: {reason}") } else { format!("{first} and {more} more: {reason}") }
        });
        sentences.collect()
    }
}
