//! What becomes of each tensor.

use super::{Layout, ProduceOptions};
use crate::quantize::{self, ModelFacts, Target, TensorFacts, is_weight};
use crate::source::SourceTensor;
use p64_core::forward::Config;
use p64_core::kernel::is_supported;
use p64_core::layout::dtype::TILE_ROWS;
use p64_core::metadata::Metadata;
use p64_core::quant::tile;
use p64_core::{DType, Shape};

/// Names that a note lists before it only counts.
const NAMES: usize = 3;

/// What becomes of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recipe {
    /// The same bytes.
    AsIs,
    /// The same bytes, sixteen rows side by side.
    Tile,
    /// Q4_K with its scales expanded (spec §7.2.1).
    Expand,
    /// Decoded and encoded as another type; as Q4_K_SOA by way of Q4_K.
    Encode(DType),
    /// Decoded and encoded as another type, sixteen rows side by side.
    EncodeTiles(DType),
}

impl Recipe {
    /// The type that a tensor of type `from` has afterwards.
    pub const fn dtype(self, from: DType) -> DType {
        match self {
            Self::AsIs => from,
            Self::Tile => tiles(from),
            Self::Expand => DType::Q4KSoa,
            Self::Encode(to) => to,
            Self::EncodeTiles(to) => tiles(to),
        }
    }

    /// Whether the values stay what they are, to the bit.
    pub const fn is_lossless(self) -> bool {
        matches!(self, Self::AsIs | Self::Tile)
    }

    /// The type that values are encoded as.
    pub const fn encoded(self) -> Option<DType> {
        match self {
            Self::Encode(to) | Self::EncodeTiles(to) => Some(to),
            Self::AsIs | Self::Tile | Self::Expand => None,
        }
    }

    /// The same with sixteen rows side by side, or why the tensor cannot have them so.
    fn tiled(self, tensor: &SourceTensor<'_>, config: Option<&Config>) -> Result<Self, String> {
        let shape = tensor.payload.shape();
        // Only what is multiplied with: a vector of norms is decoded at once.
        if !is_weight(&tensor.name, &shape) {
            return Ok(self);
        }
        let dtype = self.dtype(tensor.payload.dtype());
        match dtype.tiled() {
            None => Err(format!("{dtype} has no form with rows side by side")),
            Some(to) if to.byte_len(&shape).is_err() => Err(format!("its rows are no multiple of {TILE_ROWS}")),
            Some(_) if !parts_fit(&tensor.name, &shape, config) => {
                Err(format!("the rows of the matrices that it joins are no multiple of {TILE_ROWS}"))
            }
            Some(_) => Ok(match self {
                Self::AsIs => Self::Tile,
                Self::Encode(to) => Self::EncodeTiles(to),
                other => other,
            }),
        }
    }
}

/// Whether no tile has rows of two of the matrices that a tensor of the model holds one below the other: queries, keys and values,
/// or gate and up projection.
fn parts_fit(name: &str, shape: &Shape, config: Option<&Config>) -> bool {
    let whole = |rows: usize| rows.is_multiple_of(tile::ROWS);
    if name.ends_with(".attn_qkv.weight") {
        return config.is_none_or(|config| whole(config.head_dim()));
    }
    !name.ends_with(".ffn_up.weight") || shape.dims().get(1).is_none_or(|rows| rows.is_multiple_of(2 * TILE_ROWS)) || {
        // Only where there are two of them.
        config.is_some_and(|config| shape.rows() == u64::try_from(config.n_ff()).ok())
    }
}

/// The type with rows side by side; a type that has none stays.
const fn tiles(dtype: DType) -> DType {
    match dtype.tiled() {
        Some(tiled) => tiled,
        None => dtype,
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
    let config = Config::read(keys).ok();
    let recipes = tensors.iter().zip(targets).map(|(tensor, target)| {
        let (from, soa) = (tensor.payload.dtype(), options.weights == Layout::Soa);
        let recipe = match (target, options.weights) {
            (Some(target), _) => notes.encode(tensor, target, soa),
            (None, _) if options.rules.keeps(&tensor.name, &tensor.payload.shape()) => Recipe::AsIs,
            (None, Layout::Soa) if from == DType::Q4_K => Recipe::Expand,
            (None, Layout::F16) if from != DType::F16 && is_matrix(tensor) => {
                notes.encode(tensor, Target { dtype: DType::F16, wanted: DType::F16 }, false)
            }
            _ => Recipe::AsIs,
        };
        if options.weights != Layout::Tuned {
            return recipe;
        }
        recipe.tiled(tensor, config.as_ref()).unwrap_or_else(|reason| {
            notes.add(format!("stays row after row: {reason}"), &tensor.name);
            recipe
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_matrices_share_no_tile() {
        let fits = |name: &str, rows: u32| parts_fit(name, &Shape::new(&[32, rows]).expect("rank 2"), None);
        assert!(fits("blk.0.ffn_down.weight", 48) && fits("blk.0.ffn_up.weight", 64));
        // Half of 48 is one and a half tiles.
        assert!(!fits("blk.0.ffn_up.weight", 48));
    }
}
