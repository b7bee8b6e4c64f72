//! The tensors of a layer's experts.
//!
//! Their dimensions follow from the configuration, so a layer keeps only types and bytes: a layer with experts is hardly
//! larger than one without, and what is stored once a layer counts on small machines.
#![forbid(unsafe_code)]

use super::{Bound, Weight, WeightSource, missing, names, wide};
use crate::error::{Code, Error, Place, Result};
use crate::forward::dims::Config;
use crate::forward::experts::Mixture;
use crate::forward::parameter::Parameter;
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
pub struct Experts<'w> {
    router: Packed<'w>, // [count, n_embd]
    gate: Packed<'w>,   // [count][ff, n_embd]
    up: Packed<'w>,     // [count][ff, n_embd]
    down: Packed<'w>,   // [count][n_embd, ff]
    shared: Option<SharedTensors<'w>>,
}

/// The network that every token passes.
#[derive(Clone, Copy, Debug)]
struct SharedTensors<'w> {
    gate: Packed<'w>,           // [shared_ff, n_embd]
    up: Packed<'w>,             // [shared_ff, n_embd]
    down: Packed<'w>,           // [n_embd, shared_ff]
    router: Option<Packed<'w>>, // [1, n_embd]
}

/// A gated feed-forward network.
pub(in crate::forward) struct Network<'w> {
    pub gate: Matrix<'w>, // [ff, n_embd]
    pub up: Matrix<'w>,   // [ff, n_embd]
    pub down: Matrix<'w>, // [n_embd, ff]
}

/// The network that every token passes, and what its factor is made with.
pub(in crate::forward) struct Shared<'w> {
    pub network: Network<'w>,
    pub router: Option<Matrix<'w>>, // [1, n_embd]
}

impl<'w> Experts<'w> {
    /// Binds the experts of layer `layer`.
    ///
    /// # Errors
    /// [`Code::MissingTensor`] at the layer; [`Code::WrongShape`] and [`Code::UnsupportedDType`] at the tensor (P64's
    /// ternary type has no experts); those of the source.
    pub(in crate::forward) fn bind(
        source: &impl WeightSource<'w>,
        config: &Config,
        mixture: &Mixture,
        layer: u32,
    ) -> Result<Self> {
        let bound = Bound { source, layer: Some(layer) };
        let (embd, ff, shared_ff) = (config.n_embd, mixture.ff, mixture.shared_ff);
        let packed = |role, count, rows, cols| packed(&bound.by_role(role)?, count, rows, cols);
        let shared = if shared_ff == 0 {
            None
        } else {
            let router = || self::packed(&bound.by_parameter(Parameter::SharedRouter)?, 1, 1, embd);
            Some(SharedTensors {
                gate: packed(Role::SharedGate, 1, shared_ff, embd)?,
                up: packed(Role::SharedUp, 1, shared_ff, embd)?,
                down: packed(Role::SharedDown, 1, embd, shared_ff)?,
                router: mixture.shared_gate.then(router).transpose()?,
            })
        };
        Ok(Self {
            router: packed(Role::Router, 1, mixture.count, embd)?,
            gate: packed(Role::GateExperts, mixture.count, ff, embd)?,
            up: packed(Role::UpExperts, mixture.count, ff, embd)?,
            down: packed(Role::DownExperts, mixture.count, embd, ff)?,
            shared,
        })
    }

    /// The router, `[count, n_embd]`.
    pub(in crate::forward) fn router(&self, config: &Config, mixture: &Mixture) -> Result<Matrix<'w>> {
        self.router.matrix(mixture.count, config.n_embd)
    }

    /// The network of one expert.
    pub(in crate::forward) fn expert(&self, config: &Config, mixture: &Mixture, index: usize) -> Result<Network<'w>> {
        let (embd, ff) = (config.n_embd, mixture.ff);
        let expert = |packed: &Packed<'w>, rows, cols| {
            Stack::new(packed.dtype, mixture.count, rows, cols, packed.bytes)?.expert(index)
        };
        Ok(Network {
            gate: expert(&self.gate, ff, embd)?,
            up: expert(&self.up, ff, embd)?,
            down: expert(&self.down, embd, ff)?,
        })
    }

    /// The network that every token passes.
    pub(in crate::forward) fn shared(&self, config: &Config, mixture: &Mixture) -> Result<Option<Shared<'w>>> {
        let (embd, ff) = (config.n_embd, mixture.shared_ff);
        let shared = |shared: &SharedTensors<'w>| {
            let (gate, up) = (shared.gate.matrix(ff, embd)?, shared.up.matrix(ff, embd)?);
            let network = Network { gate, up, down: shared.down.matrix(embd, ff)? };
            let router = shared.router.as_ref().map(|router| router.matrix(1, embd)).transpose()?;
            Ok(Shared { network, router })
        };
        self.shared.as_ref().map(shared).transpose()
    }

    /// Bytes that one token reads.
    pub(in crate::forward) fn bytes_per_token(&self, mixture: &Mixture) -> u64 {
        let len = |packed: &Packed<'_>| crate::num::wide(packed.bytes.len());
        let stacks = [&self.gate, &self.up, &self.down].map(|stack| {
            let each = len(stack).checked_div(crate::num::wide(mixture.count)).unwrap_or(0);
            each.saturating_mul(crate::num::wide(mixture.used))
        });
        let shared = self.shared.iter().flat_map(|s| [Some(&s.gate), Some(&s.up), Some(&s.down), s.router.as_ref()]);
        stacks.into_iter().chain([len(&self.router)]).chain(shared.flatten().map(len)).sum()
    }
}

impl<'w> Packed<'w> {
    fn matrix(&self, rows: usize, cols: usize) -> Result<Matrix<'w>> {
        Matrix::new(self.dtype, rows, cols, self.bytes)
    }
}

impl<'w, S: WeightSource<'w>> Bound<'_, S> {
    fn by_role(&self, role: Role) -> Result<Weight<'w>> {
        self.source.by_role(role, self.layer)?.ok_or(missing(u64::from(role.id()), self.layer))
    }

    fn by_parameter(&self, parameter: Parameter) -> Result<Weight<'w>> {
        let number = Parameter::TENSOR.saturating_add(u64::from(parameter.number()));
        let name = names::layer(self.layer.unwrap_or(0), parameter.name());
        self.source.by_name(name.as_str())?.ok_or(missing(number, self.layer))
    }
}

/// Checks a tensor of `count` matrices of `rows` x `cols`.
fn packed<'w>(weight: &Weight<'w>, count: usize, rows: usize, cols: usize) -> Result<Packed<'w>> {
    let place = Place::Tensor(weight.index);
    let need = [cols, rows, count].map(wide);
    let dims = weight.shape.raw().map(|dim| u64::from(dim).max(1));
    let wrong = need.into_iter().chain([1]).zip(dims).find(|(need, found)| need != found);
    if let Some((need, found)) = wrong {
        return Err(Error::new(Code::WrongShape, place).values(need, found));
    }
    Stack::new(weight.dtype, count, rows, cols, weight.bytes).map_err(|error| Error { place, ..error })?;
    Ok(Packed { dtype: weight.dtype, bytes: weight.bytes })
}
