//! A set as the source of a model's tensors.

use super::{MappedSet, SetTensor};
use p64_core::forward::{Weight, WeightSource};
use p64_core::{Place, Role};

/// The tensors of a mapped set, for binding a model. Indices are places in the whole model's table.
#[derive(Clone, Copy, Debug)]
pub struct SetWeights<'w>(pub &'w MappedSet);

impl<'w> SetWeights<'w> {
    fn weight(found: Option<SetTensor<'w>>) -> p64_core::Result<Option<Weight<'w>>> {
        let Some(found) = found else { return Ok(None) };
        let tensor = found.part.container().tensor(&found.info).map_err(|mut error| {
            if matches!(error.place, Place::Tensor(_)) {
                error.place = Place::Tensor(found.index);
            }
            error
        })?;
        let (dtype, shape) = (found.info.dtype(), found.info.shape());
        Ok(Some(Weight { index: found.index, dtype, shape, bytes: tensor.bytes() }))
    }
}

impl<'w> WeightSource<'w> for SetWeights<'w> {
    fn by_name(&self, name: &str) -> p64_core::Result<Option<Weight<'w>>> {
        Self::weight(self.0.find(name))
    }

    fn by_role(&self, role: Role, layer: Option<u32>) -> p64_core::Result<Option<Weight<'w>>> {
        Self::weight(self.0.find_role(role, layer.unwrap_or(self.0.n_layer())))
    }

    fn each(&self, visit: &mut dyn FnMut(u32, &str, Role) -> p64_core::Result<()>) -> p64_core::Result<()> {
        let mut model = self.0.tensors().filter(|tensor| !tensor.info.name().starts_with("p64."));
        model.try_for_each(|tensor| visit(tensor.index, tensor.info.name(), tensor.info.role()))
    }
}
