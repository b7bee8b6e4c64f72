//! The tensors of a layer's experts.
//!
//! Their dimensions follow from the configuration, so a layer keeps only types and bytes: what is stored once a layer counts
//! on small machines, and this way experts take no more room there than another network.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::as_conversions, clippy::unwrap_used)]

use super::{Places, Presence, missing, wide};
use crate::error::{Code, Error, Place, Result};
use crate::forward::dims::{Built, Config, Experts};
use crate::forward::parameter::Parameter;
use crate::forward::weights::{Weight, WeightSource};
use crate::kernel::Matrix;
use crate::kernel::experts::Stack;
use crate::layout::dtype::DType;
use crate::layout::role::Role;

/// A tensor whose shape has been checked and follows from its place.
#[derive(Clone, Copy, Debug)]
struct Packed<'w> {
    dtype: DType,
    bytes: &'w [u8],
}

/// The tensors of a layer's experts.
#[derive(Clone, Copy, Debug)]
pub struct ExpertTensors<'w> {
    router: Packed<'w>, // [count, n_embd]
    gate: Packed<'w>,   // [count][n_ff, n_embd]
    up: Packed<'w>,     // [count][n_ff, n_embd]
    down: Packed<'w>,   // [count][n_embd, n_ff]
    shared: Option<SharedTensors<'w>>,
    _built: Built,
}

/// The expert that every position passes through.
#[derive(Clone, Copy, Debug)]
struct SharedTensors<'w> {
    gate: Packed<'w>,            // [shared_n_ff, n_embd]
    up: Packed<'w>,              // [shared_n_ff, n_embd]
    down: Packed<'w>,            // [n_embd, shared_n_ff]
    weigher: Option<Packed<'w>>, // [1, n_embd]
}

/// One expert.
pub(in crate::forward) struct Expert<'w> {
    pub gate: Matrix<'w>, // [n_ff, n_embd]
    pub up: Matrix<'w>,   // [n_ff, n_embd]
    pub down: Matrix<'w>, // [n_embd, n_ff]
}

/// The expert that every position passes through, and what weighs it.
pub(in crate::forward) struct SharedExpert<'w> {
    pub expert: Expert<'w>,
    pub weigher: Option<Matrix<'w>>, // [1, n_embd]
}

impl<'w> ExpertTensors<'w> {
    /// The router, `[count, n_embd]`.
    pub(in crate::forward) fn router(&self, config: &Config, experts: &Experts) -> Result<Matrix<'w>> {
        self.router.matrix(experts.count, config.n_embd)
    }

    /// One of the experts that the router chooses among.
    pub(in crate::forward) fn expert(&self, config: &Config, experts: &Experts, index: usize) -> Result<Expert<'w>> {
        let (embd, n_ff) = (config.n_embd, experts.n_ff);
        let part = |packed: &Packed<'w>, rows, cols| {
            Stack::new(packed.dtype, experts.count, rows, cols, packed.bytes)?.expert(index)
        };
        let (gate, up) = (part(&self.gate, n_ff, embd)?, part(&self.up, n_ff, embd)?);
        Ok(Expert { gate, up, down: part(&self.down, embd, n_ff)? })
    }

    /// The expert that every position passes through.
    pub(in crate::forward) fn shared(&self, config: &Config, experts: &Experts) -> Result<Option<SharedExpert<'w>>> {
        let (embd, n_ff) = (config.n_embd, experts.shared_n_ff);
        let shared = |shared: &SharedTensors<'w>| {
            let (gate, up) = (shared.gate.matrix(n_ff, embd)?, shared.up.matrix(n_ff, embd)?);
            let expert = Expert { gate, up, down: shared.down.matrix(embd, n_ff)? };
            let weigher = shared.weigher.as_ref().map(|weigher| weigher.matrix(1, embd)).transpose()?;
            Ok(SharedExpert { expert, weigher })
        };
        self.shared.as_ref().map(shared).transpose()
    }

    /// Bytes of what one position reads: of the experts that the router chooses among, those it uses.
    pub(in crate::forward) fn size(&self, experts: &Experts) -> usize {
        let stacks = [self.gate, self.up, self.down].map(|stack| stack.bytes.len());
        let each = stacks.map(|len| len.checked_div(experts.count).unwrap_or(0).saturating_mul(experts.used));
        let shared = self.shared.iter().flat_map(|shared| {
            [Some(shared.gate), Some(shared.up), Some(shared.down), shared.weigher].into_iter().flatten()
        });
        let whole = shared.chain([self.router]).map(|packed| packed.bytes.len());
        each.into_iter().chain(whole).fold(0, usize::saturating_add)
    }
}

impl<'w> Packed<'w> {
    /// Checks a tensor of `count` matrices of `rows` x `cols`.
    fn new(weight: &Weight<'w>, count: usize, rows: usize, cols: usize) -> Result<Self> {
        let place = Place::Tensor(weight.index);
        let need = [wide(cols), wide(rows), wide(count), 1];
        // Dimensions past the rank are stored as zero; a dimension of zero elements shows in the bytes.
        let dims = weight.shape.raw().map(|dim| u64::from(dim).max(1));
        if let Some((need, found)) = need.into_iter().zip(dims).find(|(need, found)| need != found) {
            return Err(Error::new(Code::WrongShape, place).values(need, found));
        }
        Stack::new(weight.dtype, count, rows, cols, weight.bytes).map_err(|error| Error { place, ..error })?;
        Ok(Self { dtype: weight.dtype, bytes: weight.bytes })
    }

    fn matrix(&self, rows: usize, cols: usize) -> Result<Matrix<'w>> {
        Matrix::new(self.dtype, rows, cols, self.bytes)
    }
}

impl<'w, S: WeightSource<'w>> Places<'_, S> {
    /// The tensors of the layer's experts.
    pub(super) fn experts(&mut self, config: &Config, experts: &Experts) -> Result<ExpertTensors<'w>> {
        let (embd, n_ff) = (config.n_embd, experts.n_ff);
        let shared = if experts.shared_n_ff == 0 { None } else { Some(self.shared_expert(config, experts)?) };
        Ok(ExpertTensors {
            router: self.packed(Role::Router, 1, experts.count, embd)?,
            gate: self.packed(Role::GateExperts, experts.count, n_ff, embd)?,
            up: self.packed(Role::UpExperts, experts.count, n_ff, embd)?,
            down: self.packed(Role::DownExperts, experts.count, embd, n_ff)?,
            shared,
            _built: experts.built,
        })
    }

    fn shared_expert(&mut self, config: &Config, experts: &Experts) -> Result<SharedTensors<'w>> {
        let (embd, n_ff) = (config.n_embd, experts.shared_n_ff);
        let presence = if experts.shared_gate { Presence::Always } else { Presence::Never };
        let weigher = self.named(Parameter::SharedExpertGate, presence)?;
        Ok(SharedTensors {
            gate: self.packed(Role::SharedGate, 1, n_ff, embd)?,
            up: self.packed(Role::SharedUp, 1, n_ff, embd)?,
            down: self.packed(Role::SharedDown, 1, embd, n_ff)?,
            weigher: weigher.map(|weight| Packed::new(&weight, 1, 1, embd)).transpose()?,
        })
    }

    fn packed(&mut self, role: Role, count: usize, rows: usize, cols: usize) -> Result<Packed<'w>> {
        let weight = self.role(role, Presence::Always)?;
        let weight = weight.ok_or(missing(u64::from(role.id()), Some(self.layer)))?;
        Packed::new(&weight, count, rows, cols)
    }
}
