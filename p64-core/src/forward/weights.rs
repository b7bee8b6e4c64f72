//! A model's tensors bound to their places in the transformer, every shape checked once.
//!
//! Shapes are written `[rows, cols]`: `y[rows] = W[rows, cols] x[cols]`, GGML's `dims[0]` being `cols`.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::as_conversions, clippy::unwrap_used)]

pub(super) mod experts;
mod names;

use super::arch::Family;
use super::dims::Config;
use super::parameter::Parameter;
use crate::error::{Code, Error, Place, Result};
use crate::kernel::Matrix;
use crate::layout::dtype::DType;
use crate::layout::role::Role;
use crate::layout::shape::Shape;

/// One tensor as a file gives it.
#[derive(Clone, Copy, Debug)]
pub struct Weight<'w> {
    /// Position in the file's tensor table: the place of errors.
    pub index: u32,
    /// Element type.
    pub dtype: DType,
    /// Shape in GGML order.
    pub shape: Shape,
    /// Packed values.
    pub bytes: &'w [u8],
}

/// Whatever holds a model's tensors: a P64 container, a GGUF.
pub trait WeightSource<'w> {
    /// The tensor of a GGUF name, `blk.0.attn_q_norm.weight`.
    ///
    /// # Errors
    /// Those of the source, such as a checksum that does not match.
    fn by_name(&self, name: &str) -> Result<Option<Weight<'w>>>;

    /// The tensor of a role; `layer` is `None` for global ones.
    ///
    /// # Errors
    /// As [`WeightSource::by_name`].
    fn by_role(&self, role: Role, layer: Option<u32>) -> Result<Option<Weight<'w>>>;

    /// Shows every tensor's index, GGUF name and role ([`Role::UNKNOWN`] where it has none) to `visit`, and stops at its
    /// first error. [`Model::new`] refuses models with tensors it has no place for: leaving one out means wrong text.
    ///
    /// # Errors
    /// The visitor's.
    fn each(&self, visit: &mut dyn FnMut(u32, &str, Role) -> Result<()>) -> Result<()>;
}

/// The tensors of one layer.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'w> {
    pub(super) attn_norm: Matrix<'w>,                   // [1, n_embd]
    pub(super) attn_q: Matrix<'w>,                      // [n_head * head_dim, n_embd]
    pub(super) attn_k: Matrix<'w>,                      // [n_head_kv * head_dim, n_embd]
    pub(super) attn_v: Matrix<'w>,                      // [n_head_kv * head_dim, n_embd]
    pub(super) attn_q_norm: Option<Matrix<'w>>,         // [1, head_dim]
    pub(super) attn_k_norm: Option<Matrix<'w>>,         // [1, head_dim]
    pub(super) attn_output: Matrix<'w>,                 // [n_embd, n_head * head_dim]
    pub(super) post_attention_norm: Option<Matrix<'w>>, // [1, n_embd]
    pub(super) ffn_norm: Matrix<'w>,                    // [1, n_embd]
    pub(super) ffn_gate: Matrix<'w>,                    // [n_ff, n_embd]
    pub(super) ffn_up: Matrix<'w>,                      // [n_ff, n_embd]
    pub(super) ffn_down: Matrix<'w>,                    // [n_embd, n_ff]
    pub(super) post_ffw_norm: Option<Matrix<'w>>,       // [1, n_embd]
}

/// A model ready to run. `L` holds the layers: a borrowed slice, an array, a `Vec`.
#[derive(Clone, Copy, Debug)]
pub struct Model<'w, L = &'w [Layer<'w>]> {
    pub(super) config: Config,
    pub(super) token_embd: Matrix<'w>,         // [n_vocab, n_embd]
    pub(super) output_norm: Matrix<'w>,        // [1, n_embd]
    pub(super) output: Matrix<'w>,             // [n_vocab, n_embd]; token_embd itself where the two are tied
    pub(super) rope_freqs: Option<Matrix<'w>>, // [1, rope_dims / 2], divisors of the rotary embedding's frequencies
    pub(super) layers: L,                      // n_layer of them
}

impl<'w> Layer<'w> {
    /// Binds the tensors of layer `index`.
    ///
    /// # Errors
    /// [`Code::MissingTensor`] at the layer; [`Code::WrongShape`] and [`Code::UnsupportedDType`] at the tensor;
    /// [`Code::LengthMismatch`] for an index past the last layer; those of the source.
    pub fn bind(source: &impl WeightSource<'w>, config: &Config, index: usize) -> Result<Self> {
        let beyond = Error::new(Code::LengthMismatch, Place::File).values(wide(config.n_layer), wide(index));
        let layer = u32::try_from(index).ok().filter(|_| index < config.n_layer).ok_or(beyond)?;
        let (embd, query, kv) = (config.n_embd, config.query_len(), config.kv_len());
        let family = config.family();
        let matrix = |role, rows, cols| Bound { source, layer: Some(layer) }.role(role, rows, cols);
        let norm = |on, parameter, len| Bound { source, layer: Some(layer) }.norm(on, parameter, len);
        Ok(Self {
            attn_norm: matrix(Role::AttnNorm, 1, embd)?,
            attn_q: matrix(Role::AttnQ, query, embd)?,
            attn_k: matrix(Role::AttnK, kv, embd)?,
            attn_v: matrix(Role::AttnV, kv, embd)?,
            attn_q_norm: norm(family.head_norms, Parameter::QueryNorm, config.head_dim)?,
            attn_k_norm: norm(family.head_norms, Parameter::KeyNorm, config.head_dim)?,
            attn_output: matrix(Role::AttnOutput, embd, query)?,
            post_attention_norm: norm(family.post_norms, Parameter::PostAttentionNorm, embd)?,
            ffn_norm: matrix(Role::FfnNorm, 1, embd)?,
            ffn_gate: matrix(Role::FfnGate, config.n_ff, embd)?,
            ffn_up: matrix(Role::FfnUp, config.n_ff, embd)?,
            ffn_down: matrix(Role::FfnDown, embd, config.n_ff)?,
            post_ffw_norm: norm(family.post_norms, Parameter::PostFfnNorm, embd)?,
        })
    }
}

impl<'w, L: AsRef<[Layer<'w>]>> Model<'w, L> {
    /// Binds the global tensors and takes the layers that [`Layer::bind`] gave for the same source and configuration.
    ///
    /// # Errors
    /// As [`Layer::bind`]; [`Code::UnsupportedFeature`] at a tensor that has no place in the family;
    /// [`Code::LengthMismatch`] when `layers` are not `n_layer`.
    pub fn new(source: &impl WeightSource<'w>, config: Config, layers: L) -> Result<Self> {
        let count = layers.as_ref().len();
        if count != config.n_layer {
            return Err(Error::new(Code::LengthMismatch, Place::File).values(wide(config.n_layer), wide(count)));
        }
        refuse_unknown(source, &config)?;
        let bound = Bound { source, layer: None };
        let weight = source.by_role(Role::TokenEmbd, None)?.ok_or(missing(u64::from(Role::TokenEmbd.id()), None))?;
        let rows = weight.shape.rows().and_then(|rows| usize::try_from(rows).ok()).filter(|rows| *rows > 0);
        let token_embd = matrix(&weight, rows.unwrap_or(1), config.n_embd)?;
        let output = match source.by_role(Role::Output, None)? {
            Some(weight) => matrix(&weight, token_embd.rows(), config.n_embd)?,
            None => token_embd,
        };
        let rope_freqs = source.by_name(Parameter::RopeFreqs.name())?;
        Ok(Self {
            config,
            token_embd,
            output_norm: bound.role(Role::OutputNorm, 1, config.n_embd)?,
            output,
            rope_freqs: rope_freqs.map(|weight| matrix(&weight, 1, config.rope_dims.div_ceil(2))).transpose()?,
            layers,
        })
    }
}

impl<L> Model<'_, L> {
    /// The model's dimensions.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Tokens of the vocabulary, and the length of one position's logits.
    #[must_use]
    pub const fn n_vocab(&self) -> usize {
        self.token_embd.rows()
    }
}

/// Where tensors are looked up: the globals, or one layer.
struct Bound<'s, S> {
    source: &'s S,
    layer: Option<u32>,
}

impl<'w, S: WeightSource<'w>> Bound<'_, S> {
    /// The matrix of a role, `[rows, cols]`.
    fn role(&self, role: Role, rows: usize, cols: usize) -> Result<Matrix<'w>> {
        let weight = self.source.by_role(role, self.layer)?.ok_or(missing(u64::from(role.id()), self.layer))?;
        matrix(&weight, rows, cols)
    }

    /// A layer's norm that has a name but no role; `None` where the family has no such norm.
    fn norm(&self, on: bool, parameter: Parameter, len: usize) -> Result<Option<Matrix<'w>>> {
        if !on {
            return Ok(None);
        }
        let number = Parameter::TENSOR.saturating_add(u64::from(parameter.number()));
        let name = names::layer(self.layer.unwrap_or(0), parameter.name());
        let weight = self.source.by_name(name.as_str())?.ok_or(missing(number, self.layer))?;
        matrix(&weight, 1, len).map(Some)
    }
}

/// A tensor as a matrix of the dimensions its place needs.
fn matrix<'w>(weight: &Weight<'w>, rows: usize, cols: usize) -> Result<Matrix<'w>> {
    let place = Place::Tensor(weight.index);
    let wrong = |needed, found| Error::new(Code::WrongShape, place).values(wide(needed), found);
    if weight.shape.row_len() != wide(cols) {
        return Err(wrong(cols, weight.shape.row_len()));
    }
    match weight.shape.rows() {
        Some(found) if found == wide(rows) => {}
        found => return Err(wrong(rows, found.unwrap_or(u64::MAX))),
    }
    Matrix::new(weight.dtype, rows, cols, weight.bytes).map_err(|error| Error { place, ..error })
}

/// Finds a tensor that the forward pass would leave out.
fn refuse_unknown<'w>(source: &impl WeightSource<'w>, config: &Config) -> Result<()> {
    // Every layer has each of its roles once, and so have the globals; more would be a second tensor for one place.
    let places = config.n_layer.saturating_mul(LAYER_ROLES).saturating_add(GLOBAL_ROLES);
    let mut bound = 0usize;
    source.each(&mut |index, name, role| {
        let known = match role {
            Role::Unknown(_) => names::is_known(name, config),
            role => {
                bound = bound.saturating_add(usize::from(role != Role::Output));
                let twice = bound > places;
                role.id() <= Role::OutputNorm.id() && names::layer_exists(name, config) && !twice
            }
        };
        if known { Ok(()) } else { Err(Parameter::OtherTensor.unsupported(Place::Tensor(index))) }
    })
}

/// Roles that [`Layer::bind`] takes, each once a layer.
const LAYER_ROLES: usize = 9;
/// The token embedding and the final norm. The output is there or not.
const GLOBAL_ROLES: usize = 2;

const fn missing(number: u64, layer: Option<u32>) -> Error {
    let place = match layer {
        Some(layer) => Place::Layer(layer),
        None => Place::File,
    };
    Error::new(Code::MissingTensor, place).values(0, number)
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// The tensors without a role that a family's layers have.
const fn named_norms(family: &Family) -> [(Parameter, bool); 4] {
    [
        (Parameter::QueryNorm, family.head_norms),
        (Parameter::KeyNorm, family.head_norms),
        (Parameter::PostAttentionNorm, family.post_norms),
        (Parameter::PostFfnNorm, family.post_norms),
    ]
}
