//! A model's tensors bound to their places in the transformer, every shape checked once.
//!
//! Shapes are written `[rows, cols]`: `y[rows] = W[rows, cols] x[cols]`, GGML's `dims[0]` being `cols`.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::as_conversions, clippy::unwrap_used)]

mod layer;
mod names;
mod vector;

pub(super) use layer::Expert;
pub use layer::{ExpertTensors, FeedForward, Layer, Linear, Norm};
pub use vector::Vector;

use super::arch::{Positions, Presence};
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

/// A model ready to run. `L` holds the layers: a borrowed slice, an array, a `Vec`.
#[derive(Clone, Copy, Debug)]
pub struct Model<'w, L = &'w [Layer<'w>]> {
    pub(super) config: Config,
    pub(super) token_embd: Matrix<'w>,            // [n_vocab, n_embd]
    pub(super) position_embd: Option<Matrix<'w>>, // [context, n_embd], of families whose positions are learned
    pub(super) output_norm: Norm<'w>,             // n_embd
    pub(super) output: Linear<'w>,                // [n_vocab, n_embd]; token_embd itself where the two are tied
    pub(super) rope_factors: RopeFactors<'w>,     // rope_dims / 2 divisors of the rotary embedding's frequencies
    pub(super) layers: L,                         // n_layer of them
}

/// The divisors of the rotary embedding's frequencies, by the length of the context.
#[derive(Clone, Copy, Debug)]
pub(super) struct RopeFactors<'w> {
    short: Option<Vector<'w>>,
    long: Option<Vector<'w>>,
}

impl<'w> RopeFactors<'w> {
    fn bind(source: &impl WeightSource<'w>, config: &Config) -> Result<Self> {
        let globals = Globals { source };
        let factors = |parameter| globals.vector(parameter, config.rope_dims.div_ceil(2), Presence::Maybe);
        if config.long_from().is_some() {
            return Ok(Self {
                short: factors(Parameter::RopeFactorsShort)?,
                long: factors(Parameter::RopeFactorsLong)?,
            });
        }
        let factors = factors(Parameter::RopeFreqs)?;
        Ok(Self { short: factors, long: factors })
    }

    /// Those for a cache of `capacity` positions.
    pub(super) fn of(&self, config: &Config, capacity: usize) -> Option<Vector<'w>> {
        match config.long_from() {
            Some(context) if capacity > context => self.long,
            _ => self.short,
        }
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
        let bound = layers.as_ref().iter().fold(0usize, |sum, layer| sum.saturating_add(usize::from(layer.tensors)));
        refuse_unknown(source, &config, bound)?;
        let globals = Globals { source };
        let (family, embd) = (config.family(), config.n_embd);
        let weight = source.by_role(Role::TokenEmbd, None)?.ok_or(missing(u64::from(Role::TokenEmbd.id()), None))?;
        let rows = weight.shape.rows().and_then(|rows| usize::try_from(rows).ok()).filter(|rows| *rows > 0);
        let token_embd = matrix(&weight, rows.unwrap_or(1), embd)?;
        let n_vocab = token_embd.rows();
        let output = match source.by_role(Role::Output, None)? {
            Some(weight) => matrix(&weight, n_vocab, embd)?,
            None => token_embd,
        };
        let norm = source.by_role(Role::OutputNorm, None)?.ok_or(missing(u64::from(Role::OutputNorm.id()), None))?;
        let norm_bias = if family.norm_biases { Presence::Always } else { Presence::Never };
        let position_embd = match family.positions {
            Positions::Rotary(_) => None,
            Positions::Learned => {
                let parameter = Parameter::PositionEmbedding;
                let weight = source.by_name(parameter.name())?.ok_or(missing(parameter.tensor(), None))?;
                Some(matrix(&weight, config.context, embd)?)
            }
        };
        Ok(Self {
            config,
            token_embd,
            position_embd,
            output_norm: Norm {
                weight: Vector::new(&norm, embd)?,
                bias: globals.vector(Parameter::OutputNormBias, embd, norm_bias)?,
            },
            output: Linear {
                weight: output,
                bias: globals.vector(Parameter::OutputBias, n_vocab, family.biases.output)?,
                scale: 1.0,
            },
            rope_factors: RopeFactors::bind(source, &config)?,
            layers,
        })
    }
}

impl<'w, L> Model<'w, L> {
    /// The model's dimensions.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The embedding of positions, in families whose positions are learned.
    pub(super) const fn position_embd(&self) -> Option<&Matrix<'w>> {
        match self.config.family().positions {
            Positions::Rotary(_) => None,
            Positions::Learned => self.position_embd.as_ref(),
        }
    }

    /// Tokens of the vocabulary, and the length of one position's logits.
    #[must_use]
    pub const fn n_vocab(&self) -> usize {
        self.token_embd.rows()
    }
}

/// Where the tensors outside of layers are looked up.
struct Globals<'s, S> {
    source: &'s S,
}

impl<'w, S: WeightSource<'w>> Globals<'_, S> {
    fn vector(&self, parameter: Parameter, len: usize, presence: Presence) -> Result<Option<Vector<'w>>> {
        let weight = if presence == Presence::Never { None } else { self.source.by_name(parameter.name())? };
        match weight {
            None if presence == Presence::Always => Err(missing(parameter.tensor(), None)),
            weight => weight.map(|weight| Vector::new(&weight, len)).transpose(),
        }
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

/// Finds a tensor that the forward pass would leave out; the layers have taken `bound`.
fn refuse_unknown<'w>(source: &impl WeightSource<'w>, config: &Config, bound: usize) -> Result<()> {
    // More than were bound would be a second tensor for one place.
    let places = bound.saturating_add(GLOBAL_ROLES);
    let mut seen = 0usize;
    source.each(&mut |index, name, role| {
        let known = match role {
            Role::Unknown(_) => names::is_known(name, config),
            role => names::has_role(role, config) && names::layer_exists(name, config),
        };
        let counts = match role {
            Role::Unknown(_) => name.starts_with("blk."),
            role => role != Role::Output,
        };
        seen = seen.saturating_add(usize::from(counts));
        let known = known && seen <= places;
        if known { Ok(()) } else { Err(Parameter::OtherTensor.unsupported(Place::Tensor(index))) }
    })
}

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
